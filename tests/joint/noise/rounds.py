"""Rounds of moments with noise from a seed, without keys and masks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isthmus.joint import Study
from isthmus.joint.noise.moments import NoisyMoments, noisy_moments
from isthmus.joint.noise.release import NoisyEstimate
from isthmus.statistics import Moments
from isthmus.types import Floats


def estimate(
    study: Study,
    rows: Any,
    rng: np.random.Generator,
    asked: list[int] | None = None,
) -> NoisyEstimate[Moments]:
    """What a coordinator learns from these rows of all sites together."""
    sites = len(study.members)

    def ask(number: int, transform: Floats | None) -> tuple[list[int], int]:
        if asked is not None:
            asked.append(number)
        release = NoisyMoments(study, number, transform)
        noise = rng.normal(size=release.numbers) * release.spread * release.scale
        total = release.integers(rows) + np.rint(noise * math.sqrt(sites)).astype(np.int64)
        return total.tolist(), sites

    return noisy_moments(study, ask)
