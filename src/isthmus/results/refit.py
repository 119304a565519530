"""Whether a learned graph depends on the scales of the columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from isthmus.graphs import DAG
from isthmus.plurals import counted
from isthmus.results.directions import Edges

if TYPE_CHECKING:
    from isthmus.results.solution import Solution


@final
@dataclass(frozen=True)
class Refit:
    """A comparison of a learned graph with the one learned from standardised columns.

    Edges that are reversed or missing depend on the scales of the columns. If the scales carry
    information, for example because all columns have the same unit, so do these edges; if the
    units are arbitrary, they are artefacts.

    Attributes
    ----------
    dag
        The graph learned first.
    standardised
        The solution on standardised columns.
    """

    dag: DAG
    standardised: Solution

    @property
    def kept(self) -> Edges:
        """Edges of both graphs."""
        return tuple(e for e in self.dag.edges if self.standardised.dag.has_edge(*e))

    @property
    def turned(self) -> Edges:
        """Edges that point the other way on standardised columns."""
        return tuple((a, b) for a, b in self.dag.edges if self.standardised.dag.has_edge(b, a))

    @property
    def gone(self) -> Edges:
        """Edges between nodes that are not adjacent on standardised columns."""
        other = self.standardised.dag
        return tuple(
            (a, b) for a, b in self.dag.edges if not (other.has_edge(a, b) or other.has_edge(b, a))
        )

    @property
    def new(self) -> Edges:
        """Edges of the standardised graph between nodes that were not adjacent."""
        return tuple(
            (a, b)
            for a, b in self.standardised.dag.edges
            if not (self.dag.has_edge(a, b) or self.dag.has_edge(b, a))
        )

    def __str__(self) -> str:
        return (
            f"On standardised columns {len(self.kept)} of {counted(len(self.dag.edges), 'edge')} "
            f"stay the same, {len(self.turned)} point the other way, {len(self.gone)} are gone, "
            f"{len(self.new)} are new."
        )

    __repr__ = __str__
