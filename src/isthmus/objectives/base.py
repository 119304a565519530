"""Base class of objectives, and the capabilities by which searches use them.

A search never tests the type of an objective. It states the capabilities that it accepts and asks
for one of them: ``LOCAL_SCORES.of(objective)`` is the objective, typed as a local score, or None.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast, final

from isthmus.errors import MismatchError
from isthmus.graphs import DAG
from isthmus.plurals import a_type
from isthmus.results.status import Sense

__all__ = ["Capabilities", "Capability", "Objective", "Sense"]

InterfaceT = TypeVar("InterfaceT")


@final
@dataclass(frozen=True)
class Capability(Generic[InterfaceT]):
    """An operation that an objective offers and a search can require.

    Parameters
    ----------
    name
        Name for error messages. Two capabilities with the same name are equal.
    offered_by
        The sources that offer it, for error messages, if no score does.
    """

    name: str
    offered_by: str = field(default="", compare=False)

    def of(self, objective: Objective) -> InterfaceT | None:
        """Return the objective as the interface of this capability, or None if it lacks it."""
        return cast(InterfaceT, objective) if self in objective.capabilities else None

    def require(self, objective: Objective) -> InterfaceT:
        """Return the objective as the interface of this capability, or raise `MismatchError`."""
        interface = self.of(objective)
        if interface is None:
            offered = " and ".join(sorted(c.name for c in objective.capabilities)) or "nothing"
            raise MismatchError(f"This needs {self.name}; {a_type(objective)} offers {offered}.")
        return interface

    def __str__(self) -> str:
        return self.name


Capabilities: TypeAlias = frozenset[Capability[Any]]
"""All that an objective offers."""


class Objective(ABC):
    """Base class of the functions of a graph that searches optimise and samplers explore.

    Attributes
    ----------
    nodes
        Names of the variables; an index means a position in this tuple.
    equivalent
        Whether Markov-equivalent graphs always have the same value.
    equivalent_given_targets
        The same if edges between targets of interventions and other variables agree; None if
        there were no interventions.
    sense
        Whether larger or smaller values are better.
    capabilities
        Capabilities of the objective.
    """

    nodes: tuple[str, ...]
    equivalent: bool
    equivalent_given_targets: bool | None = None
    sense: ClassVar[Sense]
    capabilities: Capabilities

    def notes(self, dag: DAG) -> Sequence[str]:
        """Return what a user should know about a graph that was found with this objective."""
        del dag
        return ()
