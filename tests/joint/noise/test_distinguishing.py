"""Nobody can tell from many answers of a site whether one person is in its table.

The site computes its numbers and its noise as it does in a study, but draws the noise of all runs
at once. The test asks the best possible question: the projection of the answer on the difference
that the person makes.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.joint.consortium import Consortium

from isthmus.statistics import CountPlan, Kind, Schema, Variable
from isthmus_joint import AskCounts, DifferentialPrivacy, Extract
from isthmus_joint.noise import answers
from isthmus_joint.noise.accounting import epsilon_of
from isthmus_joint.noise.answers import NoisyAnswers, discrete_gaussian, noisy_release
from isthmus_joint.noise.statistics import NoisyMoments
from isthmus_joint.noise.structure import PAIRS
from isthmus_joint.noise.whitening import LARGEST_ENTRY, LAST
from isthmus_joint.secure_sum.terms import to_int64

pytest.importorskip("opendp")

RUNS = 100_000 if "ISTHMUS_LONG" in os.environ else 10_000
EPSILON, DELTA = 1.0, 1e-6
CONFIDENCE = 1e-9
"""A correct site fails less than once in a million runs: there are 164 thresholds."""
REQUEST = AskCounts(CountPlan.sets([["ill"]]), round=PAIRS)
PEOPLE = [True] * 7 + [False] * 3
SCHEMA = Schema((Variable("ill", Kind.DISCRETE, (False, True)),))


def answers_of(group: Consortium, ill: list[bool], share: float, runs: int) -> NDArray[np.float64]:
    """Answers of a site over and over, as if it had no ledger."""
    rows = Extract.simulated({"ill": np.array(ill)}, group.study)
    release = noisy_release(REQUEST, group.study)
    site = NoisyAnswers(group.study, group.controller("north")._writer)
    noise = discrete_gaussian(share * release.scale, runs * release.numbers)
    whole = release.integers(site.rows(rows)) + noise.reshape(runs, release.numbers)
    return whole.astype(np.float64)


def observed_epsilon(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """The largest ε that some threshold proves, at a confidence of 1 - 1e-9 per threshold."""
    from scipy.stats import beta

    largest = -math.inf
    for x, y in ((a, b), (b, a), (-a, -b), (-b, -a)):
        for cut in np.quantile(np.concatenate([x, y]), np.linspace(0.001, 0.999, 41)):
            hits, misses = int((x > cut).sum()), int((y > cut).sum())
            low = beta.ppf(CONFIDENCE, hits, len(x) - hits + 1) if hits else 0.0
            high = beta.ppf(1 - CONFIDENCE, misses + 1, len(y) - misses)
            if low > DELTA:
                largest = max(largest, math.log((low - DELTA) / high))
    return largest


def private_group(folder: Path, **changes: Any) -> Consortium:
    terms: dict[str, Any] = {"requests": ["counts"], "plan": CountPlan.up_to(1)}
    group = Consortium(
        folder,
        schema=SCHEMA,
        bounds={},
        privacy=DifferentialPrivacy(EPSILON, DELTA, honest=1),
        **(terms | changes),
    )
    for name, policy in group.policies.items():
        group.policies[name] = replace(policy, maximum_epsilon=EPSILON)
    return group


def projected(
    folder: Path, share: float, runs: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Answers with and without one person, along the difference that the person makes."""
    group = private_group(folder)
    release = noisy_release(REQUEST, group.study)
    values = np.array(PEOPLE, dtype=float)[:, None]
    person = release.integers(values) - release.integers(values[1:])
    assert np.linalg.norm(person) == pytest.approx(release.sensitivity)
    a, b = (answers_of(group, p, share, runs) for p in (PEOPLE, PEOPLE[1:]))
    return a @ person, b @ person


@pytest.mark.long
def test_a_person_cannot_be_noticed(tmp_path: Path) -> None:
    a, b = projected(tmp_path, 1.0, RUNS)
    assert observed_epsilon(a, b) <= EPSILON


def test_too_little_noise_would_be_noticed(tmp_path: Path) -> None:
    """The test has the power to fail: with a sixth of the noise, the person is noticed."""
    a, b = projected(tmp_path, 1 / 6, 5_000)
    assert observed_epsilon(a, b) > EPSILON


def test_an_answer_is_the_exact_one_and_the_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the runs above add up is what a site sends."""
    group = private_group(tmp_path)
    asked: list[tuple[float, int]] = []

    def drawn(scale: float, size: int) -> NDArray[np.int64]:
        asked.append((scale, size))
        return np.arange(size) - 1

    monkeypatch.setattr(answers, "discrete_gaussian", drawn)
    site = NoisyAnswers(group.study, group.controller("north")._writer)
    release = noisy_release(REQUEST, group.study)
    rows = Extract.simulated({"ill": np.array(PEOPLE)}, group.study)
    sent = to_int64(site.numbers(REQUEST, rows))
    assert asked == [(release.scale, release.numbers)]
    assert np.array_equal(sent, release.integers(site.rows(rows)) + np.arange(2) - 1)


@pytest.mark.parametrize("share", [1.0, 1 / 6])
def test_the_best_map_of_a_coordinator_shows_no_person(tmp_path: Path, share: float) -> None:
    """A map that puts everybody on the sphere, where one person changes the products most."""
    terms = private_group(tmp_path, requests=["moments"], plan=None).study
    release = NoisyMoments(terms, LAST, np.array([[0.0, LARGEST_ENTRY], [1.0, -0.9]]))
    values = np.array(PEOPLE, dtype=float)[:, None]
    person = release.integers(values) - release.integers(values[1:])
    assert np.linalg.norm(person / release.spread) > 0.99 * release.sensitivity
    noise = np.zeros((2 * RUNS, release.numbers))
    for spread in np.unique(release.spread):
        same = release.spread == spread
        drawn = discrete_gaussian(share * release.scale * float(spread), 2 * RUNS * int(same.sum()))
        noise[:, same] = drawn.reshape(2 * RUNS, -1)
    best = person / release.spread**2
    found = observed_epsilon((person + noise[:RUNS]) @ best, noise[RUNS:] @ best)
    # With a sixth of the noise, the person is noticed: the test has the power to fail.
    assert (found <= epsilon_of(release.rho, DELTA)) is (share == 1.0)
