"""Missing values: every strategy against an independent computation."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isthmus as ist
from isthmus.errors import ArgumentError, DataError, MismatchError, MissingValuesError, SchemaError
from isthmus.scores.criterion import AvailableCasesScore
from isthmus.statistics.incomplete import IncompleteCounts
from isthmus.tables import Missing, as_source
from isthmus.verbs.fit import fit

Table = dict[str, Any]
Constructor = Callable[[Table], Any]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def codes(d: int, n: int, share: float, seed: int = 0) -> tuple[ist.Schema, np.ndarray[Any, Any]]:
    cards = rng(seed).integers(1, 4, d)
    values = np.stack([rng(seed + i).integers(0, c, n) for i, c in enumerate(cards, start=1)])
    values[1 % d] = values[0] % cards[1 % d]  # some dependence
    values = np.where(rng(seed).random((d, n)) < share, cards[:, None], values)
    schema = ist.Schema.discrete({f"v{i}": list(range(c)) for i, c in enumerate(cards.tolist())})
    return schema, values.astype(np.uint16)


def complete_rows(statistics: IncompleteCounts, chosen: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The values of some variables in the rows that have all of them."""
    cards = statistics.schema.cardinalities
    rows = zip(*(statistics.codes[v].tolist() for v in chosen), strict=True)
    return [row for row in rows if all(x < cards[v] for x, v in zip(row, chosen, strict=True))]


def gains(rows: list[tuple[int, ...]]) -> list[float]:
    """What each row contributes to the total correlation."""
    m, joint = len(rows), Counter(rows)
    single = [Counter(column) for column in zip(*rows, strict=True)]
    return [
        float(np.log(joint[row] / m))
        - sum(float(np.log(c[x] / m)) for c, x in zip(single, row, strict=True))
        for row in rows
    ]


def of_set(statistics: IncompleteCounts, chosen: tuple[int, ...], each: float) -> float:
    if len(chosen) < 2:
        return 0.0
    rows = complete_rows(statistics, chosen)
    sizes = statistics.schema.cardinalities[list(chosen)]
    free = np.prod(sizes) - 1 - (sizes - 1).sum()
    return float(statistics.n * (np.mean(gains(rows)) - each * free / len(rows)))


def largest(statistics: IncompleteCounts, v: int) -> float:
    """The largest variance of the contributions of rows to the information of a pair with v."""
    pairs = [complete_rows(statistics, (v, w)) for w in range(len(statistics.schema)) if w != v]
    return max(0.2, *(float(np.var(gains(rows))) for rows in pairs))


def expected(
    statistics: IncompleteCounts, child: int, parents: tuple[int, ...], each: float, caution: float
) -> float:
    """The score by its definition, row by row."""
    n = statistics.n
    family = (*parents, child)
    if not complete_rows(statistics, family):
        return -np.inf
    own = complete_rows(statistics, (child,))
    value = n * np.mean([np.log(own.count(row) / len(own)) for row in own])
    value -= each * (statistics.schema.cardinalities[child] - 1)
    for parent in parents:
        both = complete_rows(statistics, (child, parent))
        spread = max(largest(statistics, child), largest(statistics, parent))
        value -= caution * np.sqrt(n * np.log(n) * (n / len(both) - 1) * spread)
    return float(value + of_set(statistics, family, each) - of_set(statistics, parents, each))


@pytest.mark.long
@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.3, 0.7]), st.sampled_from([0.0, 1.0]))
def test_node_average_by_its_definition(seed: int, share: float, caution: float) -> None:
    schema, values = codes(4, 25, share, seed)
    values[:, 0] = 0  # every variable has a value somewhere
    statistics = IncompleteCounts(schema, values)
    local = AvailableCasesScore(ist.BIC(), caution).bind(statistics)
    if not statistics.has_missing:
        return
    for child in range(4):
        others = [v for v in range(4) if v != child]
        for size in range(4):
            for parents in itertools.combinations(others, size):
                wanted = expected(statistics, child, parents, 0.5 * np.log(25), caution)
                assert local.local(child, parents) == pytest.approx(wanted, abs=1e-9)


@given(st.integers(0, 10**6))
def test_without_holes_it_is_the_criterion_bit_for_bit(seed: int) -> None:
    schema, values = codes(4, 60, 0.0, seed)
    counts = ist.Counts.from_codes(schema, values)
    for score in (ist.BIC(), ist.EBIC(), ist.AIC()):
        ours = AvailableCasesScore(score).bind(IncompleteCounts(schema, values))
        theirs = score.bind(counts)
        for child in range(4):
            others = [v for v in range(4) if v != child]
            assert ours.local(child, others) == theirs.local(child, others)
            np.testing.assert_array_equal(
                ours.extensions(child, (), others), theirs.extensions(child, (), others)
            )


def test_families_without_holes_keep_their_score() -> None:
    schema, values = codes(5, 200, 0.0, 3)
    complete = ist.BIC().bind(ist.Counts.from_codes(schema, values))
    values[4, ::3] = schema.cardinalities[4]
    local = AvailableCasesScore(ist.BIC()).bind(IncompleteCounts(schema, values))
    for parents in ([], [1], [1, 2], [3, 1, 2]):
        assert local.local(0, parents) == pytest.approx(complete.local(0, parents), abs=1e-9)


def alarm_like(n: int = 2000) -> Table:
    a = rng(1).integers(0, 3, n)
    b = np.where(rng(2).random(n) < 0.8, a, rng(3).integers(0, 3, n))
    c = np.where(rng(4).random(n) < 0.8, b, rng(5).integers(0, 3, n))
    return {
        "a": a.astype(str),
        "b": b.astype(str),
        "c": c.astype(str),
        "d": rng(6).choice(["u", "v"], n),
    }


def punched(table: Table, share: float, seed: int = 9) -> Table:
    holes = {}
    for i, (name, values) in enumerate(table.items()):
        cells = np.array(values, dtype=object if values.dtype.kind != "f" else float)
        cells[rng(seed + i).random(len(cells)) < share] = None if cells.dtype == object else np.nan
        holes[name] = cells
    return holes


CHAIN = {frozenset("ab"), frozenset("bc")}


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_node_average_learns_the_graph(share: float) -> None:
    solution = ist.learn(punched(alarm_like(), share), missing=ist.AvailableCases())
    assert {frozenset(e) for e in solution.dag.edges} == CHAIN
    assert "AvailableCasesScore" in solution.choice
    assert "complete for it" in str(solution)
    network = solution.fit()
    assert set(network.dag.nodes) == {"a", "b", "c", "d"}
    assert all(value > 0 for value in solution.strengths().values())


def test_variables_that_are_never_seen_together() -> None:
    table = punched(alarm_like(400), 0.0)
    table["a"][:200] = None
    table["b"][200:] = None
    with pytest.raises(MissingValuesError, match=r"'a' and 'b' \(0\)"):
        ist.learn(table, missing=ist.AvailableCases())


def gaussian(n: int = 1500) -> Table:
    x = rng(1).normal(size=n)
    y = 2.0 * x + rng(2).normal(size=n)
    return {"x": x, "y": y, "z": 1e6 - 0.01 * y + 0.01 * rng(3).normal(size=n)}


def test_moments_that_still_change_are_named() -> None:
    rows = rng(5).normal(size=(300, 12)) @ rng(6).normal(size=(12, 12))
    rows[rng(7).random(rows.shape) < 0.4] = np.nan
    table = {f"x{i}": column for i, column in enumerate(rows.T)}
    few = ist.learn(table, missing=ist.ExpectationMaximisation(max_iterations=1))
    assert any("after 1 iterations" in note for note in few.notes)
    # One iteration is always done; then the limit counts.
    em = ist.ExpectationMaximisation(max_iterations=100_000, tolerance=1e-300)
    limited = ist.learn(table, missing=em, time_limit=0.05)
    assert any("still changing after" in note for note in limited.notes)


def test_expectation_maximisation_learns_and_samples() -> None:
    table = punched(gaussian(), 0.2)
    em = ist.ExpectationMaximisation()
    solution = ist.learn(table, missing=em)
    assert {frozenset(e) for e in solution.dag.edges} == {frozenset("xy"), frozenset("yz")}
    posterior = ist.sample(table, missing=em, draws=50, seed=1)
    assert (
        posterior.probability(ist.edge("x", "y")) + posterior.probability(ist.edge("y", "x")) > 0.9
    )
    assert ist.summarise(table, missing=em).n == pytest.approx(1500 * 0.64, rel=0.05)
    whole = ist.learn(gaussian(), missing=em)
    assert whole.score == ist.learn(gaussian()).score
    with pytest.raises(MissingValuesError):
        ist.learn(table, missing=em, score=ist.ExactGP())


@pytest.mark.long
def test_rows_are_dropped_by_every_source(constructor: Constructor) -> None:
    data = {"x": np.array([1.5, None, 2.5, 0.5] * 20), "c": np.array(["a", "b", None, "b"] * 20)}
    pa = pytest.importorskip("pyarrow")
    table = {"x": pa.array(data["x"], pa.float64()), "c": pa.array(data["c"], pa.string())}
    if constructor is dict:
        table = data
    try:
        made = constructor(table)
    except (TypeError, ValueError):
        made = constructor(data)
    source = as_source(made, missing=ist.DropRows())
    kept = {"x": np.array([1.5, 0.5] * 20), "c": np.array(["a", "b"] * 20)}
    assert source.schema() == ist.Frame(kept).schema()
    np.testing.assert_allclose(
        source.moments().covariance(), ist.Frame(kept).moments().covariance()
    )
    assert isinstance(source, (ist.Frame, ist.Lazy))
    (note,) = source.reading().notes
    assert note.startswith("40 of 80 rows (50.0%) lack a value and were dropped, ")


@pytest.mark.parametrize(
    ("missing", "assumed"),
    [
        (ist.DropRows(), "missing completely at random"),
        (ist.AvailableCases(), "missing completely at random."),
        (ist.ExpectationMaximisation(), "right if values are missing at random."),
        (ist.StructuralEM(), "right if values are missing at random."),
    ],
)
def test_notes_state_what_a_strategy_assumes(missing: Any, assumed: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=60)
    y = np.where(rng.random(60) < 0.2, np.nan, x + rng.normal(size=60))
    table: dict[str, Any] = {"x": x, "y": y}
    if isinstance(missing, ist.AvailableCases | ist.StructuralEM):
        levels = np.where(np.nan_to_num(y) > 0, "up", "down").astype(object)
        levels[np.isnan(y)] = None
        table = {"x": np.where(x > 0, "up", "down"), "y": levels}
    assert any(assumed in note for note in ist.learn(table, missing=missing).notes)


def made_by(constructor: Constructor, data: Table) -> Any:
    """A table of numbers in which null stands for missing values where the library has one."""
    pa = pytest.importorskip("pyarrow")
    try:
        return constructor(
            {k: pa.array(v, pa.float64(), from_pandas=True) for k, v in data.items()}
        )
    except (TypeError, ValueError):
        return constructor(data)


@pytest.mark.long
def test_estimated_moments_of_every_source(constructor: Constructor) -> None:
    em = ist.ExpectationMaximisation()
    data = punched(gaussian(400), 0.2)
    for values in data.values():
        values[7] = np.nan  # a row without values
    there = ist.learn(data, missing=em)
    wanted = as_source(data, missing=em).moments()
    made = made_by(constructor, data)
    source = as_source(made, missing=em)
    found = source.moments()
    assert found.n == wanted.n
    np.testing.assert_allclose(found.mean(), wanted.mean(), rtol=1e-9)
    np.testing.assert_allclose(found.correlation(), wanted.correlation(), atol=1e-9)
    scale = np.sqrt(np.diagonal(wanted.covariance()))
    np.testing.assert_allclose(np.sqrt(np.diagonal(found.covariance())), scale, rtol=1e-9)
    solution = ist.learn(made, missing=em)
    assert solution.dag.cpdag() == there.dag.cpdag()  # graphs of one class differ by rounding
    assert solution.notes[0] == there.notes[0]
    # Holes beyond the first rows are found by a second pass; without holes nothing is estimated.
    if isinstance(source, ist.Lazy):
        late = ist.Lazy(made, schema=source.schema(), missing=em)
        np.testing.assert_array_equal(late.moments().gram, found.gram)
        assert "patterns of missing values" in str(late.disclosure()) or "rows of" in str(
            late.disclosure()
        )
    whole = made_by(constructor, gaussian(200))
    assert as_source(whole, missing=em).moments() == as_source(whole).moments()


def test_estimated_moments_of_engines_need_numbers(lazy_constructor: Constructor) -> None:
    pa = pytest.importorskip("pyarrow")
    numbers = pa.array([1.5, None, 2.5, 0.5] * 20, pa.float64())
    em = ist.ExpectationMaximisation()
    text = pa.array(["a", "b", None, "a"] * 20, pa.string())
    with pytest.raises(MissingValuesError, match="all columns are discrete"):
        as_source(lazy_constructor({"c": text, "d": text}), missing=em).schema()
    infinite = pa.array([1.5, None, float("inf"), 0.5] * 20, pa.float64())
    with pytest.raises(DataError, match=r"infinite in these columns: 'x' \(20\)"):
        as_source(lazy_constructor({"x": infinite, "y": numbers}), missing=em).moments()


@pytest.mark.long
@pytest.mark.parametrize("strategy", [ist.AvailableCases(), ist.StructuralEM(completions=2)])
def test_incomplete_rows_of_every_engine(constructor: Constructor, strategy: Missing) -> None:
    pa = pytest.importorskip("pyarrow")
    data = punched(alarm_like(300), 0.2)
    there = ist.learn(data, missing=strategy)
    try:
        made = constructor({k: pa.array(v, pa.string()) for k, v in data.items()})
    except (TypeError, ValueError):
        made = constructor(data)
    solution = ist.learn(made, missing=strategy)
    assert solution.notes[0] == there.notes[0]
    if isinstance(strategy, ist.AvailableCases):
        assert solution.score == pytest.approx(there.score, abs=1e-6)
        assert solution.dag.cpdag() == there.dag.cpdag()
        again = ist.bootstrap(made, missing=strategy, replicates=2)
        assert again.nodes == solution.dag.nodes
        with pytest.raises(MissingValuesError):
            as_source(made, missing=strategy).counts(ist.CountPlan.everything())


def test_a_level_of_its_own() -> None:
    table = {"c": np.array(["u", None, "missing", "u"] * 30, dtype=object), "k": np.arange(120) % 3}
    solution = ist.learn(table, missing=ist.MissingAsLevel())
    assert ist.Frame(table, missing=ist.MissingAsLevel()).schema()["c"].levels == (
        "missing",
        "u",
        "missing_",
    )
    assert "missing" in str(solution)
    flags = {"t": np.array([True, False, None] * 30, dtype=object), "k": np.arange(90) % 2}
    frame = ist.Frame(flags, missing=ist.MissingAsLevel("not asked"))
    assert frame.schema()["t"].levels == (False, True, "not asked")
    assert frame.counts(ist.CountPlan.everything()).table(["t"]).tolist() == [30, 30, 30]


@pytest.mark.parametrize(
    ("table", "missing", "error"),
    [
        (punched(gaussian(60), 0.3), ist.MissingAsLevel(), "takes discrete columns"),
        (punched(gaussian(60), 0.3), ist.StructuralEM(), "takes discrete columns"),
        (punched(alarm_like(60), 0.3), ist.ExpectationMaximisation(), "with continuous columns"),
        (punched(alarm_like(60), 0.3), None, r"missing=\.\.\.\) with DropRows"),
    ],
)
def test_what_a_strategy_cannot_treat(table: Table, missing: Missing, error: str) -> None:
    with pytest.raises(MissingValuesError, match=error):
        ist.learn(table, missing=missing)


def test_a_strategy_for_the_other_kind_is_named() -> None:
    with pytest.raises(MissingValuesError, match=r"Use ExpectationMaximisation\(\) or DropR"):
        ist.learn(punched(gaussian(60), 0.3), missing=ist.StructuralEM())
    with pytest.raises(MissingValuesError, match=r"StructuralEM\(\), AvailableCases\(\) or DropR"):
        ist.learn(punched(alarm_like(60), 0.3), missing=ist.ExpectationMaximisation())


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")  # edges of few rows
@pytest.mark.parametrize("missing", [ist.AvailableCases(), ist.StructuralEM()])
def test_statistics_and_parameters_without_a_score(missing: Missing) -> None:
    whole, table = alarm_like(60), punched(alarm_like(60), 0.3)
    dag = ist.DAG(list(table), [])
    with pytest.raises(MismatchError, match=r"DropRows\(\).*parent_sets"):
        ist.summarise(table, missing=missing)
    with pytest.raises(MismatchError, match=r"DropRows\(\).*learn"):
        fit(table, dag, missing=missing)
    assert fit(whole, dag, missing=missing) == fit(whole, dag)
    solution = ist.learn(table, missing=missing)
    with pytest.raises(MissingValuesError, match=r"solution.fit\(\) without data"):
        solution.fit(table)


def test_refusals() -> None:
    table = punched(alarm_like(60), 0.3)
    with pytest.raises(ArgumentError, match=r"'drop'.*missing=DropRows"):
        ist.learn(table, missing="drop")  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match=r"Write missing=MissingAsLevel\(\)"):
        ist.learn(table, missing=ist.MissingAsLevel)  # type: ignore[call-overload]
    with pytest.raises(MismatchError, match=r"works with BIC\(\)"):
        ist.learn(table, missing=ist.AvailableCases(), score=ist.BDeu())
    with pytest.raises(SchemaError, match="missing is for"):
        ist.learn(ist.Frame(alarm_like(60)), missing=ist.DropRows())
    with pytest.raises(DataError, match="No row is complete"):
        ist.learn({"a": np.array([1.5, np.nan]), "b": [np.nan, 2.5]}, missing=ist.DropRows())
    lazy = pytest.importorskip("polars").LazyFrame({"a": [1.5, None]})
    with pytest.raises(MismatchError, match="with an engine"):
        ist.learn(lazy, missing=ist.MissingAsLevel())
    with pytest.raises(MissingValuesError, match=r"\['a'\] are not"):
        ist.learn(lazy, missing=ist.StructuralEM())
