"""Attacks by steps of expectation-maximisation: made-up sums, other steps, rare patterns."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.arrays import Floats
from isthmus.errors import AbortedError, DataError
from isthmus.statistics import Schema
from isthmus.statistics.incomplete import RIDGE
from isthmus.tables import Frame
from isthmus_joint import Federation
from isthmus_joint.federation.requests.base import MethodState
from isthmus_joint.federation.requests.expectation import (
    FRACTION,
    LARGEST,
    MAGNITUDE,
    WIDEST,
    AskExpectation,
    ExpectationRun,
)
from isthmus_joint.federation.requests.fixed_point import LIMBS, FixedPointEncoding
from isthmus_joint.federation.requests.statistics import AskMoments
from isthmus_joint.secure_sum.envelopes import EnvelopeKind, pack, parse, split_frames
from isthmus_joint.secure_sum.protocol import secure_sums
from isthmus_joint.secure_sum.terms import LimbArray, from_ints

SITES = ("north", "east", "south")
NAMES = ("x", "y", "z")
BOUNDS = dict.fromkeys(NAMES, (-100.0, 100.0))
Frames = list[bytes]


def rows(seed: int, n: int = 240) -> Floats:
    """A third of the persons lack z."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 3))
    values[: n // 3, 2] = np.nan
    return values


def world_of(tables: dict[str, Floats], names: tuple[str, ...] = NAMES, **changes: Any) -> Attacked:
    columns = {s: {n: v[:, NAMES.index(n)] for n in names} for s, v in tables.items()}
    terms: dict[str, Any] = {"requests": ("expectation",), "rounds": 60} | changes
    return Attacked(columns, Schema.continuous(names), {n: BOUNDS[n] for n in names}, **terms)


def usual(**changes: Any) -> Attacked:
    return world_of({s: rows(i) for i, s in enumerate(SITES)}, **changes)


def step(federation: Federation, number: int) -> LimbArray:
    total: LimbArray = federation.ask(AskExpectation(NAMES, number))
    return total


def transcript(federation: Federation) -> bytes:
    """What the coordinator has of the last sum, as the sites signed it."""
    return base64.b64decode(federation._scheduler._sums[-1]["transcript"])


def show(federation: Federation, data: bytes) -> None:
    """Let the coordinator send something else with its next request."""
    sums = federation._scheduler._sums
    sums[-1] = dict(sums[-1]) | {"transcript": base64.b64encode(data).decode()}


def made_up(world: Attacked, frames: Frames) -> Frames:
    """The coordinator adds something to an answer and signs it with the only key it has."""
    frame = parse(frames[0])
    body = bytes([*frame.body[:-1], frame.body[-1] ^ 1])
    terms = secure_sums(world.study.protocol).terms(world.study.roster)
    forged = pack(EnvelopeKind.MASKED, terms, frame.round, frame.sender, body, world.boss)
    return [forged, *frames[1:]]


def exchanged(world: Attacked, frames: Frames) -> Frames:
    """A site that colludes signs other numbers, once the sum of the others is known."""
    frame = parse(frames[0])
    body = bytes([*frame.body[:-1], frame.body[-1] ^ 1])
    terms, key = (
        secure_sums(world.study.protocol).terms(world.study.roster),
        world.keys[SITES[frame.sender]],
    )
    return [pack(frame.kind, terms, frame.round, frame.sender, body, key), *frames[1:]]


def touched(world: Attacked, frames: Frames) -> Frames:
    data = bytearray(frames[0])
    data[-200] ^= 1
    return [bytes(data), *frames[1:]]


def other_share(world: Attacked, frames: Frames) -> Frames:
    """A site that colludes signs another share, which would unmask another sum."""
    frame = parse(frames[-1])
    body = bytes([*frame.body[:-4], frame.body[-4] ^ 1, *frame.body[-3:]])
    terms, key = (
        secure_sums(world.study.protocol).terms(world.study.roster),
        world.keys[SITES[frame.sender]],
    )
    return [*frames[:-1], pack(frame.kind, terms, frame.round, frame.sender, body, key)]


@pytest.mark.long
@pytest.mark.parametrize(
    "change",
    [
        made_up,
        exchanged,
        touched,
        other_share,
        lambda _, frames: [],
        lambda _, frames: frames[1:],
        lambda _, frames: frames[:3],
        lambda _, frames: frames[:6],
        lambda _, frames: frames[:3] + frames[6:],
        lambda _, frames: frames[:-1],
        lambda _, frames: [frames[0], *frames],
        lambda _, frames: [frames[0], frames[0], *frames[2:]],
        lambda _, frames: [*frames, b"more"],
    ],
)
def test_a_sum_that_the_sites_did_not_sign_is_refused(
    change: Callable[[Attacked, Frames], Frames],
) -> None:
    world = usual()
    federation = world.federation()
    step(federation, 0)
    frames = split_frames(transcript(federation))
    assert [parse(f).kind for f in frames] == 3 * [EnvelopeKind.MASKED] + 3 * [
        EnvelopeKind.CONSENT
    ] + 3 * [EnvelopeKind.REVEAL]
    show(federation, b"".join(change(world, frames)))
    with pytest.raises(AbortedError, match=r"'north': 'refused'"):
        step(federation, 1)
    assert {tuple(world.why(s)) for s in SITES} == {("bad_request",)}
    show(federation, b"".join(frames))
    step(federation, 1)


def test_the_sum_of_an_earlier_run_is_refused() -> None:
    world = usual()
    first = world.federation()
    step(first, 0)
    old = transcript(first)
    second = world.federation(first_round=10)
    step(second, 0)
    assert transcript(second) != old
    show(second, old)
    with pytest.raises(AbortedError):
        step(second, 1)
    assert {tuple(world.why(s)) for s in SITES} == {("bad_request",)}


def test_the_sum_of_another_step_is_refused() -> None:
    """Even after the sites were asked to begin again, and have forgotten the other steps."""
    world = usual()
    federation = world.federation()
    for number in range(3):
        step(federation, number)
    later = transcript(federation)
    for site in world.sites.values():  # they begin again, and nothing leaves
        world.round = 20
        parse(site.handle(world.frame(AskExpectation(NAMES, 0))))
    second = world.federation(first_round=30)
    second._scheduler._sums.append({"transcript": base64.b64encode(later).decode()})
    second._scheduler._position = 1
    with pytest.raises(AbortedError):
        step(second, 1)
    assert {tuple(world.why(s)) for s in SITES} == {("bad_request",)}


@pytest.mark.parametrize("number", [2, 3, 61, -1])
def test_steps_are_asked_in_order_and_within_the_limit(number: int) -> None:
    world = usual()
    federation = world.federation()
    step(federation, 0)
    with pytest.raises(AbortedError):
        step(federation, number)
    assert all(world.why(s) for s in SITES)


def test_a_study_bounds_steps_and_rounds() -> None:
    for changes, why in (
        ({"limits": {"expectation": {"steps": 1}}}, "policy"),
        ({"rounds": 2}, "policy"),
    ):
        world = usual(**changes)
        federation = world.federation()
        for number in range(2):
            step(federation, number)
        with pytest.raises(AbortedError):
            step(federation, 2)
        assert {tuple(world.why(s)) for s in SITES} == {(why,)}


def test_a_step_of_some_variables_is_refused() -> None:
    world = usual()
    with pytest.raises(AbortedError):
        world.federation().ask(AskExpectation(("x", "y"), 0))
    assert {tuple(world.why(s)) for s in SITES} == {("policy",)}


def test_incomplete_tables_answer_nothing_else() -> None:
    world = usual()
    with pytest.raises(AbortedError):
        world.federation().ask(AskMoments(NAMES))
    assert {tuple(world.why(s)) for s in SITES} == {("policy",)}


@pytest.mark.parametrize(
    ("mean", "product"), [(0.0, 2.0**60), (1e9, 0.0), (0.0, 1.01), (0.0, 2.0**11)]
)
def test_a_site_cannot_choose_parameters_at_which_sums_are_cut(mean: float, product: float) -> None:
    """The total would tell how many of the other sites were cut at an upper limit."""
    world = usual()
    grid, n = FixedPointEncoding.of(world.study), 720
    total = step(world.federation(), 0)
    for steered in (False, True):
        run = ExpectationRun(grid)
        run.take(total)
        means, covariance = np.zeros(3), np.eye(3)
        if steered:
            means[0] = mean
            covariance[0, 2] = covariance[2, 0] = product
        products = n * (covariance + np.outer(means, means))
        sums = [*(n * means), *products[np.triu_indices(3)]]
        numbers = from_ints([round(v * 2**FRACTION) for v in sums], LIMBS)
        if steered:
            with pytest.raises(DataError, match="wrong answer"):
                run.take(numbers)
        else:
            run.take(numbers)


def test_a_sum_that_was_refused_is_refused_again() -> None:
    world = usual()
    grid = FixedPointEncoding.of(world.study)
    state, source = MethodState(grid), Frame(np.nan_to_num(rows(0)), names=NAMES)
    state.answer(AskExpectation(NAMES, 0), source)
    state.take(AskExpectation(NAMES, 1), step(world.federation(), 0))
    state.answer(AskExpectation(NAMES, 1), source)
    steered = from_ints([2**100] * 9, LIMBS)
    for _ in range(2):
        state.take(AskExpectation(NAMES, 2), steered)
        with pytest.raises(DataError, match="wrong answer"):
            state.answer(AskExpectation(NAMES, 2), source)


def test_no_sum_is_cut_at_the_most_extreme_parameters() -> None:
    rng = np.random.default_rng(0)
    d = 20
    for _ in range(20):
        turned = np.linalg.qr(rng.normal(size=(d, d)))[0]
        eigenvalues = np.where(rng.random(d) < 0.5, -RIDGE / 2, LARGEST * d)
        covariance = (turned * eigenvalues) @ turned.T + RIDGE * np.eye(d)
        given = rng.random(d) < 0.5
        given[:2] = True, False
        x, mean = (WIDEST * rng.choice([-1.0, 1.0], d) for _ in range(2))
        known = np.linalg.solve(covariance[np.ix_(given, given)], (x - mean)[given])
        expected = mean[~given] + covariance[np.ix_(~given, given)] @ known
        assert (expected**2).max() < 2.0**MAGNITUDE


def test_numbers_that_no_table_has_end_in_a_sentence() -> None:
    world = usual()
    total = step(world.federation(), 0)
    for k in range(3):
        wrong = total.copy()
        wrong[k] = from_ints([-1 if k else 2**60], LIMBS)[0]
        with pytest.raises(DataError, match="wrong answer"):
            ExpectationRun(FixedPointEncoding.of(world.study)).take(wrong)
