"""What becomes of a graph when the data are standardised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, final

from isthmus.graphs import DAG

if TYPE_CHECKING:
    from isthmus.results.solution import Solution

Edges: TypeAlias = tuple[tuple[str, str], ...]


@final
@dataclass(frozen=True)
class Refit:
    """A graph beside the one learned by the same score and search from standardised columns.

    Edges that are turned or gone owe something to the scales of the columns. Where scales mean
    something, as when all columns are in one unit, that is information; where they are a matter
    of units it is an artefact.

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
        """Edges that join nodes which are not joined on standardised columns."""
        there = self.standardised.dag
        return tuple(
            (a, b) for a, b in self.dag.edges if not (there.has_edge(a, b) or there.has_edge(b, a))
        )

    @property
    def new(self) -> Edges:
        """Edges of the standardised graph between nodes that were not joined."""
        return tuple(
            (a, b)
            for a, b in self.standardised.dag.edges
            if not (self.dag.has_edge(a, b) or self.dag.has_edge(b, a))
        )

    def __str__(self) -> str:
        counts = f"{len(self.kept)} of {len(self.dag.edges)} edges are the same"
        rest = f"{len(self.turned)} point the other way, {len(self.gone)} are gone"
        return f"On standardised columns {counts}, {rest}, {len(self.new)} are new."
