"""What noise will cost, said before anybody signs: from public numbers alone."""

from __future__ import annotations

import math

from isthmus.joint.agreement.study import Study
from isthmus.joint.noise.moments import LEAST, NoisyMoments, noise_of
from isthmus.joint.noise.whitening import LAST, last_radius

EXAMPLES = (1_000, 10_000, 100_000, 1_000_000)
"""Numbers of rows of a forecast if a study states none."""

VARIANCE, WEAKEST, LOSS, LARGEST_NOISE = 0.85, 0.8, 2.2, 0.17
"""Variance of mapped rows, the part of it in their weakest direction without noise, how much of it
noise takes, and the noise beyond which rows are not whitened. Nine of ten runs on random networks
are at least as good: ``benchmarks/results/privacy-whitening.md``."""


def forecast(study: Study, rows: int) -> int:
    """Return how many rows without noise the moments of a study will be worth.

    Parameters
    ----------
    study
        A study with differential privacy that allows moments.
    rows
        Number of rows over all sites.

    Returns
    -------
    int
        Zero if noise will leave nothing to learn from.
    """
    width = 1 + study.schema.width
    noise = noise_of(NoisyMoments(study, LAST))
    error = noise * last_radius(width, rows, noise) / rows
    largest = 2.0 * error * math.sqrt(width)
    if largest > LARGEST_NOISE:
        return 0
    error /= VARIANCE * (WEAKEST - LOSS * largest)
    worth = 1.0 / (1.0 / rows + error**2)
    return round(worth) if worth >= LEAST * study.schema.width else 0


def described_forecast(study: Study) -> str:
    """Describe the forecast in a phrase, for someone who signs the study."""
    assert study.privacy is not None
    stated = study.privacy.expected_rows
    return "; ".join(
        _phrase(rows, forecast(study, rows)) for rows in ((stated,) if stated else EXAMPLES)
    )


def _phrase(rows: int, worth: int) -> str:
    if not worth:
        return f"{rows:,} rows with noise will be too few to learn anything"
    return f"{rows:,} rows with noise will be worth about {worth:,} without"
