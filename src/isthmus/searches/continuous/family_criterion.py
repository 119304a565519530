"""The criterion that chooses parents where each edge may have several coefficients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from isthmus.options import require_number

_SATURATED = 3.0
"""A fit with fewer observations per coefficient is not trusted."""


@final
@dataclass(frozen=True)
class FamilyEBIC:
    """Extended BIC of a target and its parents, in nats.

    ``n' l + k log(n) / 2 + 2 gamma |parents| log(p)`` with l the mean loss of the refitted model
    in nats, k its degrees of freedom, p the number of possible parents (Chen and Chen 2008). For
    least squares each target has its own noise variance, and ``n' = n - k - 1`` replaces n, which
    keeps the rate of false edges constant for few observations. An edge must also have a minimum
    strength: no model holds exactly, and with many observations any two columns with an unmeasured
    common cause show evidence for an edge.

    Parameters
    ----------
    gamma
        Weight of the number of possible parents: 0 is BIC; 0.5 limits the number of false edges if
        there are many variables.
    strength
        Minimum standard deviation of the contribution of an edge to its target, in units of the
        noise of the target.
    """

    gamma: float = 0.5
    strength: float = 0.2

    def __post_init__(self) -> None:
        require_number(self, "gamma", least=0)
        require_number(self, "strength", least=0)

    def edges(self, freedom: float, parents: int, observations: int, possible: int) -> float:
        """Return the cost of the edges into one target.

        Parameters
        ----------
        freedom
            Degrees of freedom of the edges.
        parents
            Number of edges.
        observations
            Sample size.
        possible
            Number of possible parents.
        """
        choice = 2.0 * self.gamma * math.log(max(possible, 2))
        return 0.5 * freedom * math.log(observations) + parents * choice

    @staticmethod
    def trusts(freedom: float, observations: int) -> bool:
        """Return whether there are enough observations for this number of degrees of freedom."""
        return _SATURATED * freedom <= observations
