"""Bases: the interface, Chebyshev polynomials, and a basis that the package does not know."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus.errors import DataError, FormatError, SchemaError
from isthmus.statistics import Basis, Expansion, Features, Moments, Role, Schema, register_basis
from isthmus.statistics.features import basis_from_dict, basis_to_dict
from isthmus.tables import Frame
from isthmus.testing import check_basis
from isthmus.testing.source import check_moments
from isthmus_joint import Federation

Floats = NDArray[np.float64]


@register_basis
@dataclass(frozen=True)
class Bumps(Basis):
    """Gaussian bumps, evenly spaced; nothing in the package knows of them."""

    bumps: int = 5
    width: float = 1.0
    name: ClassVar[str] = "test-bumps"
    rows_per_column: ClassVar[int] = 4

    @property
    def size(self) -> int:
        return self.bumps

    def _centres(self) -> Floats:
        return np.linspace(-2.0, 2.0, self.bumps)

    def evaluate(self, z: Floats) -> Floats:
        return np.stack([np.exp(-(((z - c) / self.width) ** 2) / 2) for c in self._centres()])

    def expressions(self, z: Any) -> Sequence[Any]:
        scaled = [(z - float(c)) / self.width for c in self._centres()]
        return [(u * u * -0.5).exp() for u in scaled]

    def bounds(self) -> Sequence[tuple[float, float]]:
        return [(0.0, 1.0)] * self.bumps


def curves(seed: int = 0, n: int = 3000) -> dict[str, Floats]:
    """x -> y -> z by curves that no line follows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    y = 1.5 * np.cos(1.5 * x) + 0.4 * rng.normal(size=n)
    z = y**2 + 0.4 * rng.normal(size=n)
    return {"x": x, "y": y, "z": z}


@pytest.mark.long
@pytest.mark.parametrize(
    "basis",
    [
        ist.Chebyshev(),
        ist.Chebyshev(12, 1.5),
        ist.Chebyshev(128 if "ISTHMUS_LONG" in os.environ else 64),
        ist.Chebyshev(1),
        ist.Products(),
        Bumps(),
    ],
)
def test_bases_keep_their_promises(basis: Basis) -> None:
    check_basis(basis)


@dataclass(frozen=True)
class Faulty(Basis):
    """A straight line that errs in one thing."""

    fault: str = ""
    name: ClassVar[str] = "test-faulty"
    rows_per_column: ClassVar[int] = 10

    @property
    def size(self) -> int:
        return 2 if self.fault == "size" else 1

    def evaluate(self, z: Floats) -> Floats:
        clipped = np.clip(z, -2.0, 2.0)
        return (np.nan_to_num(clipped) if self.fault == "NaN for NaN" else clipped)[None]

    def expressions(self, z: Any) -> Sequence[Any]:
        return [z.clip(-1.0 if self.fault == "differ" else -2.0, 2.0)]

    def bounds(self) -> Sequence[tuple[float, float]]:
        return [(-1.0, 1.0) if self.fault == "outside" else (-2.0, 2.0)]


def test_a_broken_basis_is_found() -> None:
    with pytest.raises(AssertionError, match="not registered"):
        check_basis(Faulty())
    register_basis(Faulty)
    check_basis(Faulty())
    for fault in ("NaN for NaN", "differ", "outside"):
        with pytest.raises(AssertionError, match=fault):
            check_basis(Faulty(fault))
    with pytest.raises(AssertionError, match="shape"):
        check_basis(Faulty("size"))


def test_a_basis_travels_by_its_name() -> None:
    for basis in (ist.Chebyshev(4, 2.5), Bumps(3)):
        assert basis_from_dict(json.loads(json.dumps(basis_to_dict(basis)))) == basis
    broken: list[dict[str, Any]] = [
        {},
        {"chebyshev": {}, "other": {}},
        {"unknown": {}},
        {"chebyshev": {"terms": 999}},
        {"chebyshev": {"terms": "x"}},
        {"chebyshev": {"terms": 2.5}},
        {"chebyshev": {"strange": 1}},
        {"chebyshev": [1]},
    ]
    for wrong in broken:
        with pytest.raises(FormatError):
            basis_from_dict(wrong)


def test_two_bases_cannot_have_one_name() -> None:
    class Other(Bumps):
        pass

    with pytest.raises(DataError, match="taken by"):
        register_basis(Other)


@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_a_basis_from_outside_learns_from_a_frame_an_engine_and_a_federation() -> None:
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    data = curves()
    frame = polars.DataFrame(data)  # noqa: F841 - DuckDB reads it by its name
    sites = {f"s{k}": {n: x[k::3] for n, x in data.items()} for k in range(3)}
    score, search = ist.AdditiveLeastSquares(basis=Bumps()), ist.NotearsAdditive()
    solutions = [
        ist.learn(source, score=score, search=search)
        for source in (
            data,
            duckdb.sql("select * from frame"),
            Federation.simulate(sites, within_sites=False),
        )
    ]
    for solution in solutions:
        assert set(solution.dag.edges) == {("x", "y"), ("y", "z")}
        assert solution.score == pytest.approx(solutions[0].score, rel=1e-9)


def test_the_grid_of_secure_sums_takes_the_bounds_of_the_basis() -> None:
    pytest.importorskip("cryptography")
    from isthmus_joint import AskFeatures

    data = curves(n=300)
    sites = {f"s{k}": {n: x[k::3] for n, x in data.items()} for k in range(3)}
    federation = Federation.simulate(sites, within_sites=False)
    expansion = Expansion.standardised(Bumps(4), federation.moments())
    grid = AskFeatures(expansion)._grid(federation._grid)
    assert grid._ranges[1:5] == [(0.0, 1.0)] * 4
    check_moments(
        ist.WithFeatures(federation, expansion).moments(),
        ist.WithFeatures(data, expansion).moments(),
    )


def test_the_rows_that_a_federation_needs_come_from_the_basis() -> None:
    pytest.importorskip("cryptography")
    data = curves(n=75)
    sites = {f"s{k}": {n: x[k::3] for n, x in data.items()} for k in range(3)}
    ist.WithFeatures(
        Federation.simulate(sites, within_sites=False), Bumps(5)
    )  # 18 columns, 4 rows per column
    with pytest.raises(DataError, match="84 rows"):
        ist.WithFeatures(
            Federation.simulate(sites, within_sites=False), replace(Bumps(), bumps=6)
        ).moments()
    with pytest.raises(DataError, match="180 rows"):
        ist.WithFeatures(Federation.simulate(sites, within_sites=False), ist.Chebyshev(5))


def test_basis_functions_belong_to_their_variable() -> None:
    wide = ist.WithFeatures(curves(n=50), ist.Chebyshev(2))
    schema = wide.schema()
    assert schema.names == ("x", "y", "z")
    assert schema.blocks == ((0, 3), (3, 6), (6, 9))
    assert schema.column_names[:4] == ("x", "x~1", "x~2", "y")
    assert [(c.owner, c.role, c.number) for c in schema.columns[3:5]] == [
        ("y", Role.VALUE, 0),
        ("y", Role.FEATURE, 1),
    ]
    moments = wide.moments()
    assert moments.select(["z", "x"]).columns == ("z", "z~1", "z~2", "x", "x~1", "x~2")
    check_moments(moments.without_features(), Frame(curves(n=50)).moments())
    assert moments.duplicates() == ()
    assert wide.rows().shape == (50, 3)
    with pytest.raises(SchemaError, match="already"):
        wide.with_features(wide.expansion)


def test_moments_of_different_expansions_do_not_add_up() -> None:
    one, other = curves(0, 60), curves(1, 60)
    with pytest.raises(SchemaError, match="cannot be added"):
        ist.WithFeatures(one).moments() + ist.WithFeatures(other).moments()
    pooled = Expansion.standardised(ist.Chebyshev(), Frame(one).moments() + Frame(other).moments())
    added = ist.WithFeatures(one, pooled).moments() + ist.WithFeatures(other, pooled).moments()
    both = {n: np.concatenate([one[n], other[n]]) for n in one}
    check_moments(added, ist.WithFeatures(both, pooled).moments())


def test_moments_of_basis_functions_are_saved_with_their_basis(tmp_path: Any) -> None:
    moments = ist.WithFeatures(curves(n=50), Bumps(3)).moments()
    moments.save(tmp_path / "moments.npz")
    again = Moments.load(tmp_path / "moments.npz")
    assert again == moments
    features = again.schema["x"].features
    assert isinstance(features, Features)
    assert features.basis == Bumps(3)


@pytest.mark.parametrize(
    "score", [ist.GaussianBIC(), ist.BGe(), ist.DegenerateGaussian(), ist.LeastSquares()]
)
def test_scores_without_a_basis_read_the_values_only(score: Any) -> None:
    data = curves(n=200)
    with_features = score.bind(ist.WithFeatures(data).moments())
    without = score.bind(Frame(data).moments())
    assert with_features.nodes == without.nodes
    if isinstance(score, ist.LeastSquares):
        np.testing.assert_allclose(with_features.matrix, without.matrix, rtol=1e-12)
    else:
        dag = ist.DAG(["x", "y", "z"], [("x", "z"), ("y", "z")])
        assert with_features.total(dag) == pytest.approx(without.total(dag), rel=1e-12)


def test_an_expansion_must_have_finite_centres_and_positive_scales() -> None:
    for centre, scale in ((np.nan, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, np.inf)):
        with pytest.raises(DataError, match="positive scale"):
            Expansion(ist.Chebyshev(), ("x",), (centre,), (scale,))
    with pytest.raises(DataError, match="one centre"):
        Expansion(ist.Chebyshev(), ("x", "y"), (0.0,), (1.0,))
    with pytest.raises(FormatError):
        Expansion.from_dict({"basis": {"chebyshev": {}}, "columns": {}})


def test_names_like_those_of_basis_functions_are_ordinary_names() -> None:
    data = {"x": curves(n=80)["x"], "x~1": curves(n=80)["y"]}
    moments = ist.WithFeatures(data, ist.Chebyshev(1)).moments()
    assert moments.schema.names == ("x", "x~1")
    assert moments.columns == ("x", "x~1", "x~1", "x~1~1")
    plain = Moments.from_array(
        Schema.continuous(["x", "x~1"]), np.column_stack(list(data.values()))
    )
    assert not plain.schema.has_features
    assert moments.select(["x~1"]).schema.blocks == ((0, 2),)


def test_products_of_columns_are_those_of_rows_wherever_they_are() -> None:
    duckdb, pd = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    table = pd.DataFrame(curves(n=200)) * [1.0, 50.0, 1.0] + [0.0, 0.0, 1e3]
    expansion = ist.WithFeatures(table, ist.Products()).expansion
    u = (table.to_numpy() - expansion.centres) / np.array(expansion.scales) / 30.0
    columns = [u[:, 0], u[:, 1], u[:, 1] * u[:, 0], u[:, 2], u[:, 2] * u[:, 0], u[:, 2] * u[:, 1]]
    places = [1, 5, 8, 10, 13, 14]
    engine = duckdb.connect().from_df(table)
    sites = ist.Federation.simulate([table[:60], table[60:110], table[110:]], within_sites=False)
    for source in (table, engine, sites):
        moments = ist.WithFeatures(source, expansion).moments()
        assert moments.schema == expansion.widen(ist.Frame(table).schema())
        assert type(moments.schema).from_dict(moments.schema.to_dict()) == moments.schema
        scatter = moments.scatter()[np.ix_(places, places)] / 200
        np.testing.assert_allclose(scatter, np.cov(columns, ddof=0), rtol=1e-6, atol=1e-12)


def test_bounds_do_not_tell_which_of_many_products_matter() -> None:
    bounds = {f"x{i}": (0.0, 1.0) for i in range(101)}
    assert len(ist.Expansion.within(ist.Chebyshev(), bounds).names) == 101
    with pytest.raises(DataError, match="at most 100; there are 101"):
        ist.Expansion.within(ist.Products(), bounds)


def test_of_many_variables_the_pairs_with_the_largest_partial_correlations_are_multiplied() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 120))
    rows[:, 7] += rows[:, 100]
    rows[:, 50] += rows[:, 7]  # and so is correlated with 100, but for 7
    table = {f"x{i}": column for i, column in enumerate(rows.T)}
    expansion = ist.WithFeatures(table, ist.Products()).expansion
    assert expansion.pairs is not None
    assert len(expansion.pairs) == 4950
    assert {("x7", "x100"), ("x7", "x50")} <= {*expansion.pairs}
    assert ist.Expansion.from_dict(expansion.to_dict()) == expansion
    assert [name for name, *_ in expansion.features["x0"].partners] == []
    assert sum(len(own.partners) for own in expansion.features.values()) == 4950
