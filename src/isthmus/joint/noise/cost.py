"""What noise costs, in words: the promise to a person, and the accuracy that it took."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from isthmus.errors import DataWarning
from isthmus.joint.noise.accounting import epsilon_of
from isthmus.joint.noise.release import NoisyEstimate, NoisyRelease

ENOUGH = 30
"""Effective number of rows per variable below which many edges are likely to be missing. Chosen
when all tables were released at once, and not measured again since."""


@final
@dataclass(frozen=True)
class NoiseCost:
    """Privacy guarantee of the noise of one statistic, and its cost in accuracy.

    Attributes
    ----------
    name, variables
        Name of the statistic, and the number of its variables.
    epsilon, delta
        Share of the budget for the answer, given the honest sites that the study assumes.
    alone
        The same ε if all sites in the sum keep their noise to themselves.
    rows, error
        The estimated number of rows, and the standard deviation of its noise.
    used
        The number of rows that scores and standard errors are computed with.
    worth
        How many rows without noise would give about as accurate a network.
    hidden, clipped
        Variables whose bounds may be too wide or too narrow; see `NoisyEstimate`.
    """

    name: str
    variables: int
    epsilon: float
    delta: float
    alone: float
    rows: int
    error: float
    used: int
    worth: int
    hidden: tuple[str, ...] = ()
    clipped: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        releases: Sequence[NoisyRelease],
        estimate: NoisyEstimate[Any],
        sites: int,
    ) -> NoiseCost:
        """Return the cost of a statistic that was estimated from answers of this many sites."""
        delta = releases[0].privacy.delta
        return cls(
            name,
            len(estimate.statistic.schema),
            epsilon_of(sum(r.rho for r in releases), delta),
            delta,
            epsilon_of(sum(r.cost(sites) for r in releases), delta),
            estimate.rows,
            estimate.error,
            estimate.statistic.n,
            estimate.worth,
            estimate.hidden,
            estimate.clipped,
        )

    @property
    def is_drowned(self) -> bool:
        """Whether the noise, and not the number of rows, leaves little to learn from."""
        return self.worth < min(ENOUGH * self.variables, self.rows / 2)

    def __str__(self) -> str:
        return (
            f"Differential privacy: the {self.name} have noise for ε = {self.epsilon:.3g} at "
            f"δ = {self.delta:g} per person (ε = {self.alone:.3g} if no site colludes with the "
            f"coordinator). There are about {_rows(self.rows)} (± {self.error:,.3g}). With the "
            f"noise, expect a network about as accurate as one from {_rows(self.worth)} without "
            f"noise. Scores and standard errors are those of {_rows(self.used)}."
        )

    def warn(self) -> None:
        """Warn if the noise leaves little of the data, or if bounds seem to be wrong."""
        said = []
        if self.is_drowned:
            told = (
                f"as much as about {self.worth:,} without it. Many edges will be missing"
                if self.worth > 1
                else "nothing. No edge can be found"
            )
            said.append(
                f"The noise dominates the {self.name}: {self.rows:,} rows with noise tell {told}. "
                "More rows, fewer variables, smaller tables or a larger ε help."
            )
        if self.hidden:
            said.append(
                f"The noise hides how {list(self.hidden[:10])} vary, so that no edge of them can "
                "be found. If values are spread over a small part of the bounds, the bounds in the "
                "study are too wide."
            )
        if self.clipped:
            said.append(
                f"Values of {list(self.clipped[:10])} pile up at their bounds, to which they were "
                "clipped. Unless a variable has many such values by its nature, its bounds in the "
                "study are too narrow: relations of clipped values are not those of the values, "
                "and edges may be learned that are not there. Freeze the tables for a study with "
                "wider bounds, or take the logarithm of skewed variables first."
            )
        if said:
            warnings.warn(" ".join(said), DataWarning, stacklevel=3)


def _rows(count: int) -> str:
    return f"{count:,} {'row' if count == 1 else 'rows'}"
