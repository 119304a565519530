"""Whether data agree with a graph: against regressions and tables by hand, everywhere the same."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.errors import ArgumentError, GraphError

if TYPE_CHECKING:
    import pandas as pd


def rows(n: int = 600, seed: int = 0) -> pd.DataFrame:
    """Numbers from a → b → c → d and a → d."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = 0.7 * a + rng.normal(size=n)
    c = 0.7 * b + rng.normal(size=n)
    d = 0.5 * c + 0.4 * a + rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d})


TRUE = ist.DAG(list("abcd"), [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")])
LESS = ist.DAG(list("abcd"), [("a", "b"), ("b", "c"), ("c", "d")])


def partial_p(table: pd.DataFrame, x: str, y: str, given: list[str]) -> float:
    """Return the p-value of a partial correlation by two regressions and Fisher's z."""
    from scipy.stats import norm

    design = np.column_stack([np.ones(len(table)), *(table[v] for v in given)])
    rest = [table[v] - design @ np.linalg.lstsq(design, table[v], rcond=None)[0] for v in (x, y)]
    z = np.arctanh(np.corrcoef(*rest)[0, 1]) * np.sqrt(len(table) - len(given) - 3)
    return float(2 * norm.sf(abs(z)))


def test_numbers_are_those_of_regressions() -> None:
    from scipy.stats import chi2

    table = rows()
    answer = ist.validate(ist.summarise(table), LESS, permutations=0)
    expected = {
        ("a", "c", ("b",)): partial_p(table, "a", "c", ["b"]),
        ("a", "d", ("c",)): partial_p(table, "a", "d", ["c"]),
        ("b", "d", ("c",)): partial_p(table, "b", "d", ["c"]),
    }
    assert {(i.x, i.y, i.given): i.p_value for i in answer.independences} == pytest.approx(expected)
    ordered = sorted(expected.values())
    holm = [3 * ordered[0], max(3 * ordered[0], 2 * ordered[1])]
    holm.append(max(holm[1], ordered[2]))
    assert [i.adjusted for i in answer.independences] == pytest.approx(np.minimum(holm, 1.0))
    assert str(answer.objections[0]) == "a and d given c"
    sequence = [
        partial_p(table, "a", "c", ["b"]),
        partial_p(table, "a", "d", ["c"]),
        partial_p(table, "b", "d", ["a", "c"]),
    ]
    c = -2 * np.log(sequence).sum()
    assert answer.fisher_c is not None
    assert answer.fisher_c[0] == pytest.approx(c)
    assert answer.fisher_c[1] == 6
    assert answer.fisher_c[2] == pytest.approx(chi2.sf(c, 6))
    edges = {(e.cause, e.effect): e.p_value for e in answer.edges}
    assert edges["c", "d"] == pytest.approx(partial_p(table, "c", "d", []), abs=1e-12)


def test_tables_are_those_of_scipy() -> None:
    import pandas as pd
    from scipy.stats import chi2, chi2_contingency

    rng = np.random.default_rng(1)
    a, b = rng.integers(3, size=(2, 400))
    c = (a + (rng.random(400) < 0.4) * rng.integers(3, size=400)) % 3
    table = pd.DataFrame({"a": a, "b": b, "c": c}).astype(str)
    answer = ist.validate(table, ist.DAG(list("abc"), [("a", "c")]), permutations=0)
    found = {(i.x, i.y): i.p_value for i in answer.independences}
    plain = chi2_contingency(pd.crosstab(table["a"], table["b"]), False, "log-likelihood")
    assert found["a", "b"] == pytest.approx(plain.pvalue)
    strata = [
        chi2_contingency(pd.crosstab(own["b"], own["c"]), False, "log-likelihood")
        for _, own in table.groupby("a")
    ]
    g = sum(s.statistic for s in strata), sum(s.dof for s in strata)
    assert found["b", "c"] == pytest.approx(chi2.sf(*g))


@pytest.mark.long
def test_everywhere_the_same() -> None:
    import duckdb
    import pandas as pd

    table = rows(900)
    levels = pd.DataFrame({v: pd.cut(table[v], 3, labels=list("xyz")).astype(str) for v in table})
    parts = {"one": slice(0, 300), "two": slice(300, 600), "three": slice(600, 900)}
    for data in (table, levels):
        sites = ist.Federation.simulate(
            {name: data[part] for name, part in parts.items()}, within_sites=False
        )
        with duckdb.connect() as connection:
            answers = [
                ist.validate(source, LESS) for source in (data, connection.from_df(data), sites)
            ]
        for other in answers[1:]:
            assert [(i.x, i.y) for i in other.objections] == [
                (i.x, i.y) for i in answers[0].objections
            ]
            theirs = {(i.x, i.y): i.p_from_sums for i in other.independences}
            for i in answers[0].independences:
                assert theirs[i.x, i.y] == pytest.approx(i.p_from_sums, rel=1e-6)


def test_groups_are_those_of_sites() -> None:
    table, shift = rows(900), np.repeat([0.0, 3.0, -2.0], 300)
    table = table.add(shift, axis=0)
    sites = ist.Federation.simulate([table[:300], table[300:600], table[600:]])
    whole = ist.validate(table.assign(site=np.repeat(list("xyz"), 300)), TRUE, groups="site")
    apart = ist.validate(sites, TRUE)
    assert whole.agrees
    assert apart.agrees
    theirs = {(i.x, i.y): i.p_from_sums for i in apart.independences}
    for i in whole.independences:
        assert theirs[i.x, i.y] == pytest.approx(i.p_from_sums, rel=1e-6)
    assert not ist.validate(table, TRUE).agrees  # levels of sites look like edges


@pytest.mark.long
def test_the_level_holds() -> None:
    """At 5%, at most 6% of true graphs: see benchmarks/results/validate.md for 500 of each kind."""
    from scipy.stats import binom

    rejected = 0
    for seed in range(200):
        dag = simulate.erdos_renyi(8, 10, seed=seed)
        moments = ist.summarise(simulate.linear(dag, 200, seed=seed).data)
        rejected += not ist.validate(moments, dag, permutations=0).agrees
    assert rejected <= binom.isf(1e-3, 200, 0.05)
    assert rejected >= 1  # the test can fail


def test_shuffled_names_are_other_graphs() -> None:
    moments = ist.summarise(rows(200))
    answer = ist.validate(moments, TRUE, permutations=300, seed=1)
    scores = [
        ist.score(moments, ist.DAG(TRUE.nodes, [(p[a], p[b]) for a, b in TRUE.edges]))
        for p in (dict(zip("abcd", order, strict=True)) for order in permutations("abcd"))
    ]
    own = ist.score(moments, TRUE)
    assert answer.shuffled is not None
    assert answer.shuffled.score == pytest.approx(own)
    assert answer.shuffled.best == pytest.approx(max(scores))
    share = np.mean(np.array(scores) >= own - 1e-9)
    assert answer.shuffled.p_value == pytest.approx(share, abs=0.1)


def test_what_is_said() -> None:
    table = rows(2000)
    answer = ist.validate(table, LESS)
    assert not answer.agrees
    assert "a and d given c" in str(answer)
    assert "Shuffled names cannot tell" in str(answer)  # 13 of 200 are equivalent
    more = ist.DAG(list("abcd"), [*TRUE.edges, ("a", "c")])
    assert [(e.cause, e.effect) for e in ist.validate(table, more).unsupported] == [("a", "c")]
    knowledge = ist.Knowledge(forbidden=[("a", "b")], required=[("a", "c")])
    answer = ist.validate(table, TRUE, knowledge=knowledge)
    assert len(answer.violated) == 2
    frame = answer.to_frame(like=table)
    assert list(frame["claim"]) == ["independence"] * 2 + ["edge"] * 4
    full = ist.DAG(list("ab"), [("a", "b")])
    assert "no independence that could be tested" in str(ist.validate(table, full))


def test_a_class_is_one_of_its_members() -> None:
    table = rows()
    by_class = ist.validate(table, TRUE.cpdag(), permutations=0)
    assert by_class.agrees == ist.validate(table, TRUE, permutations=0).agrees
    assert isinstance(by_class.dag, ist.DAG)
    assert by_class.dag.cpdag() == TRUE.cpdag()


def test_a_determined_variable_is_left_out() -> None:
    table = rows().assign(copy=lambda t: t["a"])
    dag = ist.DAG(["a", "copy", "b"], [("a", "copy"), ("copy", "b")])
    answer = ist.validate(table, dag)
    assert answer.independences == ()
    assert any("1 independence could not be tested" in remark for remark in answer.remarks)


def test_refusals() -> None:
    with pytest.raises(ArgumentError):
        ist.validate(rows(), TRUE, alpha=5)
    with pytest.raises(ArgumentError):
        ist.validate(rows(), [("a", "b")])  # type: ignore[arg-type]
    with pytest.raises((GraphError, ist.errors.SchemaError)):
        ist.validate(rows(), ist.DAG(["a", "e"]))


def with_hidden_cause(n: int = 800, seed: int = 2) -> pd.DataFrame:
    """Numbers from a → b → d and c → d, where a cause of b and c is hidden."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    a, h = rng.normal(size=(2, n))
    b = 0.7 * a + h + rng.normal(size=n)
    c = h + rng.normal(size=n)
    d = 0.6 * b + 0.6 * c + rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d})


HIDDEN = ist.DAG([*"abcdh"], [("a", "b"), ("b", "d"), ("c", "d"), ("h", "b"), ("h", "c")])


def test_a_graph_with_hidden_causes_is_tested_by_its_separations() -> None:
    table = with_hidden_cause()
    pag = ist.PAG.from_dag(HIDDEN, hidden=["h"])
    answer = ist.validate(table, pag)
    assert answer.agrees
    assert answer.dag == pag
    expected = {
        ("a", "c", ()): partial_p(table, "a", "c", []),
        ("a", "d", ("b", "c")): partial_p(table, "a", "d", ["b", "c"]),
    }
    found = {(i.x, i.y, i.given): i.p_from_sums for i in answer.independences}
    assert found == pytest.approx(expected)
    assert answer.fisher_c is None
    assert answer.shuffled is None
    assert not answer.unsupported
    # The DAG without the hidden cause objects; so does a PAG that lacks an edge.
    assert not ist.validate(table, ist.DAG([*"abcd"], [("a", "b"), ("b", "d"), ("c", "d")])).agrees
    less = ist.PAG([*"abcd"], [("a", "o->", "b"), ("b", "-->", "d")])
    wrong = ist.validate(table, less)
    assert {frozenset((i.x, i.y)) for i in wrong.objections} >= {frozenset("bc"), frozenset("cd")}
    # An edge too many is listed, with its mark.
    more = ist.PAG([*"abcd"], [*pag.edges, ("a", "o->", "c")])
    assert ("a", "c") in {(e.cause, e.effect) for e in ist.validate(table, more).unsupported}
    assert "a o-> c" in str(ist.validate(table, more))


def test_graphs_with_hidden_causes_are_tested_everywhere_the_same() -> None:
    import duckdb

    frame = with_hidden_cause(300)
    pag = ist.PAG.from_dag(HIDDEN, hidden=["h"])
    expected = ist.validate(ist.summarise(frame), pag)
    parts = {"r": frame[:100], "s": frame[100:200], "t": frame[200:]}
    in_groups = frame.assign(site=np.repeat(["r", "s", "t"], 100))
    for data in (duckdb.sql("from frame"), ist.summarise(frame)):
        answer = ist.validate(data, pag)
        for one, other in zip(answer.independences, expected.independences, strict=True):
            assert one.p_from_sums == pytest.approx(other.p_from_sums, rel=1e-6)
    within = ist.validate(in_groups, pag, groups="site")
    joint = ist.validate(ist.Federation.simulate(parts), pag)
    found = {(i.x, i.y): i.p_from_sums for i in joint.independences}
    assert found == pytest.approx(
        {(i.x, i.y): i.p_from_sums for i in within.independences}, rel=1e-4
    )


@pytest.mark.parametrize("seed", range(8))
def test_separating_sets_separate_in_the_graph_with_hidden_causes(seed: int) -> None:
    dag = simulate.erdos_renyi(9, 13, seed=seed)
    hidden = [v for v in dag.nodes if len(dag.children(v)) > 1][:2]
    pag = ist.PAG.from_dag(dag, hidden=hidden)
    sets = pag.separating_sets()
    adjacent = {frozenset((a, b)) for a, _, b in pag.edges}
    assert len(sets) + len(adjacent) == len(pag.nodes) * (len(pag.nodes) - 1) // 2
    for (x, y), given in sets.items():
        assert dag.d_separated(x, y, given)
        for left in given:
            assert not dag.d_separated(x, y, [v for v in given if v != left])
    again = pag.member()
    assert ist.PAG.from_dag(again, hidden=again.nodes[len(pag.nodes) :]) == pag


def test_the_picture_shows_what_the_data_ask_for() -> None:
    table = rows(2000)
    drawn = ist.DAG(list("abcd"), [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c")])
    answer = ist.validate(table, drawn, permutations=0)
    assert {(i.x, i.y) for i in answer.objections} == {("a", "d"), ("b", "d")}
    assert [(e.cause, e.effect) for e in answer.unsupported] == [("a", "c")]
    assert set(answer.asked.edges) == {*TRUE.edges, ("b", "d")}
    legend = answer.plot().get_legend()
    assert legend is not None
    told = " ".join(text.get_text() for text in legend.get_texts())
    assert "missing" in told
    assert "added" in told


@pytest.mark.parametrize("search", [None, ist.BossFCI()])
def test_reports_show_the_answer(search: ist.BossFCI | None, tmp_path: Path) -> None:
    table = rows(800)
    solution = ist.learn(table[:400], search=search)
    own = ist.DAG(list("abcd")) if search is None else ist.PAG(list("abcd"))
    answer = ist.validate(table[400:], own)
    solution.report(tmp_path / "with.html", validation=answer)
    text = (tmp_path / "with.html").read_text(encoding="utf-8")
    assert '<details id="check">' in text
    assert "object to the graph: they reject 6 of 6" in text
    for objection in answer.objections:
        assert f"<td>{objection}</td>" in text.replace('<td tabindex="0">', "<td>")
    solution.report(tmp_path / "without.html")
    assert 'id="check"' not in (tmp_path / "without.html").read_text(encoding="utf-8")


def test_knowledge_alone_is_tested_in_the_best_graph_that_agrees_with_it() -> None:
    """b ← a → c, with b and c in one tier, and e alone."""
    import pandas as pd

    rng = np.random.default_rng(8)
    a, e = rng.normal(size=(2, 1500))
    b, c = 0.6 * a + rng.normal(size=1500), 0.6 * a + rng.normal(size=1500)
    table = pd.DataFrame({"a": a, "b": b, "c": c, "e": e})
    both_ways = [("b", "c"), ("c", "b")]
    right = ist.Knowledge(roots=["a", "e"], forbidden=both_ways, required=[("a", "b"), ("e", "c")])
    answer = ist.validate(table, right)
    assert answer.agrees
    found = {frozenset((i.x, i.y)): i.p_from_sums for i in answer.independences}
    assert found.keys() == {frozenset("ae"), frozenset("bc")}
    assert found[frozenset("ae")] == pytest.approx(partial_p(table, "a", "e", []))
    # Of b and c, the later one has the parents that the learned graph gives it.
    given = next(i.given for i in answer.independences if {i.x, i.y} == {"b", "c"})
    assert {*given} <= {"a", "e"}
    assert found[frozenset("bc")] == pytest.approx(partial_p(table, "b", "c", [*given]))
    assert [(each.cause, each.effect) for each in answer.unsupported] == [("e", "c")]
    assert "1 of 2 required edges: e → c" in str(answer)
    wrong = ist.validate(table, ist.Knowledge(forbidden=[("a", "b"), ("b", "a")]))
    assert [str(i)[:7] for i in wrong.objections] in (["a and b"], ["b and a"])
    assert "object to the knowledge" in str(wrong)
    assert "excludes no pair" in str(ist.validate(table, ist.Knowledge(roots=["a"])))


def test_directions_that_the_data_decide_contradict_knowledge() -> None:
    """Four causes of one effect, which would need six more edges with the effect first."""
    import pandas as pd

    rng = np.random.default_rng(6)
    causes = rng.normal(size=(5000, 4))
    table = pd.DataFrame(causes, columns=list("abcd"))
    table["e"] = causes.sum(axis=1) + rng.normal(size=5000)
    answer = ist.validate(table, ist.Knowledge(tiers=[["e"], [*"abcd"]]))
    assert not answer.agrees
    assert {text[:5] for text in answer.contradicted} == {f"{v} → e" for v in "abcd"}
    assert "decide against the knowledge" in str(answer)
    assert not ist.validate(table, ist.Knowledge(tiers=[[*"abcd"], ["e"]])).contradicted


def test_knowledge_is_tested_everywhere_the_same() -> None:
    import duckdb

    table = rows(600)
    known = ist.Knowledge(tiers=[["a"], ["b"], ["c", "d"]], forbidden=[("a", "d"), ("b", "d")])
    expected = ist.validate(table, known)
    with duckdb.connect() as connection:
        parts = [table[:200], table[200:400], table[400:]]
        sites = ist.Federation.simulate(parts, within_sites=False)
        for data in (connection.from_df(table), sites):
            answer = ist.validate(data, known)
            assert answer.dag == expected.dag
            for one, other in zip(answer.independences, expected.independences, strict=True):
                assert (one.x, one.y, one.given) == (other.x, other.y, other.given)
                assert one.p_from_sums == pytest.approx(other.p_from_sums, rel=1e-4)


def test_shuffled_names_of_a_small_graph_say_that_they_cannot_tell() -> None:
    """Of the six namings of a chain of three, two are the same graph: the share is never small."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    b = a + rng.normal(size=300)
    table = {"a": a, "b": b, "c": b + rng.normal(size=300)}
    answer = ist.validate(table, ist.DAG([*"abc"], [("a", "b"), ("b", "c")]))
    assert answer.shuffled is not None
    assert 40 < answer.shuffled.equal < 95  # a third of 200
    assert "cannot tell" in str(answer)
    assert "the only independence" in str(answer)
    larger = {name: rng.normal(size=300) for name in "defgh"}
    larger["e"] += larger["d"]
    graph = ist.DAG([*"abcdefgh"], [("a", "b"), ("b", "c"), ("d", "e")])
    assert "scores better than itself" in str(ist.validate({**table, **larger}, graph))
