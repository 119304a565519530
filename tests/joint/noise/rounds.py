"""Rounds of moments with noise from a seed, without keys and masks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isthmus.statistics import Moments
from isthmus_joint import Study
from isthmus_joint.federation.requests.statistics import AskMoments
from isthmus_joint.noise.statistics import NoisyEstimate, NoisyRelease, noisy_moments


def estimate(
    study: Study,
    rows: Any,
    rng: np.random.Generator,
    asked: list[int] | None = None,
) -> NoisyEstimate[Moments]:
    """What a coordinator learns from these rows of all sites together."""
    sites = len(study.members)

    def ask(release: NoisyRelease) -> tuple[list[int], int]:
        request = release.request()
        if asked is not None and isinstance(request, AskMoments) and request.round is not None:
            asked.append(request.round)
        noise = rng.normal(size=release.numbers) * release.spread * release.scale
        total = release.integers(rows) + np.rint(noise * math.sqrt(sites)).astype(np.int64)
        return total.tolist(), sites

    return noisy_moments(study, ask)
