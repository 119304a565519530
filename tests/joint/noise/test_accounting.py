"""The cost of noise: against OpenDP, and against exact divergences of sums of noise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, StudyError
from isthmus_joint import DifferentialPrivacy
from isthmus_joint.noise.accounting import cost, delta_of, epsilon_of, gap, rho_of, scale_for
from isthmus_joint.noise.answers import confirmed_epsilon


@pytest.mark.long
@pytest.mark.parametrize("rho", [1e-6, 1e-4, 0.0175, 0.1, 0.5, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-9])
def test_conversion_is_that_of_opendp(rho: float, delta: float) -> None:
    pytest.importorskip("opendp")
    theirs = confirmed_epsilon(rho, delta)
    assert epsilon_of(rho, delta) == pytest.approx(theirs, rel=1e-9, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("costs", [[0.01], [0.01, 0.2], [0.003] * 7])
def test_costs_add_up_as_those_of_opendp(costs: list[float]) -> None:
    dp: Any = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    parts = [dp.m.make_gaussian(*space, scale=math.sqrt(1 / (2 * rho))) for rho in costs]
    whole = dp.c.make_zCDP_to_approxDP(dp.c.make_composition(parts))
    assert epsilon_of(sum(costs), 1e-6) == pytest.approx(whole.map(1).epsilon(1e-6), rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
def test_a_budget_is_used_up_and_not_exceeded(epsilon: float, delta: float) -> None:
    rho = rho_of(epsilon, delta)
    assert delta_of(rho, epsilon) <= delta
    assert delta_of(rho * 1.001, epsilon) > delta
    assert epsilon_of(rho, delta) == pytest.approx(epsilon, rel=1e-9)
    privacy = DifferentialPrivacy(epsilon, delta)
    assert privacy.rho == rho


def test_delta_is_at_least_the_exact_one_of_the_gaussian() -> None:
    """A Gaussian has an exact δ (Balle and Wang 2018), which no conversion may undercut."""
    from scipy.stats import norm

    for rho in (0.01, 0.1, 1.0):
        mu = math.sqrt(2 * rho)
        for epsilon in (0.1, 1.0, 3.0):
            exact = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(
                -mu / 2 - epsilon / mu
            )
            assert exact <= delta_of(rho, epsilon) <= max(40 * exact, 1e-12)


def pmf(scale: float, reach: int) -> NDArray[np.float64]:
    """The discrete Gaussian on -reach … reach."""
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * scale**2))
    result: NDArray[np.float64] = weights / weights.sum()
    return result


def sum_of(scale: float, sites: int, reach: int) -> NDArray[np.float64]:
    one = pmf(scale, reach)
    total = one
    for _ in range(sites - 1):
        total = np.convolve(total, one)
    return total


@pytest.mark.parametrize("sites", [1, 2, 3, 8])
@pytest.mark.parametrize("scale", [0.5, 0.7, 1.0, 3.0])
@pytest.mark.parametrize("shift", [1, 2])
def test_the_cost_covers_the_exact_divergence_of_a_sum(
    sites: int, scale: float, shift: int
) -> None:
    """ρ-zCDP: the Rényi divergence of order α is at most α ρ, for neighbours in one number."""
    law = sum_of(scale, sites, math.ceil(30 * scale) + 4)
    kept = law > 1e-280
    p, q = np.log(law[kept])[shift:], np.log(law[kept])[:-shift]
    rho = cost(shift, scale, sites, 1)
    for alpha in (1.01, 1.5, 2.0, 4.0, 8.0):
        divergence = np.logaddexp.reduce(alpha * p - (alpha - 1) * q) / (alpha - 1)
        assert divergence <= alpha * rho * (1 + 1e-9) + 1e-12
    if scale >= 3.0:  # the bound is not idle: the gap is negligible, and the rest is exact
        assert divergence == pytest.approx(8.0 * rho, rel=1e-3)


def test_one_site_has_no_gap_and_wide_noise_none_that_counts() -> None:
    assert gap(0.5, 1) == 0.0
    assert gap(0.5, 2) > 0.05
    assert gap(16.0, 1000) == 0.0
    with pytest.raises(ArgumentError, match=r"from 0\.5 on"):
        gap(0.4, 2)


@pytest.mark.parametrize("sites", [1, 2, 50])
@pytest.mark.parametrize("numbers", [1, 10_000])
@pytest.mark.parametrize("rho", [1e-4, 0.02, 1.0])
def test_the_scale_keeps_the_cost(sites: int, numbers: int, rho: float) -> None:
    scale = scale_for(rho, 1.0, sites, numbers)
    assert cost(1.0, scale, sites, numbers) <= rho
    if scale > 3.0:
        assert cost(1.0, scale, sites, numbers) == pytest.approx(rho, rel=1e-3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"epsilon": "1"},
        {"delta": 0.0},
        {"delta": 0.1},
        {"delta": None},
        {"rows_per_person": 2.5},
        {"rows_per_person": True},
        {"honest": "2"},
    ],
)
def test_impossible_budgets_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(StudyError, match=next(iter(wrong))):
        DifferentialPrivacy(**({"epsilon": 1.0} | wrong))
