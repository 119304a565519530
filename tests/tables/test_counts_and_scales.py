"""Counts and answers on a scale are numbers, in every source, and a note says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.tables import as_source

EDGES = [("v0", "v1"), ("v1", "v2"), ("v0", "v3"), ("v3", "v4"), ("v2", "v5"), ("v4", "v5")]
SKELETON = {frozenset(edge) for edge in EDGES}


def likert(seed: int, n: int = 500, levels: int = 7) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    z = {"v0": rng.normal(size=n)}
    for k in range(1, 6):
        parents = [a for a, b in EDGES if b == f"v{k}"]
        z[f"v{k}"] = sum(0.5 * z[p] for p in parents) + rng.normal(size=n)
    cuts = np.linspace(-1.5, 1.5, levels - 1)
    return {k: np.digitize(v / v.std(), cuts).astype(int) + 1 for k, v in z.items()}


def counts(seed: int, n: int = 500, rate: float = 3.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    table = {"v0": rng.poisson(rate, n)}
    for k in range(1, 6):
        parents = [a for a, b in EDGES if b == f"v{k}"]
        eta = sum(0.35 * (table[p] - table[p].mean()) / np.sqrt(rate) for p in parents)
        table[f"v{k}"] = rng.poisson(rate * np.exp(np.clip(eta, -2, 2)))
    return {k: np.minimum(v, 20) for k, v in table.items()}


def f1(solution: ist.Solution) -> float:
    edges = {frozenset(edge) for edge in solution.dag.edges}
    return 2 * len(edges & SKELETON) / (len(edges) + len(SKELETON))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
@pytest.mark.parametrize("make", [likert, counts])
def test_the_default_finds_what_a_gaussian_score_finds(make: Any) -> None:
    default = np.mean([f1(ist.learn(make(seed))) for seed in range(3)])
    gaussian = np.mean([f1(ist.learn(make(seed), score=ist.GaussianEBIC())) for seed in range(3)])
    assert default >= gaussian - 0.02
    assert default > 0.8


@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_the_posterior_has_the_true_edges() -> None:
    posterior = ist.sample(likert(0), draws=20)
    assert posterior.exact_edges is not None
    present = posterior.exact_edges + posterior.exact_edges.T
    places = [(posterior.nodes.index(a), posterior.nodes.index(b)) for a, b in EDGES]
    assert min(present[place] for place in places) > 0.95


def test_one_note_names_the_columns_and_the_remedy() -> None:
    table = likert(0, levels=5)
    with noted("read as numbers") as notes:
        solution = ist.learn(table)
    (note,) = notes
    assert note in solution.notes
    assert "'v0', 'v1', 'v2', 'v3', 'v4' and 1 more" in note
    assert "kinds={'v0': 'discrete'}" in note
    assert "counts or answers on a scale" in solution.reading["v0"].reason
    codes = ist.learn(table, kinds=dict.fromkeys(table, "discrete"))
    assert codes.reading["v0"].read_as == "discrete"
    assert not codes.reading.notes


def sources_of(values: Any) -> dict[str, Any]:
    duckdb, pd, pl = (pytest.importorskip(name) for name in ("duckdb", "pandas", "polars"))
    table = {"v": values, "w": np.arange(len(values)) * 0.5}
    frame = pd.DataFrame(table)
    return {
        "dictionary": table,
        "pandas": frame,
        "pandas, with NaN as a type": frame.convert_dtypes(),
        "polars": pl.DataFrame(table),
        "lazy": pl.LazyFrame(table),
        "duckdb": duckdb.from_df(frame),
    }


@pytest.mark.long
@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.float64])
@pytest.mark.parametrize("distinct", [1, 2, 3, 4, 5, 6, 20, 21])
def test_one_rule_for_every_source(distinct: int, dtype: Any) -> None:
    values = (np.arange(210) % distinct).astype(dtype)
    whole = distinct >= 5 or (distinct == 1 and dtype is np.float64)
    expected = ist.Kind.CONTINUOUS if whole else ist.Kind.DISCRETE
    for name, table in sources_of(values).items():
        source = as_source(table)
        if name == "pandas, with NaN as a type" and distinct == 1:
            continue  # pandas makes integers of the whole floats
        assert source.schema()["v"].kind is expected, name
        read = source.reading()["v"].reason
        assert ("5 to 20" in read) == (5 <= distinct <= 20), name


def test_the_sites_of_a_federation_read_what_one_table_would() -> None:
    rng = np.random.default_rng(0)
    first = {"v": np.arange(60) % 3, "w": rng.normal(size=60)}
    second = {"v": 3 + np.arange(60) % 3, "w": rng.normal(size=60)}
    schema = ist.Federation.simulate({"a": first, "b": second, "c": first}).schema()
    assert schema["v"].kind is ist.Kind.CONTINUOUS
    second["v"] = np.arange(60) % 9
    schema = ist.Federation.simulate({"a": first, "b": second, "c": first}).schema()
    assert schema["v"].kind is ist.Kind.CONTINUOUS
    second["v"] = np.arange(60) % 4
    schema = ist.Federation.simulate({"a": first, "b": second, "c": first}).schema()
    assert schema["v"].levels == (0, 1, 2, 3)


@pytest.mark.parametrize("library", ["dict", "array", "pandas", "polars"])
def test_the_sites_of_a_federation_leave_out_what_one_table_would(library: str) -> None:
    rng = np.random.default_rng(4)
    k = np.concatenate([rng.integers(0, 3, 50), rng.integers(0, 8, 70)])
    table = {"x0": k, "x1": rng.standard_normal(120) + k, "x2": np.arange(120)}
    makers: dict[str, Callable[[dict[str, Any]], object]] = {
        "dict": dict,
        "array": lambda columns: np.column_stack(list(columns.values())),
        "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
        "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
    }
    make = makers[library]
    cuts = (slice(50), slice(50, 80), slice(80, None))
    parts = [make({name: x[rows] for name, x in table.items()}) for rows in cuts]
    federation, frame = ist.Federation.simulate(parts), ist.Frame(make(table))
    assert federation.schema() == frame.schema()
    assert replace(federation.reading(), read_by="") == frame.reading()
    assert federation.schema().names == ("x0", "x1")
    with noted() as notes:
        solution = ist.learn(federation)
    with noted():
        assert solution.dag.cpdag() == ist.learn(frame).dag.cpdag()
    texts = " ".join(notes)
    assert "Column left out: x2" in texts
    assert "Column 'x0' has whole numbers with 5 to 20" in texts
    kept = ist.Federation.simulate(parts, kinds={"x2": "continuous"})
    assert "x2" in kept.schema().names


ANSWERS = ["never", "rarely", "sometimes", "often", "always"]


@pytest.mark.parametrize("library", ["pandas", "pyarrow"])
def test_ordered_categories_are_numbers_by_their_position(library: str) -> None:
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    codes = np.arange(100) % 4 + 1  # "never" does not occur
    answers = pd.Categorical.from_codes(codes, ANSWERS, ordered=True)
    sizes = pd.Categorical(np.array(["S", "M", "L"])[codes % 3], ["S", "M", "L"], ordered=True)
    table = pd.DataFrame({"q": answers, "size": sizes, "free": answers.as_unordered()})
    given = table if library == "pandas" else pa.Table.from_pandas(table)
    frame = ist.Frame(given)
    assert frame.schema()["q"].kind is ist.Kind.CONTINUOUS
    assert "position" in frame.reading()["q"].reason
    assert frame.rows()[:, 0].tolist() == codes.tolist()
    assert frame.schema()["size"].levels == ("L", "M", "S")
    assert frame.schema()["free"].kind is ist.Kind.DISCRETE
    asked = ist.Frame(given, kinds={"q": "discrete", "size": "continuous"})
    assert set(asked.schema()["q"].levels) == set(ANSWERS[1:])
    assert set(asked.rows()[:, 1].tolist()) == {0, 1, 2}
    assert any("'q'" in note and "read as numbers" in note for note in frame.reading().notes)


def test_enumerations_of_polars_are_not_ordered() -> None:
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"q": ANSWERS * 10}, schema={"q": pl.Enum(ANSWERS)})
    assert ist.Frame(table).schema()["q"].kind is ist.Kind.DISCRETE
