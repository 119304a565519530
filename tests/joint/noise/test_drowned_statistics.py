"""Statistics that are nothing but noise: every score and search ends in a result or a sentence."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.joint.noise.test_noisy_statistics import DISCRETE, study

import isthmus as ist
from isthmus.errors import MismatchError
from isthmus.statistics import Counts, Kind, Moments, Schema, Variable
from isthmus_joint.noise.statistics import NoisyRelease, noisy_counts, noisy_moments

pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.IsthmusWarning")

NAMES = tuple("abcde")
STUDY = study(Schema(tuple(Variable(n, Kind.CONTINUOUS) for n in NAMES)), ["moments"])
COUNTED = study(DISCRETE, ["counts"])
NOISE = np.random.default_rng(0).normal(0, 1e4, 1000)
"""Wide noise: the covariance has negative eigenvalues, tables have negative cells."""

SUMS = {"zero": np.zeros(1000), "negative": np.full(1000, -1e6), "noise": NOISE}


def moments(name: str) -> Moments:
    def ask(release: NoisyRelease) -> tuple[list[int], int]:
        return [int(v) for v in SUMS[name][: release.numbers] * release.unit], 4

    return noisy_moments(STUDY, ask).statistic


def counts(name: str) -> Counts:
    def ask(release: NoisyRelease) -> tuple[list[int], int]:
        wide = release.scale / 1e4  # the noise that the study states
        return [int(v) for v in SUMS[name][: release.numbers] * release.spread * wide], 4

    return noisy_counts(COUNTED, ask).statistic


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize(
    "score",
    [
        ist.GaussianBIC(),
        ist.GaussianEBIC(),
        ist.BGe(),
        ist.DegenerateGaussian(),
        ist.LeastSquares(),
        ist.LinearLikelihood(),
    ],
    ids=lambda s: type(s).__name__,
)
def test_scores_of_moments(name: str, score: Any) -> None:
    solution = ist.learn(moments(name), score=score)
    assert math.isfinite(solution.score)
    assert not solution.dag.edges


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize(
    "score", [ist.BIC(), ist.AIC(), ist.EBIC(), ist.BDeu()], ids=lambda s: type(s).__name__
)
def test_scores_of_counts(name: str, score: Any) -> None:
    solution = ist.learn(counts(name), score=score, search=ist.XGES(max_parents=1))
    assert math.isfinite(solution.score)
    assert not solution.dag.edges


@pytest.mark.parametrize(
    "search",
    [
        ist.XGES(),
        ist.HillClimb(),
        ist.Boss(),
        ist.SubsetDP(),
        ist.AStar(),
        ist.OBS(),
        ist.ASOBS(),
        ist.KnownOrder(NAMES),
    ],
    ids=lambda s: type(s).__name__,
)
def test_searches(search: Any) -> None:
    assert not ist.learn(moments("noise"), search=search).dag.edges


def test_the_posterior_of_noise_is_wide() -> None:
    posterior = ist.sample(moments("zero"), sampler=ist.ExactPosterior(), draws=200, chains=2)
    assert len(posterior.ensemble) > 50


@pytest.mark.parametrize("score", [ist.GP(), ist.ExactGP(), ist.AdditiveLeastSquares()])
def test_scores_that_need_more_than_moments_say_so(score: Any) -> None:
    with pytest.raises(MismatchError, match="only statistics here"):
        ist.learn(moments("noise"), score=score)
