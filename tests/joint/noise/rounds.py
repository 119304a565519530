"""Rounds of moments with noise from a seed, without keys and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.statistics import Moments
from isthmus_joint import Study
from isthmus_joint.federation.requests.statistics import AskMoments
from isthmus_joint.noise.statistics import NoisyEstimate, NoisyRelease, noisy_moments


def estimate(
    study: Study,
    rows: Any,
    rng: np.random.Generator,
    asked: list[int] | None = None,
    site_of: Any = None,
) -> NoisyEstimate[Moments]:
    """What a coordinator learns from these rows, of which by default each site has every fourth."""
    sites = len(study.members)
    offsets = [np.empty(0)] * sites
    site_of = np.arange(len(rows)) % sites if site_of is None else site_of

    def draw(spread: Floats, scale: float) -> Integers:
        return np.rint(rng.normal(0.0, spread * scale)).astype(np.int64)

    def ask(release: NoisyRelease) -> tuple[list[int], int]:
        request = release.request()
        if asked is not None and isinstance(request, AskMoments) and request.round is not None:
            asked.append(request.round)
        answers = [release.answer(rows[site_of == k], offsets[k], draw) for k in range(sites)]
        offsets[:] = [a.offset for a in answers]
        total = np.sum([a.numbers for a in answers], axis=0)
        return total.tolist(), sites

    return noisy_moments(study, ask)
