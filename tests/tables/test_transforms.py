"""Normal scores and levels of numbers, against ranks and exhaustive searches."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.notes import noted

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import ArgumentError, FormatError, IsthmusError, MismatchError, SchemaError
from isthmus.networks import DiscreteNetwork
from isthmus.networks.column_maps import ColumnMap
from isthmus.tables import Transform, transformed


def table(n: int = 200, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x = np.exp(1.5 * rng.normal(size=n))
    y = np.log(x) + 0.5 * rng.normal(size=n)
    group = np.where(y > 0.3, "high", "low").astype(object)
    x[:5] = np.nan
    return {"x": x, "y": y, "group": group, "visits": rng.poisson(4.0, n)}


def test_scores_belong_to_ranks() -> None:
    norm = pytest.importorskip("scipy.stats").norm
    x = np.random.default_rng(0).standard_cauchy(2000)
    made = transformed({"x": x}, ist.NormalScores()).table["x"]
    ranks = norm.ppf((x.argsort().argsort() + 0.5) / len(x))
    inside = np.abs(ranks) < 1.9  # beyond, knots are far apart for these tails
    assert np.abs(made - ranks)[inside].max() < 0.1
    assert np.abs(made).max() == pytest.approx(norm.ppf(1 - 0.5 / 64))
    assert np.corrcoef(made, ranks)[0, 1] > 0.998


def test_a_rising_function_changes_nothing() -> None:
    x = np.random.default_rng(1).normal(size=999)
    one, other = (transformed({"x": v}, ist.NormalScores()).table["x"] for v in (x, x**3))
    # The quantiles of 999 rows lie between values, so that only ends of intervals can differ.
    assert np.abs(one - other).max() < 0.05


def test_equal_values_share_the_mean_rank() -> None:
    own = transformed({"x": [0.5] * 50 + [1.5] * 50}, ist.NormalScores()).maps["x"]
    quarter = 0.6744897501960817
    assert own.at == (0.5, 1.5)
    assert own.scores == pytest.approx((-quarter, quarter))
    assert own.apply(np.array([np.nan, 0.0, 1.0, 9.0])) == pytest.approx(
        [np.nan, -quarter, 0.0, quarter], nan_ok=True
    )


def learned_quietly(data: dict[str, Any]) -> ist.Solution:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of single rows that lie apart
        return ist.learn(data)


@pytest.mark.long
def test_false_edges_of_lognormal_columns_vanish() -> None:
    plain, default, scored = 0, 0, 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        data = {f"v{i}": np.exp(1.5 * rng.normal(size=300)) for i in range(20)}
        with noted(r"transform=NormalScores\(\)"):
            plain += len(ist.learn(data, score=ist.GaussianEBIC()).dag.edges)
        default += len(learned_quietly(data).dag.edges)
        scored += len(ist.learn(data, transform=ist.NormalScores()).dag.edges)
    assert plain > 6
    assert default <= 2  # it tries normal scores by itself
    assert scored <= 2


STEPS: list[Transform] = [
    ist.NormalScores(),
    ist.NormalScores(knots=5, columns=["x"]),
    ist.QuantileBins(bins=4),
    ist.FixedBins({"x": [0.5, 1.0], "visits": [3]}),
]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
@pytest.mark.parametrize("step", STEPS, ids=["scores", "knots", "quantiles", "fixed"])
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_engines_give_what_memory_gives(step: Transform, engine: str) -> None:
    frame = pytest.importorskip("polars").DataFrame(table())
    data: Any = frame.lazy()
    if engine == "duckdb":
        pytest.importorskip("pyarrow")
        data = pytest.importorskip("duckdb").from_arrow(frame.to_arrow())
    inside, outside = (transformed(t, step) for t in (table(), data))
    assert inside.maps.keys() == outside.maps.keys()
    for name, own in inside.maps.items():
        assert outside.maps[name].at == pytest.approx(own.at)
    em = ist.ExpectationMaximisation() if inside.kinds["x"] is ist.Kind.CONTINUOUS else None
    missing = em or ist.DropRows()
    one, other = (ist.learn(t, transform=step, missing=missing) for t in (table(), data))
    assert other.score == pytest.approx(one.score, abs=1e-6)
    assert other.reading["x"].reason == one.reading["x"].reason
    assert ("quantiles" in str(other.disclosure)) != isinstance(step, ist.FixedBins)


def test_quantiles_cut_into_equal_parts() -> None:
    x = np.random.default_rng(2).permutation(np.arange(90.0) + 0.25)
    made = transformed({"x": x}, ist.QuantileBins(bins=3)).table["x"]
    levels, sizes = np.unique(made.astype(str), return_counts=True)
    assert sizes.tolist() == [30, 30, 30]
    assert levels.tolist() == ["1: up to 29.9167", "2: 29.9167 to 59.5833", "3: above 59.5833"]
    few = transformed({"x": [1.5] * 80 + [2.5] * 20}, ist.QuantileBins(bins=4)).maps["x"]
    assert few.at == (1.5,)


def test_levels_are_sorted_by_their_numbers() -> None:
    levels = ColumnMap(tuple(float(i) for i in range(12))).levels
    assert list(levels) == sorted(levels)
    assert ColumnMap((1.0,)).apply(np.array([1.0, 1.1, np.nan])).tolist() == [
        "1: up to 1",
        "2: above 1",
        None,
    ]


def entropy(classes: np.ndarray[Any, Any]) -> float:
    shares = np.unique(classes, return_counts=True)[1] / len(classes)
    return float(-(shares * np.log2(shares)).sum())


def best_cut(x: np.ndarray[Any, Any], c: np.ndarray[Any, Any]) -> float | None:
    """The cut of Fayyad and Irani by trying all of them, or None if none pays."""
    found = []
    for low, high in zip(np.unique(x), np.unique(x)[1:], strict=False):
        cut = (low + high) / 2
        a, b = c[x <= cut], c[x > cut]
        gain = entropy(c) - (len(a) * entropy(a) + len(b) * entropy(b)) / len(c)
        k, ka, kb = (len(set(part.tolist())) for part in (c, a, b))
        delta = np.log2(3.0**k - 2) - (k * entropy(c) - ka * entropy(a) - kb * entropy(b))
        found.append((gain, cut, (np.log2(len(c) - 1) + delta) / len(c)))
    gain, cut, price = max(found)
    return float(cut) if gain > price else None


@pytest.mark.parametrize("seed", range(5))
def test_cuts_by_description_length_are_those_of_a_full_search(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 30, 80).astype(float) + 0.5
    c = np.select([x < 8, x < 20], [0, 1], 2) ^ (rng.random(80) < 0.1)
    expected: list[float] = []

    def split(x: np.ndarray[Any, Any], c: np.ndarray[Any, Any]) -> None:
        cut = best_cut(x, c) if len(set(x.tolist())) > 1 else None
        if cut is not None:
            expected.append(cut)
            split(x[x <= cut], c[x <= cut])
            split(x[x > cut], c[x > cut])

    split(x, c)
    data = {"x": x, "c": c.astype(str).astype(object)}
    own = transformed(data, ist.MDLBins(target="c")).maps["x"]
    assert own.at == pytest.approx(sorted(expected) or [np.median(x)])


def test_the_step_is_kept_by_the_solution(tmp_path: Path) -> None:
    data = {name: column[10:] for name, column in table().items()}
    solution = ist.learn(data, transform=ist.QuantileBins(bins=3))
    assert "transform" in str(solution.provenance)
    path = tmp_path / "network.isthmus"
    solution.save(path)
    loaded = ist.Solution.load(path)
    assert loaded.reading.maps == solution.reading.maps
    other = table(seed=5)
    rows = {name: column[10:] for name, column in other.items()}
    cut = transformed(rows, solution.reading.maps).table
    network = ist.fit(cut, solution.dag)
    assert isinstance(network, DiscreteNetwork)
    for fitted in (solution.fit(rows), loaded.fit(rows)):
        assert isinstance(fitted, type(network))
        for name, probabilities in network.tables.items():
            assert fitted.tables[name] == pytest.approx(probabilities)


def test_a_federation_counts_what_scores_need() -> None:
    rng = np.random.default_rng(3)
    x = rng.lognormal(size=900)
    data = {"x": x, "y": x * rng.lognormal(size=900), "z": rng.lognormal(size=900)}
    cuts = {name: np.geomspace(0.05, 20.0, 25).tolist() for name in data}
    sites = {f"s{i}": {name: column[i::3] for name, column in data.items()} for i in range(3)}
    bins = ist.FixedBins(cuts)
    binned = {site: transformed(own, bins).table for site, own in sites.items()}
    joint = ist.summarise(
        ist.Federation.simulate(binned, within_sites=False), plan=ist.CountPlan.up_to(1)
    )
    pooled = ist.summarise(transformed(data, bins).table, plan=ist.CountPlan.up_to(1))
    assert isinstance(joint, ist.Counts)
    assert isinstance(pooled, ist.Counts)
    maps = ist.NormalScores.from_counts(joint, cuts)
    assert maps == ist.NormalScores.from_counts(pooled, cuts)
    share = float((x <= cuts["x"][12]).mean())
    at = maps["x"].at.index(cuts["x"][12])
    normal = pytest.importorskip("scipy.stats").norm
    assert maps["x"].scores is not None
    assert maps["x"].scores[at] == pytest.approx(normal.ppf(share))
    scored = {site: transformed(own, maps).table for site, own in sites.items()}
    together = ist.learn(ist.Federation.simulate(scored, within_sites=False))
    alone = ist.learn(transformed(data, maps).table)
    assert together.score == pytest.approx(alone.score)
    assert together.cpdag == alone.cpdag


def test_refusals() -> None:
    data = table()
    for step, error, words in (
        (ist.NormalScores(columns=["z"]), SchemaError, "no column"),
        (ist.NormalScores(columns=["group"]), SchemaError, "not continuous"),
        (ist.MDLBins(target="y"), SchemaError, "needs a discrete one"),
        (ist.NormalScores, ArgumentError, r"transform=NormalScores\(\)"),
    ):
        with pytest.raises(error, match=words):
            ist.learn(data, transform=step)  # type: ignore[arg-type]
    with pytest.raises(MismatchError, match="read already"):
        ist.learn(ist.Frame(data), transform=ist.NormalScores())
    with pytest.raises(MismatchError, match="there is none"):
        ist.learn({"a": ["u", "v"] * 9}, transform=ist.NormalScores())
    with pytest.raises(IsthmusError, match="must increase"):
        ist.FixedBins({"x": [2.0, 1.0]})
    with pytest.raises(FormatError):
        ColumnMap((1.0, 2.0), (0.0,))
    lazy = pytest.importorskip("polars").DataFrame(data).lazy()
    with pytest.raises(MismatchError, match="with an engine"):
        ist.learn(lazy, transform=ist.MDLBins(target="group"))


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{a},{a * b}" for a, b in rng.lognormal(size=(60, 2)).tolist()]
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "\n".join(lines), encoding="utf-8")
    assert main(["learn", str(path), "--transform", "QuantileBins(bins=2)"]) == 0
    assert main(["learn", str(path), "--transform", "NormalScores", "--explain"]) == 0
    told = capsys.readouterr()
    assert "Score BDeu" in told.out
    assert "Score GaussianEBIC" in told.out
