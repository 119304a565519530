"""Attacks by steps of ADMM: made-up sums, other options, steps in another order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

import isthmus as ist
from isthmus.arrays import Floats
from isthmus.errors import AbortedError, DataError, RefusedError
from isthmus.statistics import Schema
from isthmus.tables import Frame
from isthmus_joint import ADMM, Federation
from isthmus_joint.federation.requests.base import MethodState
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.methods.admm import (
    ADMMCourse,
    AskConsensus,
    AskNetworks,
    StepOfADMM,
    encoded_parameters,
)
from isthmus_joint.methods.admm_models import ADMMOptions, LinearConsensus
from isthmus_joint.secure_sum.terms import LimbAccumulator, LimbArray

SIZES = {"north": 400, "east": 700, "south": 250}
NAMES = ("age", "weight")
BOUNDS = {"age": (0.0, 120.0), "weight": (0.0, 300.0)}
GIVEN = ADMMOptions(rho1=1.0, rho2=0.1)
"""Weights move from the first step on."""


def tables() -> dict[str, dict[str, Floats]]:
    rng = np.random.default_rng(3)
    found = {}
    for name, n in SIZES.items():
        age = rng.normal(60.0, 9.0, n)
        found[name] = {"age": age, "weight": 80.0 + 1.2 * (age - 60.0) + rng.normal(0, 9, n)}
    return found


def world(own: dict[str, dict[str, Floats]] | None = None, **changes: Any) -> Attacked:
    data = tables() if own is None else own
    terms: dict[str, Any] = {"requests": ("consensus",), "rounds": 60} | changes
    return Attacked(data, Schema.continuous(NAMES), BOUNDS, **terms)


def ask(federation: Federation, step: int, given: ADMMOptions = GIVEN) -> Floats:
    return federation.ask(AskConsensus(NAMES, step, given))


def test_steps_are_asked_in_order_and_within_the_limit() -> None:
    for number in (2, 5, 61, -1):
        attacked = world()
        federation = attacked.federation()
        ask(federation, 0)
        with pytest.raises(AbortedError):
            ask(federation, number)
        assert all(attacked.why(s) for s in SIZES)


@pytest.mark.long
@pytest.mark.parametrize(
    "other",
    [
        replace(GIVEN, rho2=0.2),
        replace(GIVEN, penalty=0.5),
        replace(GIVEN, growth2=2.0),
        replace(GIVEN, together=True),
        replace(GIVEN, forbidden=(("age", "weight"),)),
    ],
)
def test_the_options_of_a_run_are_those_of_its_first_step(other: ADMMOptions) -> None:
    attacked = world()
    federation = attacked.federation()
    ask(federation, 0)
    ask(federation, 1)
    with pytest.raises(AbortedError):
        ask(federation, 2, other)
    assert {tuple(attacked.why(s)) for s in SIZES} == {("bad_request",)}


def test_a_step_of_some_variables_or_without_a_transcript_is_refused() -> None:
    cases = ((AskConsensus(("age",), 0), "policy"), (AskConsensus(NAMES, 1), "bad_request"))
    for request, why in cases:
        attacked = world()
        frame = attacked.frame(request)
        for site in SIZES:
            attacked.answer(site, frame)
        assert {tuple(attacked.why(s)) for s in SIZES} == {(why,)}


@pytest.mark.long
def test_steps_of_admm_do_not_depend_on_the_means_of_sites() -> None:
    """Each site subtracts its own means, and nobody can ask for another centre."""
    shifts = dict(zip(SIZES, (9.0, -9.0, 5.0), strict=True))
    data = tables()
    shifted = {n: {k: v + shifts[n] for k, v in t.items()} for n, t in data.items()}
    first, second = (world(t).federation() for t in (data, shifted))
    for step in range(6):
        np.testing.assert_allclose(ask(first, step), ask(second, step), rtol=1e-9, atol=1e-12)


def test_every_site_learns_every_sum_of_admm() -> None:
    """It computes the steps from them, and so knows what the coordinator knows."""
    attacked = world()
    federation = attacked.federation()
    sums = [ask(federation, step) for step in range(7)]
    for controller in attacked.controllers.values():
        kept = controller._memory._methods["consensus"].sums
        assert len(kept) == 6  # the last sum comes with the next request
        for step, total in enumerate(kept):
            request = AskConsensus(NAMES, step, GIVEN)
            decoded = request.decode(total, FixedPointEncoding.of(attacked.study))
            np.testing.assert_array_equal(decoded, sums[step])


def test_admm_runs_with_the_default_rules() -> None:
    result = ist.learn(world().federation(), search=ADMM(rounds=3))
    assert result.details.rounds == 3


# --- what a site keeps ---------------------------------------------------------------------------


class Sites:
    """The sites of a run, and the coordinator's course, without any protocol."""

    def __init__(self, first: StepOfADMM, parts: list[Floats]) -> None:
        federation = Federation.simulate([dict(zip(first.asked, p.T, strict=True)) for p in parts])
        self.grid = FixedPointEncoding.of(federation.study)
        self.first = first
        self.sources = [Frame(p, names=first.asked) for p in parts]
        self.states = [MethodState(self.grid) for _ in parts]
        self.course = ADMMCourse(first.model(self.grid.schema), first.options)
        self.last: LimbArray | None = None

    def answers(self, step: int) -> list[LimbArray]:
        request = replace(self.first, step=step)
        found = []
        for state, source in zip(self.states, self.sources, strict=True):
            if self.last is not None:
                state.take(request, self.last)
            found.append(state.answer(request, source))
        return found

    def do(self, step: int) -> None:
        total = LimbAccumulator(replace(self.first, step=step).size(self.grid), self.first.limbs)
        for answer in self.answers(step):
            total.add(answer)
        self.last = total.total()
        self.course.take(replace(self.first, step=step).decode(self.last, self.grid))

    def restart(self, which: int) -> None:
        self.states[which] = MethodState(self.grid, self.states[which].sums)


def linear_sites() -> Sites:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(90, 3))
    rows[:, 1] += 1.5 * rows[:, 0]
    return Sites(AskConsensus(("a", "b", "c"), 0, GIVEN), np.array_split(rows, 3))


def network_sites() -> Sites:
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(60, 3))
    rows[:, 1] += np.sin(2 * rows[:, 0])
    given = ADMMOptions(rho1=0.01, rho2=0.16, together=True, hidden=2, seed=3)
    return Sites(AskNetworks(("a", "b", "c"), 0, given), np.array_split(rows, 3))


@pytest.mark.long
@pytest.mark.parametrize("make", [linear_sites, network_sites])
def test_a_site_goes_on_after_a_restart_with_the_same_numbers(make: Any) -> None:
    steady, restarted = make(), make()
    for step in range(5):
        steady.do(step)
        restarted.do(step)
        restarted.restart(step % 3)
    np.testing.assert_array_equal(steady.course.common, restarted.course.common)
    for one, two in zip(steady.answers(5), restarted.answers(5), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_step_has_one_answer() -> None:
    sites = linear_sites()
    for step in range(4):
        if step == 3:
            first, again = sites.answers(3), sites.answers(3)
            for one, two in zip(first, again, strict=True):
                np.testing.assert_array_equal(one, two)
        sites.do(step)
    other = sites.last.copy() if sites.last is not None else np.zeros((9, 4), np.uint32)
    state, request = sites.states[0], replace(sites.first, step=4)
    state.take(request, other)
    other = other + np.uint32(1)
    for wrong in (replace(request, step=6), replace(request, step=3), request):
        with pytest.raises(RefusedError):
            state.take(wrong, other)


def test_a_sum_that_was_refused_is_refused_again() -> None:
    sites = linear_sites()
    sites.do(0)
    request, state = replace(sites.first, step=2), sites.states[0]
    sites.answers(1)
    steered = encoded_parameters(np.triu(np.full((3, 3), 1e6), 1), sites.grid)
    for _ in range(2):
        state.take(request, steered)
        with pytest.raises(DataError, match="wrong answer"):
            state.answer(request, sites.sources[0])


@pytest.mark.long
@pytest.mark.parametrize("error", [1e-15, 1e-9, 1e-6])
def test_sites_whose_processors_round_differently_do_no_harm(error: float) -> None:
    """One site computes other digits of the common parameters than the others, in each step."""
    exact, rounding = linear_sites(), linear_sites()
    rng = np.random.default_rng(0)
    join = LinearConsensus.join

    def rounded(*arguments: Any) -> Floats:
        found = join(*arguments)
        return found + error * rng.uniform(-1.0, 1.0, found.shape)

    for step in range(100):
        exact.do(step)
        rounding.do(step)
        if step == 0:
            site: Any = rounding.states[1]._site
            site._course._model.join = rounded.__get__(site._course._model)
    one, two = exact.course.common, rounding.course.common
    # The coordinator's step is solved to about 1e-6, so that smaller differences grow to that.
    assert np.abs(one - two).max() < 1e-6 + 20 * error
    np.testing.assert_array_equal(np.abs(one) > 0.3, np.abs(two) > 0.3)
