"""The test of regressions on curves: by hand, calibration, power, and graphs from every source."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.arrays import Floats
from isthmus.errors import MismatchError


def p_value(*columns: Floats) -> float:
    """Test the first two columns, given all others."""
    table = {str(i): column for i, column in enumerate(columns)}
    test = ist.NonlinearLikelihoodRatio()
    bound = test.bind(ist.WithFeatures(table, test.basis).moments())
    return float(bound.p_values(0, [*range(2, len(columns))], [1])[0])


def by_hand(*columns: Floats) -> float:
    from scipy import stats

    x, y, *given = columns
    curves = [
        np.polynomial.chebyshev.chebvander(np.clip((c - c.mean()) / c.std() / 3.0, -1.0, 1.0), 6).T[
            1:
        ]
        for c in (x, y, *given)
    ]
    n = len(x)
    before = np.stack([np.ones(n), *(f for own in curves[2:] for f in own)]).T
    p_values = []
    for child, other in ((x, curves[1]), (y, curves[0])):
        after = np.column_stack([before, *other])
        left, less = (np.linalg.lstsq(m, child)[1].item() for m in (before, after))
        rows = n - 1 - 6 * len(given) - 0.5 * (6 + 2)
        p_values.append(stats.chi2.sf(rows * np.log(left / less), 6))
    return float(1.0 - (1.0 - min(p_values)) ** 2)


def test_p_value_is_that_of_two_regressions() -> None:
    rng = np.random.default_rng(1)
    z, w = rng.normal(size=(2, 200))
    x, y = z**2 + rng.normal(size=200), 1e3 + w + np.sin(z) + rng.normal(size=200)
    for columns in ((x, y), (x, y, z), (x, y, z, w)):
        assert p_value(*columns) == pytest.approx(by_hand(*columns), rel=1e-5)


@pytest.mark.parametrize("kind", ["independent", "given curves"])
def test_p_values_are_calibrated_under_independence(kind: str) -> None:
    from scipy import stats

    rng = np.random.default_rng(2)
    found = []
    for _ in range(200):
        x, y, z, w = rng.normal(size=(4, 300))
        if kind == "independent":
            found.append(p_value(np.exp(0.3 * x), y))
        else:
            found.append(p_value(z**2 + w + x, np.tanh(2.0 * z) + np.sin(w) + 0.5 * y, z, w))
    for level in (0.01, 0.05, 0.2):  # both regressions see a line, so large p-values are too large
        rejected = int((np.array(found) < level).sum())
        assert stats.binom.sf(rejected - 1, 200, level) > 0.005
        assert stats.binom.cdf(rejected, 200, level) > 0.005


def test_curves_are_seen_that_have_no_correlation() -> None:
    rng = np.random.default_rng(5)
    x, noise, z = rng.normal(size=(3, 300))
    y = x**2 + noise
    assert p_value(x, y) < 1e-6
    assert p_value(y, x) < 1e-6
    assert p_value(x, y + z, z) < 1e-6
    assert p_value(x + z, noise, z) > 0.01


@pytest.mark.filterwarnings("ignore::isthmus.errors.NotesWarning")
def test_a_curved_chain_is_learned_wherever_the_rows_are() -> None:
    duckdb, pd = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    a = rng.normal(size=900)
    b = a**2 + 0.7 * rng.normal(size=900)
    c = np.cos(2.0 * b) + 0.5 * rng.normal(size=900)
    data = pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.normal(size=900)})
    assert ("a", "b") not in ist.learn(data, search=ist.PC()).dag.edges
    solution = ist.learn(data, search=ist.PC(), score=ist.NonlinearLikelihoodRatio())
    assert {frozenset(edge) for edge in solution.dag.edges} == {frozenset("ab"), frozenset("bc")}
    sites = ist.Federation.simulate([data[:300], data[300:500], data[500:]])
    for source in (duckdb.connect().from_df(data), sites):
        other = ist.learn(source, search=ist.PC(), score=ist.NonlinearLikelihoodRatio())
        assert other.cpdag == solution.cpdag
    pag = ist.learn(data, search=ist.FCI(), score=ist.NonlinearLikelihoodRatio()).pag
    assert len(pag.edges) == 2


def test_hybrid_searches_begin_with_a_score_that_sees_curves() -> None:
    rng = np.random.default_rng(6)
    x = rng.uniform(-1.0, 1.0, size=500)
    z = np.exp(rng.normal(size=500) / 3.0)
    y = x**2 + 0.1 * np.log(z) + 0.1 * rng.normal(size=500)
    pag = ist.learn(
        {"x": x, "z": z, "y": y}, search=ist.BossFCI(), score=ist.NonlinearLikelihoodRatio()
    ).pag
    assert str(pag) == "x o-> y\nz o-> y"


def test_moments_without_functions_are_refused() -> None:
    moments = ist.Frame({"x": np.arange(9.0), "y": np.arange(9.0) ** 2}).moments()
    with pytest.raises(MismatchError, match="Chebyshev"):
        ist.NonlinearLikelihoodRatio().bind(moments)
