"""Attacks by steps of ADMM whose parameters the coordinator chooses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import least_squares
from tests.attacks.malicious import Attacked

import isthmus as ist
from isthmus.errors import AbortedError
from isthmus.joint import ADMM, Federation
from isthmus.joint.methods.admm.requests import AskConsensus
from isthmus.statistics import Schema

SIZES = {"north": 400, "east": 700, "south": 250}
MEANS = {"north": 45.0, "east": 60.0, "south": 71.0}
ROWS = sum(SIZES.values())
BOUNDS = {"age": (0.0, 120.0)}
PENALTIES = np.geomspace(1e-1, 1e5, 12)


def world_of_ages(**changes: Any) -> Attacked:
    rng = np.random.default_rng(3)
    tables = {n: {"age": rng.normal(MEANS[n], 9, SIZES[n])} for n in SIZES}
    requests = ("totals", "consensus")
    return Attacked(
        tables, Schema.continuous(["age"]), BOUNDS, requests=requests, rounds=500, **changes
    )


def ages(world: Attacked, site: str) -> NDArray[np.float64]:
    table: Any = world.tables[site]
    return np.asarray(table["age"])


def curve(federation: Federation, centre: float) -> NDArray[np.float64]:
    """The sum over sites of s / (s + ρ) for each penalty, where s belongs to one site each.

    Step 2 is asked in between, because another step 1 may only follow a later step.
    """
    found = []
    for rho in PENALTIES.tolist():
        for step in (1, 2):
            request = AskConsensus(("age",), step, ROWS, rho, ((0.0,),), (centre,))
            answer = federation.ask(request)
            if step == 1:
                found.append(float(answer[0, 0]))
    return np.array(found)


def poles(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The second moments of three sites, from sums over all of them."""
    best = None
    for seed in range(4):
        start = np.random.default_rng(seed).uniform(0, 8, 3)

        def error(logs: NDArray[np.float64]) -> NDArray[np.float64]:
            s = np.exp(logs)[:, None]
            return np.asarray((s / (s + PENALTIES)).sum(axis=0) - sums)

        fit = least_squares(error, start, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        best = fit if best is None or fit.cost < best.cost else best
    assert best is not None
    return np.array(sorted(np.exp(best.x)))


def means_by_centres(federation: Federation) -> NDArray[np.float64]:
    """The mean of each site: its second moment is a parabola in the centre, lowest at the mean."""
    centres = np.array([0.0, 5.0, 10.0])  # far enough that the order of the sites stays the same
    moments = np.array([poles(curve(federation, c)) for c in centres])
    a, b, _ = np.polyfit(centres, moments, 2)
    return np.array(-b / (2 * a))


def test_a_centre_chosen_by_the_coordinator_does_not_show_the_means_of_sites() -> None:
    """Sums about several centres would be parabolas, one per site, lowest at its mean."""
    lax = world_of_ages(rules={"fixed_windows": False})
    found = means_by_centres(lax.federation())  # the attack works where the rule is off
    truth = [ages(lax, n).mean() for n in SIZES]
    assert max(np.abs(found - t).min() for t in truth) < 0.5
    strict = world_of_ages()
    with pytest.raises(AbortedError):
        means_by_centres(strict.federation())
    assert {tuple(strict.why(n)) for n in SIZES} == {("policy",)}


def test_a_centre_is_none_or_that_of_the_study() -> None:
    fixed = world_of_ages(limits={"consensus": {"centre of age": 60.0}})
    federation = fixed.federation()
    for centre in (None, (60.0,)):
        request = AskConsensus(("age",), 1, ROWS, 1.0, ((0.0,),), centre)
        assert request.window_violations(fixed.study) == []
        assert federation.ask(request).shape == (1, 1)
        federation.ask(AskConsensus(("age",), 2, ROWS, 1.0, ((0.0,),), centre))
    other = AskConsensus(("age",), 1, ROWS, 1.0, ((0.0,),), (np.nextafter(60.0, 61.0),))
    assert other.window_violations(fixed.study)


def test_steps_of_admm_do_not_depend_on_the_means_of_sites() -> None:
    """Whatever is asked: with the sites' own centres, a shifted table gives the same numbers."""
    one = world_of_ages()
    shifts = dict(zip(SIZES, (9.0, -9.0, 5.0), strict=True))
    shifted = {n: {"age": ages(one, n) + shifts[n]} for n in SIZES}
    two = Attacked(
        shifted, Schema.continuous(["age"]), BOUNDS, requests=("totals", "consensus"), rounds=500
    )
    rng = np.random.default_rng(0)
    first, second = one.federation(), two.federation()
    for step in range(1, 8):
        rho, weight = float(np.exp(rng.uniform(-5, 5))), float(rng.normal())
        request = AskConsensus(("age",), step, ROWS, rho, ((weight,),), None)
        np.testing.assert_allclose(first.ask(request), second.ask(request), rtol=1e-9, atol=1e-12)


def test_admm_runs_with_the_default_rules() -> None:
    result = ist.learn(world_of_ages().federation(), search=ADMM(rounds=3))
    assert result.details.rounds == 3
