"""The bootstrap: the right rows, the same result everywhere, and honest refusals."""

from __future__ import annotations

import _thread
import threading
import time
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, MismatchError, NoDrawsError
from isthmus.graphs import CPDAG
from isthmus.statistics import Moments, Rows, Schema
from isthmus.verbs import bootstrap as module

Table = dict[str, Any]


@pytest.fixture
def discrete() -> Table:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 120)
    b = (a + (rng.random(120) < 0.4)) % 3
    c = (b + (rng.random(120) < 0.4)) % 3
    return {"a": a, "b": b, "c": c, "d": rng.integers(0, 2, 120)}


@pytest.fixture
def numeric() -> Table:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 60))
    return {
        "a": a,
        "b": b,
        "c": 0.6 * a + 0.5 * b + rng.normal(size=60),
        "é d": rng.normal(size=60),
    }


def shares(dags: list[ist.DAG]) -> dict[CPDAG, float]:
    found: dict[CPDAG, float] = {}
    for dag in dags:
        found[dag.cpdag()] = found.get(dag.cpdag(), 0.0) + 1 / len(dags)
    return found


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize("kind", ["discrete", "numeric"])
def test_each_replicate_is_learned_from_rows_drawn_with_replacement(
    kind: str, request: pytest.FixtureRequest
) -> None:
    table: Table = request.getfixturevalue(kind)
    score: Any = ist.BIC() if kind == "discrete" else ist.GaussianBIC()
    found = ist.bootstrap(table, score=score, search=ist.SubsetDP(), replicates=20, seed=5)
    schema = ist.Frame(table).schema()
    n = len(table["a"])
    dags = []
    for i in range(20):
        rows = np.random.default_rng((5, i)).integers(n, size=n)
        drawn = {name: column[rows] for name, column in table.items()}
        source = ist.Frame(drawn, schema=schema)
        dags.append(ist.learn(source, score=score, search=ist.SubsetDP()).dag)
    expected = shares(dags)
    assert len(expected) > 1
    assert {c: pytest.approx(w) for c, w in expected.items()} == dict(found.equivalence_classes())


@pytest.mark.long
def test_the_number_of_jobs_does_not_matter(discrete: Table) -> None:
    one = ist.bootstrap(discrete, replicates=30, jobs=1, seed=2)
    for jobs in (2, 7, None):
        other = ist.bootstrap(discrete, replicates=30, jobs=jobs, seed=2)
        assert other.dags == one.dags
        np.testing.assert_array_equal(other.weights, one.weights)
    assert ist.bootstrap(discrete, replicates=30, seed=3).dags != one.dags


def test_counts_with_weights_are_drawn_from_like_rows() -> None:
    rng = np.random.default_rng(3)
    a = rng.integers(0, 2, 400)
    table = {"a": a, "b": np.where(rng.random(400) < 0.43, a, rng.integers(0, 2, 400))}
    weighted = ist.summarise(table, plan=ist.CountPlan.everything())
    assert isinstance(weighted, ist.Counts)
    joint = weighted.joint
    assert joint is not None
    assert joint.weights is not None
    total = np.zeros((2, 2))
    for i in range(300):
        drawn = weighted.redrawn(np.random.default_rng(i)).joint
        assert drawn is not None
        assert drawn.n == 400
        np.add.at(total, tuple(drawn.codes), drawn.filled())
    expected = weighted.table(["a", "b"])
    # The mean of 300 draws has a standard error of at most 10 / sqrt(300) = 0.6.
    np.testing.assert_allclose(total / 300, expected, atol=3)


@pytest.mark.long
def test_directions_that_data_cannot_tell_are_balanced() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    table = {"a": a, "b": a + rng.normal(size=300)}
    ensemble = ist.bootstrap(table, replicates=400, seed=1)
    assert ensemble.adjacency_probabilities()[0, 1] == 1.0
    # 400 fair coins: five standard deviations are 0.125.
    assert abs(ensemble.direction_probabilities()[0, 1] - 0.5) < 0.125


def test_knowledge_holds_in_every_replicate(discrete: Table) -> None:
    knowledge = ist.Knowledge(required=[("d", "a")], forbidden=[("a", "b")])
    ensemble = ist.bootstrap(discrete, replicates=30, knowledge=knowledge)
    edges = ensemble.edge_probabilities()
    assert edges[3, 0] == pytest.approx(1)
    assert edges[0, 1] == 0


def test_scores_on_rows_and_on_mixed_tables(numeric: Table, discrete: Table) -> None:
    mixed = {"x": numeric["a"], "y": discrete["a"][:60], "z": numeric["c"]}
    assert ist.bootstrap(mixed, replicates=5).nodes == ("x", "y", "z")
    small = {k: numeric[k][:25] for k in ("a", "c")}
    rows = ist.bootstrap(small, score=ist.ExactGP(), replicates=2, search=ist.HillClimb())
    assert rows.nodes == ("a", "c")
    table = np.stack(list(small.values()), axis=1)
    given = Rows(Schema.continuous(["a", "c"]), table)
    assert (
        ist.bootstrap(given, score=ist.ExactGP(), replicates=2, search=ist.HillClimb()).dags
        == rows.dags
    )


@pytest.mark.parametrize(
    "table",
    [
        {"a": [1.5]},
        {"a": [1.5], "b": [2.5]},
        {"a": ["x", "y", "x"], "b": ["u", "u", "u"]},
        {"a": [1.0, 1.0, 1.0, 1.0], "b": [0.5, 2.0, 3.0, 1.0]},
        {"a": ["x"] * 5, "b": ["y"] * 5},
    ],
)
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_degenerate_tables(table: Table) -> None:
    ensemble = ist.bootstrap(table, replicates=10)
    assert ensemble.weights.sum() == pytest.approx(1)
    assert ensemble.averaged_graph().nodes == tuple(table)


def test_a_discrete_table_of_an_engine_is_drawn_from_its_counts(discrete: Table) -> None:
    pl = pytest.importorskip("polars")
    kinds = dict.fromkeys(discrete, ist.Kind.DISCRETE)
    lazy = ist.bootstrap(pl.LazyFrame(discrete), replicates=40, kinds=kinds, seed=1)
    frame = ist.bootstrap(discrete, replicates=40, seed=1)
    difference = lazy.adjacency_probabilities() - frame.adjacency_probabilities()
    assert np.abs(difference).max() < 0.4  # other draws of the same rows
    assert lazy.disclosure.entries or frame.disclosure == ist.Disclosure.none()


def test_without_rows_the_message_names_what_to_do(numeric: Table, discrete: Table) -> None:
    with pytest.raises(MismatchError, match=r"draws rows.*sample\(data\)"):
        ist.bootstrap(ist.summarise(numeric))
    planned = ist.summarise(discrete, plan=ist.CountPlan.sets([("a", "b")]))
    with pytest.raises(MismatchError, match=r"Plan.everything"):
        ist.bootstrap(planned, score=ist.BIC())
    pl = pytest.importorskip("polars")
    with pytest.raises(MismatchError, match="table in memory"):
        ist.bootstrap(pl.LazyFrame(numeric))


@pytest.mark.parametrize(
    "wrong",
    [{"replicates": 0}, {"replicates": 2.5}, {"jobs": 0}, {"seed": -1}, {"time_limit": -1}],
)
def test_wrong_arguments(numeric: Table, wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        ist.bootstrap(numeric, **wrong)


def test_time_limit_and_interruption_keep_what_is_finished(
    discrete: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = threading.Event()
    learn = module._Replicates.learn

    def slow(self: Any, number: int, stopped: Any) -> ist.DAG | None:
        if number > 2:
            first.wait(5)
        return learn(self, number, stopped)

    def interrupt(state: Any) -> None:
        if state.done >= 3 / 50:
            first.set()
            raise KeyboardInterrupt

    monkeypatch.setattr(module._Replicates, "learn", slow)
    monkeypatch.setattr(module, "_POLL", 0.001)
    monkeypatch.setattr(module, "_REPORT_INTERVAL", 0.0)
    ensemble = ist.bootstrap(discrete, replicates=50, jobs=4, progress=interrupt)
    assert "of 50 replicates" in ensemble.notes[-1]
    assert threading.active_count() < 10


def test_an_interruption_does_not_wait_for_thousands_of_replicates(
    discrete: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = module._Replicates.learn
    begun: list[int] = []

    def interrupting(self: Any, number: int, stopped: Any) -> ist.DAG | None:
        begun.append(number)
        if number == 1:  # the first one is kept
            _thread.interrupt_main()
        return learn(self, number, stopped)

    monkeypatch.setattr(module._Replicates, "learn", interrupting)
    try:
        ensemble = ist.bootstrap(discrete, replicates=3000, jobs=1)
    except KeyboardInterrupt:
        pytest.fail(f"The interruption was handled after {len(begun)} replicates.")
    assert "of 3000 replicates" in ensemble.notes[-1]
    assert len(begun) < 1000


def test_a_time_limit_without_any_replicate(
    discrete: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(self: Any, number: int, stopped: Any) -> None:
        while not stopped():
            time.sleep(0.001)

    monkeypatch.setattr(module._Replicates, "learn", endless)
    with pytest.raises(NoDrawsError, match="time limit"):
        ist.bootstrap(discrete, time_limit=0.1)


def test_an_error_in_a_replicate_is_raised(
    discrete: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, number: int, stopped: Any) -> None:
        raise ZeroDivisionError(number)

    monkeypatch.setattr(module._Replicates, "learn", fail)
    with pytest.raises(ZeroDivisionError):
        ist.bootstrap(discrete)


def test_moments_of_basis_functions(numeric: Table) -> None:
    table = {k: numeric[k] for k in ("a", "b", "c")}
    ensemble = ist.bootstrap(table, score=ist.AdditiveLeastSquares(), replicates=3)
    assert ensemble.nodes == ("a", "b", "c")
    assert isinstance(ist.summarise(table), Moments)


def holes(table: Table, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    out: Table = {}
    for name, column in table.items():
        values = column.astype(object) if column.dtype.kind in "iu" else column.copy()
        values[rng.random(len(values)) < 0.1] = None if values.dtype == object else np.nan
        out[name] = values
    return out


def test_missing_values(discrete: Table, numeric: Table) -> None:
    table, kinds = holes(discrete, 1), dict.fromkeys(discrete, "discrete")
    complete = [i for i in range(120) if all(column[i] is not None for column in table.values())]
    dropped = ist.bootstrap(table, missing=ist.DropRows(), kinds=kinds, replicates=10)
    kept = {name: column[complete].astype(int) for name, column in table.items()}
    assert dropped.dags == ist.bootstrap(kept, kinds=kinds, replicates=10).dags
    own = ist.bootstrap(table, missing=ist.MissingAsLevel(), kinds=kinds, replicates=10)
    assert own.nodes == tuple(table)
    score = ist.BIC()
    average = ist.bootstrap(
        table, score=score, missing=ist.AvailableCases(), kinds=kinds, replicates=5, seed=4
    )
    dags = []
    for i in range(5):
        rows = np.random.default_rng((4, i)).integers(120, size=120)
        drawn = {name: column[rows] for name, column in table.items()}
        solution = ist.learn(drawn, score=score, missing=ist.AvailableCases(), kinds=kinds)
        dags.append(solution.dag)
    assert {c: pytest.approx(w) for c, w in shares(dags).items()} == dict(
        average.equivalence_classes()
    )
    lazy = pytest.importorskip("polars").DataFrame(holes(numeric, 2), nan_to_null=True).lazy()
    with pytest.raises(MismatchError, match="in memory"):
        ist.bootstrap(lazy, missing=ist.ExpectationMaximisation())
