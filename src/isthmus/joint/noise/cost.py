"""What noise costs, in words: the promise to a person, and the accuracy that it took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isthmus.errors import warn
from isthmus.joint.noise.accounting import epsilon_of
from isthmus.joint.noise.release import NoisyEstimate, NoisyRelease

ENOUGH = 30
"""Effective number of rows per variable below which many edges are likely to be missing. Chosen
when all tables were released at once, and not measured again since."""


def cost_of_noise(
    name: str, releases: Sequence[NoisyRelease], estimate: NoisyEstimate[Any], sites: int
) -> str:
    """Return the promise of the noise of a statistic, and what it took.

    Parameters
    ----------
    name
        Name of the statistic.
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
