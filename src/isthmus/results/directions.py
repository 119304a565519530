"""Which edge directions the data determine, which knowledge fixes, and which are open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np

from isthmus.graphs import DAG, Knowledge
from isthmus.plurals import counted

Edges: TypeAlias = tuple[tuple[str, str], ...]


@final
@dataclass(frozen=True)
class Directions:
    """The edges of a graph, by what determines their directions.

    ``str(directions)`` is a sentence about them.

    Attributes
    ----------
    determined
        Edges whose directions the data determine.
    fixed
        Edges whose directions follow only with background knowledge or the order of time.
    open
        Edges that can point either way: graphs with both directions have the same score.
    """

    determined: Edges = ()
    fixed: Edges = ()
    open: Edges = ()

    def describe(self, edge: tuple[str, str]) -> str:
        """Return what determines the direction of an edge, in a few words."""
        if edge in self.determined:
            return "determined by the data"
        return "fixed by knowledge" if edge in self.fixed else "not determined"

    def __str__(self) -> str:
        known, fixed, free = len(self.determined), len(self.fixed), len(self.open)
        total = known + fixed + free
        if not total:
            return "There are no edges."
        if known == total:
            return f"The data determine {_all(total)}."
        if fixed == total:
            return f"Background knowledge fixes {_all(total)}."
        either = f"{counted(free, 'edge')} can point either way"
        if free == total:
            return f"The data determine no direction: {either}."
        parts = [f"The data determine {known or 'none'} of the {total} directions"]
        if fixed:
            parts.append(f"background knowledge fixes {fixed}")
        if free:
            parts.append(either)
        return ", ".join(parts[:-1]) + f", and {parts[-1]}."


def split_directions(
    dag: DAG, directed: Edges, knowledge: Knowledge, identified: Edges
) -> Directions:
    """Return the edges of a graph by what determines their directions.

    Parameters
    ----------
    dag
        The graph.
    directed
        Edges with a direction in its equivalence class, given the knowledge.
    knowledge
        Background knowledge.
    identified
        Edges whose directions the targets of interventions or non-Gaussian noise determine.
    """
    # Two parents that are not adjacent determine directions. If knowledge keeps them apart, the
    # data did not: with an edge between them, only the other directions are determined.
    forbidden = knowledge.bind(dag.nodes).forbidden
    apart = forbidden & forbidden.T
    place = {name: i for i, name in enumerate(dag.topological_order())}
    pairs = [(dag.nodes[i], dag.nodes[j]) for i, j in np.argwhere(np.triu(apart, 1)).tolist()]
    joined = {(a, b) if place[a] < place[b] else (b, a) for a, b in pairs}
    whole = DAG(dag.nodes, [*dag.edges, *sorted(joined.difference(dag.edges))])
    told = whole.cpdag(Knowledge(required=identified)) if identified else whole.cpdag()
    data, known = set(told.directed), set(directed)
    return Directions(
        determined=tuple(e for e in dag.edges if e in known and e in data),
        fixed=tuple(e for e in dag.edges if e in known and e not in data),
        open=tuple(e for e in dag.edges if e not in known),
    )


def _all(total: int) -> str:
    if total == 1:
        return "the direction of the edge"
    return "both directions" if total == 2 else f"all {total} directions"
