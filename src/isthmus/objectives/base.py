"""Base class of objectives, and the capabilities by which searches use them.

A search never tests the type of an objective. It states the capabilities that it accepts and asks
for one of them: ``LOCAL_SCORES.of(objective)`` is the objective, typed as a local score, or None.
"""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, cast, final

from isthmus.errors import MismatchError
from isthmus.results.status import Sense

if TYPE_CHECKING:
    from isthmus.objectives.additive import AdditiveLoss
    from isthmus.objectives.family_table import FamilyTable
    from isthmus.objectives.local import LocalScore
    from isthmus.objectives.parametric import ParametricLoss
    from isthmus.objectives.smooth import MomentsLoss, SmoothLoss
    from isthmus.objectives.table import ScoreTable

__all__ = [
    "ADDITIVE_MODEL",
    "EDGE_WEIGHTS",
    "FAMILIES",
    "LAGGED_MODEL",
    "LOCAL_SCORES",
    "PARAMETRIC_MODEL",
    "PARENT_SETS",
    "SECOND_MOMENTS",
    "Capabilities",
    "Capability",
    "Objective",
    "Sense",
]

InterfaceT = TypeVar("InterfaceT")


@final
@dataclass(frozen=True)
class Capability(Generic[InterfaceT]):
    """An operation that an objective offers and a search can require.

    Parameters
    ----------
    name
        Name for error messages. Two capabilities with the same name are equal.
    """

    name: str

    def of(self, objective: Objective) -> InterfaceT | None:
        """Return the objective as the interface of this capability, or None if it lacks it."""
        return cast(InterfaceT, objective) if self in objective.capabilities else None

    def require(self, objective: Objective) -> InterfaceT:
        """Return the objective as the interface of this capability, or raise `MismatchError`."""
        interface = self.of(objective)
        if interface is None:
            offered = " and ".join(sorted(c.name for c in objective.capabilities)) or "nothing"
            raise MismatchError(
                f"This needs {self.name}; a {type(objective).__name__} offers {offered}."
            )
        return interface

    def __str__(self) -> str:
        return self.name


Capabilities: TypeAlias = frozenset[Capability[Any]]


class Objective(ABC):
    """Base class of the functions of a graph that searches optimise and samplers explore.

    Attributes
    ----------
    nodes
        Names of the variables; an index means a position in this tuple.
    equivalent
        Whether Markov-equivalent graphs always have the same value.
    sense
        Whether larger or smaller values are better.
    capabilities
        Capabilities of the objective.
    """

    nodes: tuple[str, ...]
    equivalent: bool
    sense: ClassVar[Sense]
    capabilities: Capabilities


LOCAL_SCORES: Capability[LocalScore] = Capability("local scores of parent sets")
"""``score(child | parents)`` for any parent set; see `LocalScore`."""

PARENT_SETS: Capability[ScoreTable] = Capability("a table of scored parent sets")
"""A list of scored parent sets for each node; see `ScoreTable`."""

FAMILIES: Capability[FamilyTable] = Capability("a table of all families")
"""The score of every parent set among the candidates of each node; see `FamilyTable`."""

EDGE_WEIGHTS: Capability[SmoothLoss] = Capability("a smooth loss over edge weights")
"""A differentiable loss of a matrix of edge weights; see `SmoothLoss`."""

SECOND_MOMENTS: Capability[MomentsLoss] = Capability("a smooth loss from second moments")
"""A loss of edge weights that a covariance matrix determines; see `MomentsLoss`."""

ADDITIVE_MODEL: Capability[AdditiveLoss] = Capability("a loss of additive models")
"""A loss that is linear in the coefficients of each cause; see `AdditiveLoss`."""

LAGGED_MODEL: Capability[AdditiveLoss] = Capability("a loss with lagged effects")
"""An additive loss whose last nodes are earlier time steps of the first ones, as `lags` states."""

PARAMETRIC_MODEL: Capability[ParametricLoss] = Capability("a loss of parametric models")
"""A loss of a vector of parameters, such as those of neural networks; see `ParametricLoss`."""
