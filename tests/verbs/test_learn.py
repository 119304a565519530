"""The front door: what a user writes and gets."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.notes import noted
from tests.searches.slow import linear_data

import isthmus as ist
from isthmus import simulate
from isthmus.errors import MismatchError, MissingValuesError, UnplannedError
from isthmus.networks import DiscreteNetwork, GaussianNetwork, MixedNetwork, NormalMixture
from isthmus.watch import Ending

Table = dict[str, np.ndarray[tuple[int], np.dtype[np.float64]]]


def linear_table(seed: int = 0, n: int = 500, d: int = 6) -> tuple[Table, ist.DAG]:
    x, weights = linear_data(seed, n, d, d)
    names = [f"x{i}" for i in range(d)]
    return dict(zip(names, x.T, strict=True)), ist.DAG.from_adjacency(names, weights != 0)


def mixed_table(seed: int = 0, n: int = 800) -> dict[str, object]:
    rng = np.random.default_rng(seed)
    smoker = rng.random(n) < 0.3
    dose = rng.normal(size=n) + 2.0 * smoker
    group = np.where(dose > 1.5, "high", np.where(dose > 0, "mid", "low"))
    return {"smoker": smoker, "dose": dose, "group": group, "noise": rng.normal(size=n)}


def test_continuous_table() -> None:
    table, truth = linear_table()
    solution = ist.learn(table)
    assert ist.shd(solution.dag.cpdag(), truth.cpdag()) == 0
    assert "all columns are continuous" in solution.choice
    assert solution.status.finished
    assert solution.disclosure == ist.Disclosure.none()
    assert solution.score == pytest.approx(ist.score(table, solution.dag, ist.GaussianEBIC()))
    assert ist.score(table, solution.dag) == ist.score(table, solution.dag, ist.GaussianEBIC())


def test_mixed_table() -> None:
    solution = ist.learn(mixed_table())
    assert "2 of 4 columns are discrete" in solution.choice
    # The thresholds are not linear, so an edge from smoker to group is no surprise.
    assert {("smoker", "dose"), ("dose", "group")} <= set(solution.dag.skeleton().edges)


def test_answers_of_mixed_networks_do_not_depend_on_the_order_of_columns() -> None:
    rng = np.random.default_rng(5)
    month = rng.integers(0, 12, 600)
    rise = np.cos(month) + rng.normal(scale=0.3, size=600)
    table = {"rise": rise, "month": np.array([f"m{i}" for i in range(12)])[month]}
    for names in (["rise", "month"], ["month", "rise"]):
        solution = ist.learn({name: table[name] for name in names})
        assert solution.cpdag.undirected
        assert solution.dag.edges == (("month", "rise"),)
        network = solution.fit(pseudo_count=0)
        assert isinstance(network, MixedNetwork)
        answer = network.query("rise", evidence={"month": "m3"})
        assert isinstance(answer, NormalMixture)
        assert answer.mean[0] == pytest.approx(rise[month == 3].mean())
    backwards = ist.learn(table, knowledge=ist.Knowledge(required=[("rise", "month")]))
    assert backwards.dag.edges == (("rise", "month"),)


def test_discrete_table_fits_and_is_written_as_bif(tmp_path: Path) -> None:
    table = {k: v for k, v in mixed_table().items() if k in ("smoker", "group")}
    solution = ist.learn(table)
    network = solution.fit()
    assert isinstance(network, DiscreteNetwork)
    assert set(network.levels["group"]) == {"high", "low", "mid"}
    solution.save_bif(tmp_path / "network.bif")
    from isthmus.io import read_bif

    assert read_bif(tmp_path / "network.bif").dag == solution.dag


def test_fitted_regressions_are_those_of_least_squares() -> None:
    table, _ = linear_table(n=2000)
    solution = ist.learn(table)
    network = solution.fit()
    assert isinstance(network, GaussianNetwork)
    for child in solution.dag.nodes:
        parents = solution.dag.parents(child)
        design = np.column_stack([np.ones(2000), *(table[p] for p in parents)])
        expected = np.linalg.lstsq(design, table[child], rcond=None)[0]
        found = [network.intercepts[child], *(network.coefficients[child][p] for p in parents)]
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)
        residual = table[child] - design @ expected
        assert network.variances[child] == pytest.approx(np.mean(residual**2))


def test_strengths_are_what_the_score_loses() -> None:
    table, _ = linear_table()
    solution = ist.learn(table)
    strengths = solution.strengths()
    assert set(strengths) == set(solution.dag.edges)
    edge = solution.dag.edges[0]
    fewer = ist.DAG(solution.dag.nodes, [e for e in solution.dag.edges if e != edge])
    lost = solution.score - ist.score(table, fewer, ist.GaussianEBIC())
    assert strengths[edge] == pytest.approx(lost)
    assert min(strengths.values()) > 0


def test_statistics_can_be_saved_and_learned_from(tmp_path: Path) -> None:
    table, _ = linear_table()
    moments = ist.summarise(table)
    assert isinstance(moments, ist.Moments)
    moments.save(tmp_path / "moments.npz")
    again = ist.Moments.load(tmp_path / "moments.npz")
    assert ist.learn(again).dag == ist.learn(table).dag


def test_two_halves_add_up_to_the_whole() -> None:
    table, _ = linear_table()
    halves = [{k: v[part] for k, v in table.items()} for part in (slice(0, 100), slice(100, None))]
    one, other = (ist.summarise(half) for half in halves)
    assert isinstance(one, ist.Moments)
    assert isinstance(other, ist.Moments)
    assert ist.learn(one + other).dag == ist.learn(table).dag


def test_knowledge_is_obeyed_and_shows_in_the_class() -> None:
    table, truth = linear_table(3)
    late, early = truth.edges[0]
    knowledge = ist.Knowledge(forbidden=[(late, early)])
    solution = ist.learn(table, knowledge=knowledge)
    assert (late, early) not in solution.dag.edges
    assert isinstance(solution.cpdag, ist.PDAG)


def test_same_seed_same_graph() -> None:
    table, _ = linear_table(5, d=12)
    assert ist.learn(table, seed=7).dag == ist.learn(table, seed=7).dag


def test_scores_and_tables_that_do_not_fit_are_told_apart() -> None:
    with pytest.raises(MismatchError, match="DegenerateGaussian"):
        ist.learn(mixed_table(), score=ist.GaussianBIC())
    with pytest.raises(MismatchError, match="discrete"):
        ist.learn(linear_table()[0], score=ist.BDeu())


def test_scores_of_weights_do_not_score_graphs() -> None:
    table, truth = linear_table()
    with pytest.raises(MismatchError, match="Give a local score"):
        ist.score(table, truth, ist.LeastSquares())


def test_missing_values_are_refused() -> None:
    table, _ = linear_table()
    table["x1"] = table["x1"].copy()
    table["x1"][3] = np.nan
    with pytest.raises(MissingValuesError, match="x1"):
        ist.learn(table)


def test_constants_and_copies_are_named() -> None:
    table, _ = linear_table()
    table["still"] = np.full(500, 4.0)
    table["copy"] = 3.0 * table["x0"] + 1.0
    with noted("'still'") as notes:
        solution = ist.learn(table)
    assert any("'copy'" in note and "'x0'" in note for note in notes)
    assert not solution.dag.parents("still")
    assert not solution.dag.children("still")
    assert any("still" in note for note in solution.notes)


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize("n", [1, 2, 4])
def test_very_few_rows(n: int) -> None:
    x = np.random.default_rng(0).normal(size=(n, 6))
    table = {f"é{i}": x[:, i] for i in range(6)}
    with noted("for 6 variables"):
        solution = ist.learn(table)
    assert solution.dag.nodes == tuple(table)


def test_progress_is_given_to_the_function() -> None:
    table, _ = linear_table(d=12)
    seen: list[object] = []
    solution = ist.learn(table, search=ist.Boss(starts=10**6), time_limit=0.5, progress=seen.append)
    assert seen
    assert solution.status.ending == "time limit"


def test_progress_line_is_written_and_wiped(capsys: pytest.CaptureFixture[str]) -> None:
    table, _ = linear_table(d=12)
    ist.learn(table, search=ist.Boss(starts=10**6), time_limit=0.5, progress=True)
    written = capsys.readouterr().err
    assert "Boss: start" in written
    assert written.endswith("\r")


def test_summary_of_a_solution_reads_well() -> None:
    text = str(ist.learn(linear_table()[0]))
    assert "6 variables" in text
    assert "optimal" in text
    assert " open: the best graph" in text


@pytest.mark.long
def test_interrupt_returns_the_best_so_far() -> None:
    # A real SIGINT in a real process, in the middle of a search that would never end.
    program = """
import json, os, signal, threading
import numpy as np
import isthmus as ist
x = np.random.default_rng(0).normal(size=(200, 12))
x[:, 1:] += x[:, :-1]
table = {f"x{i}": x[:, i] for i in range(12)}
ist.learn(table, time_limit=0.1)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
solution = ist.learn(table, search=ist.Boss(starts=10**9))
print(json.dumps([solution.status.ending, len(solution.dag.edges)]))
"""
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300
    )
    ending, edges = json.loads(out.stdout)
    assert ending == "interrupted"
    assert edges >= 10


def test_search_and_score_that_do_not_fit_are_told_apart() -> None:
    with pytest.raises(MismatchError, match="needs local scores"):
        ist.learn(linear_table()[0], score=ist.LeastSquares(), search=ist.Boss())


@pytest.mark.long
def test_the_choice_of_the_search_is_explained() -> None:
    assert "few enough to search exhaustively" in ist.learn(linear_table()[0]).choice
    rng = np.random.default_rng(0)
    many = {f"x{i}": rng.normal(size=50) for i in range(20)}
    assert "the most accurate search for 20 variables" in ist.learn(many).choice
    assert "as requested" in ist.learn(linear_table()[0], search=ist.HillClimb()).choice
    categories = {f"c{i}": rng.integers(0, 2, 100) for i in range(20)}
    assert "XGES" in ist.learn(categories).choice
    # K2 tells equivalent graphs apart, so a search over classes would not do.
    assert "Boss" in ist.learn(categories, score=ist.K2()).choice
    two = {name: categories[name] for name in ("c0", "c1")}
    assert "few enough to search exhaustively" in ist.learn(two).choice


@pytest.mark.long
def test_few_variables_are_solved_for_the_best_graph_of_all() -> None:
    """Here a search over orders from one start ends below the best."""
    scores = []
    for seed in range(12):
        dag = simulate.erdos_renyi(7, 12, seed=seed)
        table = simulate.linear(dag, 300, seed=seed).data
        found = ist.learn(table)
        assert found.status.ending is Ending.OPTIMAL
        scores.append((found.score, ist.learn(table, search=ist.Boss(starts=1)).score))
    assert all(best >= other - 1e-9 for best, other in scores)
    assert any(best > other + 1e-6 for best, other in scores)


def test_integers_are_read_as_the_score_needs_them() -> None:
    rng = np.random.default_rng(0)
    few = {"a": rng.integers(0, 4, 300), "b": rng.integers(0, 4, 300)}
    many = {"a": rng.integers(0, 40, 300), "b": rng.integers(0, 40, 300)}
    assert ist.learn(few, score=ist.GaussianBIC()).dag.nodes == ("a", "b")
    assert ist.learn(many, score=ist.BIC()).dag.nodes == ("a", "b")
    assert "discrete" in ist.learn(few).choice
    assert "continuous" in ist.learn(many).choice


def test_planned_counts_serve_a_search_that_keeps_to_the_plan() -> None:
    rng = np.random.default_rng(0)
    codes = {f"x{i}": rng.integers(0, 3, 200) for i in range(6)}
    codes["x1"] = np.where(rng.random(200) < 0.8, codes["x0"], codes["x1"])
    counts = ist.summarise(codes, plan=ist.CountPlan.up_to(3))
    solution = ist.learn(counts, score=ist.BDeu(), search=ist.HillClimb(max_parents=2))
    assert solution.dag.skeleton().edges == (("x0", "x1"),)
    with pytest.raises(UnplannedError):
        ist.learn(ist.summarise(codes, plan=ist.CountPlan.up_to(2)), search=ist.HillClimb())
