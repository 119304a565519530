"""What noise costs, in words: the promise to a person, and the accuracy that it took."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, final

from isthmus.errors import DataWarning
from isthmus.parties.privacy.accounting import epsilon_of
from isthmus.sources.horizontal.privacy.release import Estimate, NoisyRelease

DROWNED = 0.1
"""If noise leaves less than this share of the rows' worth, missing and wrong edges are likely.
Chosen by judgement, not by a measurement; ``benchmarks/results/privacy.md`` shows what it means."""


@final
@dataclass(frozen=True)
class NoiseCost:
    """What the noise of one statistic promises and costs.

    Attributes
    ----------
    name
        Name of the statistic.
    epsilon, delta
        What the answer costs of the budget, with the honest sites that the study counts on.
    alone
        The same ε if all sites in the sum keep their noise to themselves.
    rows, error
        The estimated number of rows, and the standard deviation of its noise.
    worth
        How many rows without noise would be about as informative.
    """

    name: str
    epsilon: float
    delta: float
    alone: float
    rows: int
    error: float
    worth: int

    @classmethod
    def of(
        cls, name: str, release: NoisyRelease[Any], estimate: Estimate[Any], sites: int
    ) -> NoiseCost:
        """Return the cost of an answer over this many sites."""
        delta = release.privacy.delta
        return cls(
            name,
            epsilon_of(release.rho, delta),
            delta,
            epsilon_of(release.cost(sites), delta),
            estimate.rows,
            estimate.error,
            estimate.worth,
        )

    @property
    def promise(self) -> str:
        """The cost of the answer in a phrase."""
        return f"with noise for ε = {self.epsilon:.3g} at δ = {self.delta:g}"

    @property
    def is_drowned(self) -> bool:
        """Whether the noise leaves little of the data."""
        return self.worth < DROWNED * self.rows

    def __str__(self) -> str:
        return (
            f"Differential privacy: the {self.name} have noise for ε = {self.epsilon:.3g} at "
            f"δ = {self.delta:g} per person (ε = {self.alone:.3g} if no site colludes with the "
            f"coordinator). There are about {self.rows:,} rows (± {self.error:,.3g}). With the "
            f"noise they are worth about {self.worth:,} rows, which scores and standard errors "
            "take into account."
        )

    def warn(self) -> None:
        """Warn if the noise leaves little of the data."""
        if self.is_drowned:
            warnings.warn(
                f"The noise drowns the {self.name}: {self.rows:,} rows are worth about "
                f"{self.worth:,}. Many edges will be missing, and some will be wrong. More rows, "
                "fewer variables, smaller tables, narrower bounds or a larger ε help.",
                DataWarning,
                stacklevel=4,
            )
