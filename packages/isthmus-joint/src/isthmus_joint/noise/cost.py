"""What noise costs, in words: the promise to a person, and the accuracy that it took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from isthmus.errors import warn
from isthmus_joint.agreement.study import Study
from isthmus_joint.noise.accounting import epsilon_of
from isthmus_joint.noise.statistics import (
    LEAST,
    NoisyEstimate,
    NoisyMoments,
    NoisyRelease,
)
from isthmus_joint.noise.whitening import LAST, last_radius

ENOUGH = 30
"""Effective number of rows per variable below which many edges are likely to be missing. Chosen
when all tables were released at once, and not measured again since."""


CENTRES = 0.15
"""Centres of sites are warned of if they are wrong by more standard deviations. Up to there, no
false edges were left by sites of different levels: ``benchmarks/results/privacy-whitening.md``."""


def cost_of_noise(
    name: str, releases: Sequence[NoisyRelease], estimate: NoisyEstimate[Any], sites: int
) -> str:
    """Return the promise of the noise of a statistic, and what it took.

    Parameters
    ----------
    releases
        The answers that it was estimated from.
    sites
        Number of sites in each sum. All of them may keep their noise to themselves, and not only
        the honest ones that the study assumes.
    """
    delta = releases[0].privacy.delta
    epsilon = epsilon_of(sum(r.rho for r in releases), delta)
    alone = epsilon_of(sum(r.cost(sites) for r in releases), delta)
    return (
        f"Differential privacy: the {name} have noise for ε = {epsilon:.3g} at "
        f"δ = {delta:g} per person (ε = {alone:.3g} if no site colludes with the "
        f"coordinator). There are about {_rows(estimate.rows)} (± {estimate.error:,.3g}). With the "
        f"noise, expect a network about as accurate as one from {_rows(estimate.worth)} without "
        f"noise. Scores and standard errors are those of {_rows(estimate.statistic.n)}."
    )


def warn_of_noise(name: str, estimate: NoisyEstimate[Any]) -> None:
    """Warn if the noise leaves little of the data, or if bounds seem to be wrong."""
    said = []
    if estimate.worth < min(ENOUGH * len(estimate.statistic.schema), estimate.rows / 2):
        told = (
            f"as much as about {estimate.worth:,} without it. Many edges will be missing"
            if estimate.worth > 1
            else "nothing. No edge can be found"
        )
        said.append(
            f"The noise dominates the {name}: {estimate.rows:,} rows with noise tell {told}. "
            "More rows, fewer variables, smaller tables or a larger ε help."
        )
    if estimate.centres > CENTRES:
        said.append(
            "The sites have too few rows for this noise to find their means: levels that differ by "
            f"{estimate.centres:.1g} standard deviations can cause edges. More rows per site and a "
            "larger ε help. If the sites are alike, draft the study with within_sites = false."
        )
    if estimate.hidden:
        said.append(
            f"The noise hides how {list(estimate.hidden[:10])} vary, so that no edge of them can "
            "be found. If values are spread over a small part of the bounds, the bounds in the "
            "study are too wide."
        )
    if estimate.clipped:
        said.append(
            f"Values of {list(estimate.clipped[:10])} pile up at their bounds, to which they were "
            "clipped. Unless a variable has many such values by its nature, its bounds in the "
            "study are too narrow: relations of clipped values are not those of the values, "
            "and edges may be learned that are not there. Freeze the tables for a study with "
            "wider bounds, or take the logarithm of skewed variables first."
        )
    if said:
        warn(" ".join(said))


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"


# --- What noise will cost, said before anybody signs: from public numbers alone -----------------

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

    Returns
    -------
    int
        Zero if noise will leave nothing to learn from.
    """
    width = 1 + study.schema.width
    noise = NoisyMoments(study, LAST).noise(len(study.members))
    error = noise.error(_last_radius(study, rows), rows)
    largest = 2.0 * error * math.sqrt(width)
    if largest > LARGEST_NOISE:
        return 0
    error /= VARIANCE * (WEAKEST - LOSS * largest)
    worth = 1.0 / (1.0 / rows + error**2)
    return round(worth) if worth >= LEAST * study.schema.width else 0


def _last_radius(study: Study, rows: int) -> float:
    noise = NoisyMoments(study, LAST).noise(len(study.members))
    return last_radius(1 + study.schema.width, rows, noise.products)


def described_forecast(study: Study) -> str:
    """Describe the forecast in a phrase, for someone who signs the study."""
    assert study.privacy is not None
    stated = study.privacy.expected_rows
    noise = NoisyMoments(study, LAST).noise(len(study.members))
    return "; ".join(
        _phrase(rows, forecast(study, rows), noise.centre_error(_last_radius(study, rows), rows))
        for rows in ((stated,) if stated else EXAMPLES)
    )


def _phrase(rows: int, worth: int, centres: float) -> str:
    if not worth:
        return f"{rows:,} rows with noise will be too few to learn anything"
    hidden = ", but too few per site to tell levels of sites apart" if centres > CENTRES else ""
    return f"{rows:,} rows with noise will be worth about {worth:,} without{hidden}"
