"""Groups: sites, clinics and batches whose levels differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.errors import DataError, MismatchError, MissingValuesError, SchemaError

Table = dict[str, Any]


def numbers(seed: int, groups: int, rows: int, spread: float) -> Table:
    """Two chains and a column on its own; all levels differ between groups."""
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(groups), rows))
    x, y, z, w, u = rng.normal(size=(5, len(group)))
    columns = {"x": x, "y": y + 0.8 * x, "z": z, "w": w + 0.8 * z, "u": u}
    level = rng.normal(scale=spread, size=(5, groups))
    table: Table = {n: v + level[i, group] for i, (n, v) in enumerate(columns.items())}
    return table | {"site": np.array([f"site {g}" for g in group])}


def levels(seed: int, groups: int, rows: int, spread: float, some_numbers: bool = False) -> Table:
    """Three levels each; the logits differ between groups. Some columns as numbers, if mixed."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), rows)
    shift = rng.normal(scale=spread, size=(5, groups, 3))

    def drawn(i: int, given: Any = None) -> Any:
        logits = shift[i, group].copy()
        if given is not None:
            logits[np.arange(len(group)), given] += 2.0
        return (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)

    x, z, u = drawn(0), drawn(1), drawn(4)
    codes = {"x": x, "y": drawn(2, x), "z": z, "w": drawn(3, z), "u": u}
    table: Table = {n: np.array(["low", "middle", "high"])[c] for n, c in codes.items()}
    if some_numbers:
        table |= {n: codes[n] + rng.normal(size=len(group)) for n in ("y", "u")}
    return table | {"site": group + 100}


def mixed(seed: int, groups: int, rows: int, spread: float) -> Table:
    return levels(seed, groups, rows, spread, some_numbers=True)


def within(data: Any, **options: Any) -> ist.Moments:
    moments = ist.summarise(data, groups="site", **options)
    assert isinstance(moments, ist.Moments)
    return moments


def weights(network: Any) -> Any:
    return network.weights()


def pairs(solution: Any) -> set[frozenset[str]]:
    return {frozenset(edge) for edge in solution.dag.edges}


TRUE = {frozenset("xy"), frozenset("zw")}


@pytest.mark.long
@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0])
@pytest.mark.parametrize(("groups", "rows"), [(2, 400), (6, 200), (60, 20), (300, 4)])
def test_levels_of_groups_cause_no_edges(groups: int, rows: int, spread: float) -> None:
    found = [pairs(ist.learn(numbers(s, groups, rows, spread), groups="site")) for s in range(5)]
    assert sum(len(own - TRUE) for own in found) <= 1
    assert all(own >= TRUE for own in found)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
@pytest.mark.parametrize("make", [levels, mixed])
@pytest.mark.parametrize(("groups", "rows"), [(2, 400), (60, 20), (150, 8)])
def test_levels_of_discrete_columns(groups: int, rows: int, make: Any) -> None:
    for spread in (0.0, 1.0):
        tables = [make(s, groups, rows, spread) for s in range(5)]
        found = [pairs(ist.learn(t, groups="site", kinds={"site": "discrete"})) for t in tables]
        assert sum(len(own - TRUE) for own in found) <= 1
        assert sum(len(TRUE - own) for own in found) <= 1


@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_without_groups_there_are_false_edges() -> None:
    assert pairs(ist.learn(numbers(0, 6, 200, 1.0) | {"site": np.zeros(1200)})) - TRUE
    assert pairs(ist.learn(numbers(0, 6, 200, 1.0), groups="site")) == TRUE


@pytest.mark.long
@pytest.mark.parametrize("make", [numbers, levels, mixed])
def test_every_engine_gives_the_same_moments(lazy_constructor: Any, make: Any) -> None:
    table = make(1, 7, 30, 2.0)
    expected = within(table)
    got = within(lazy_constructor(table))
    assert (got.schema, got.n, got.groups) == (expected.schema, expected.n, expected.groups)
    np.testing.assert_allclose(got.scatter(), expected.scatter(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got.mean(), expected.mean(), rtol=1e-9, atol=1e-12)


@pytest.mark.long
def test_basis_functions_in_an_engine() -> None:
    polars = pytest.importorskip("polars")
    table = numbers(2, 20, 30, 1.0)
    score = ist.GP()
    dag = ist.DAG(["x", "y"], [("x", "y")])
    lazy = ist.score(polars.DataFrame(table).lazy(), dag, score, groups="site")
    assert ist.score(table, dag, score, groups="site") == pytest.approx(lazy)


def test_units_levels_names_and_order_do_not_matter() -> None:
    table = numbers(3, 10, 50, 1.0)
    solution = ist.learn(table, groups="site")
    order = np.random.default_rng(0).permutation(500)
    other = {n: v[order] for n, v in reversed(table.items())}
    other["x"] = 1e6 * other["x"] + 1e9
    other["site"] = np.unique(other["site"], return_inverse=True)[1] * 7 - 3
    again = ist.learn(other, groups="site")
    assert pairs(again) == pairs(solution)
    np.testing.assert_allclose(
        within(other).correlation()[::-1, ::-1],
        within(table).correlation(),
        atol=1e-6,
    )


def test_all_verbs_take_groups() -> None:
    table = numbers(4, 30, 20, 2.0)
    moments = within(table)
    dag = ist.DAG(["x", "y", "z", "w", "u"], [("x", "y"), ("z", "w")])
    assert ist.score(table, dag, groups="site") == pytest.approx(ist.score(moments, dag))
    assert ist.parent_sets(table, groups="site").nodes == dag.nodes
    posterior = ist.sample(table, groups="site", draws=50)
    assert posterior.edge_probabilities()[0, 2] < 0.1
    assert posterior.ensemble.rows == 600
    ensemble = ist.bootstrap(table, groups="site", replicates=20)
    adjacent = ensemble.adjacency_probabilities()
    assert adjacent[0, 1] > 0.99
    assert adjacent[0, 2] < 0.3
    assert weights(ist.fit(table, dag, groups="site"))[0, 1] == pytest.approx(0.8, abs=0.15)
    assert ist.effect(table, dag, "x", "y", groups="site").value == pytest.approx(0.8, abs=0.15)
    solution = ist.learn(table, groups="site")
    assert "groups='site'" in solution.provenance.code
    assert weights(solution.fit()) == pytest.approx(
        weights(ist.fit(table, solution.dag, groups="site"))
    )
    # A solution knows its groups: the same table gives the same answer.
    again = ist.effect(table, solution, "x", "y")
    assert again.possible == pytest.approx(ist.effect(moments, solution, "x", "y").possible)
    assert weights(solution.fit(table)) == pytest.approx(weights(solution.fit()))
    for search in (ist.PC(), ist.BossFCI()):
        ist.learn(table, groups="site", search=search)
    scored = ist.learn(table, groups="site", transform=ist.NormalScores())
    assert set(scored.dag.nodes) == set(dag.nodes)


def test_effects_within_groups_have_their_coverage() -> None:
    """Intervals of an effect that differs in sign between and within groups; groups of three."""
    dag, covered = ist.DAG(["x", "y"], [("x", "y")]), 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        group = np.repeat(np.arange(40), 3)
        level = 3.0 * rng.normal(size=40)[group]
        x = rng.normal(size=120) + level
        y = 0.5 * (x - level) - level + rng.normal(size=120)
        low, high = ist.effect({"x": x, "y": y, "g": group}, dag, "x", "y", groups="g").interval()
        covered += low <= 0.5 <= high
    assert 89 <= covered <= 99


def test_constants_within_groups_are_named() -> None:
    table = numbers(5, 10, 20, 1.0)
    table["country"] = np.where(table["site"] < "site 5", "a", "b")
    table["beds"] = np.unique(table["site"], return_inverse=True)[1] * 100.5
    with noted("Constant within the groups"):
        solution = ist.learn(table, groups="site")
    assert pairs(solution) == TRUE
    assert solution.reading["beds"].reason == "it has one value within each group"
    (note,) = (n for n in solution.notes if "Constant" in n)
    assert "'country' and 'beds'" in note


def test_what_groups_cannot_do_is_refused() -> None:
    table = numbers(6, 10, 20, 1.0)
    discrete = levels(6, 10, 20, 1.0)
    dag = ist.DAG(["x", "y"], [("x", "y")])
    with pytest.raises(SchemaError, match="no column 'clinic'"):
        ist.learn(table, groups="clinic")
    with pytest.raises(SchemaError, match="name of a column"):
        ist.learn(table, groups=["site"])  # type: ignore[call-overload]
    with pytest.raises(SchemaError, match="table itself"):
        ist.learn(ist.Frame(table), groups="site")
    with pytest.raises(DataError, match="one row each"):
        ist.learn(table | {"site": np.arange(200)}, groups="site")
    with pytest.raises(SchemaError, match="no variable"):
        ist.learn({"site": table["site"]}, groups="site")
    with pytest.raises(MismatchError, match="DegenerateGaussian"):
        ist.learn(discrete, groups="site", score=ist.BDeu())
    with pytest.raises(MismatchError, match="moments"):
        ist.learn(table, groups="site", search=ist.NotearsMLP())
    with pytest.raises(MismatchError, match="continuous"):
        ist.effect(discrete, dag, "x", "y", groups="site", change=("low", "high"))
    with pytest.raises(MismatchError, match="DropRows"):
        ist.learn(
            table | {"x": np.where(np.arange(200) < 5, np.nan, table["x"])},
            groups="site",
            missing=ist.ExpectationMaximisation(),
        )


def test_missing_values_and_groups() -> None:
    table = numbers(7, 10, 20, 1.0)
    table["x"] = np.where(np.arange(200) % 9 == 0, np.nan, table["x"])
    site = table["site"].astype(object)
    site[:3] = None
    with pytest.raises(MissingValuesError, match="'site'"):
        ist.learn(numbers(7, 10, 20, 1.0) | {"site": site}, groups="site")
    table["site"] = site
    kept = np.array([s is not None for s in site]) & ~np.isnan(table["x"])
    complete = {n: v[kept] for n, v in table.items()} | {"site": site[kept].astype(str)}
    expected = within(complete)
    got = within(table, missing=ist.DropRows())
    np.testing.assert_allclose(got.scatter(), expected.scatter(), rtol=1e-12)
    assert got.n == expected.n


def test_missing_groups_in_an_engine_are_refused() -> None:
    polars = pytest.importorskip("polars")
    table = numbers(7, 10, 20, 1.0)
    frame = polars.DataFrame({n: v.tolist() for n, v in table.items()})
    lazy = frame.with_columns(
        polars.when(polars.col("site") == "site 3")
        .then(None)
        .otherwise(polars.col("site"))
        .alias("site")
    ).lazy()
    with pytest.raises(DataError, match="no group"):
        ist.learn(lazy, groups="site")


def test_the_command_line_takes_groups(tmp_path: Any, capsys: Any) -> None:
    from isthmus.cli import main

    pandas = pytest.importorskip("pandas")
    pandas.DataFrame(numbers(8, 6, 100, 1.0)).to_csv(tmp_path / "table.csv", index=False)
    file, edges = str(tmp_path / "table.csv"), str(tmp_path / "edges.csv")
    assert main(["learn", file, "--groups", "site", "-o", edges]) == 0
    assert "2 edges, 5 variables" in capsys.readouterr().out
    assert main(["learn", file, "--groups", "site", "--explain"]) == 0
    assert main(["effect", edges, file, "x", "y", "--groups", "site"]) == 0
    assert main(["learn", file, "--groups", "clinic"]) != 0
