"""Who decides the direction of each edge: the data, background knowledge, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError, counted
from isthmus.graphs import DAG, Knowledge

if TYPE_CHECKING:
    from isthmus.report import Certainty
    from isthmus.report import Measure as CertaintyMeasure
    from isthmus.report.page import EdgeRow
    from isthmus.results.ensemble import Ensemble
    from isthmus.results.posterior import Posterior

Edge: TypeAlias = tuple[str, str]
Edges: TypeAlias = tuple[Edge, ...]

DECIDED = 5.0
"""The data decide a direction if the best graph with the edge the other way round scores at least
so many nats less. Of directions in tables of simulated normal data, less than 1 % are then wrong.
Halves of Adult do not contradict each other: ``benchmarks/results/margins.md``."""

_BY = {
    "determined": "data",
    "tested": "tests",
    "fixed": "knowledge",
    "open": "nobody",
    "unmeasured": "not measured",
}


@final
@dataclass(frozen=True)
class Directions:
    """The edges of a graph, by who decides their directions.

    ``str(directions)`` is a sentence about them.

    Attributes
    ----------
    determined
        Edges whose directions the data decide: by a margin of at least 5 nats, or by tests.
    fixed
        Edges whose directions follow only with background knowledge or the order of time.
    open
        Edges that nobody decides: a graph with the other direction scores the same, or less than
        5 nats lower, or is not ruled out after seconds of search. They are drawn without an
        arrowhead.
    unmeasured
        Edges with a direction in the learned graph, whose margins were not measured. That is so
        without a local score of statistics at hand, as for `Notears` or tables that an engine or a
        federation counts on demand, and if it would take long: see `Solution.measure_directions`.
    margins
        For each edge that was measured by how much less the best graph scores that has it the other
        way round and agrees with the knowledge. It is infinite if there is no such graph. The best
        graph is searched for, so a margin is an upper bound; with up to 10 variables it is exact.
        If curves were needed that do not tell directions themselves, it is the smaller one of the
        margins with curves and without. An open edge has none if the work was used up before.
    tested
        Whether tests decided instead of scores, as for `PC` and `LiNGAM`.
    """

    determined: Edges = ()
    fixed: Edges = ()
    open: Edges = ()
    unmeasured: Edges = ()
    margins: Mapping[Edge, float] = field(default_factory=dict)
    tested: bool = False

    def decided_by(self, edge: Edge) -> str:
        """Return who decides a direction: data, tests, knowledge, nobody, or "not measured"."""
        if edge in self.determined:
            return _BY["tested" if self.tested else "determined"]
        groups = ("fixed", "open", "unmeasured")
        return _BY[next(name for name in groups if edge in getattr(self, name))]

    def describe(self, edge: Edge) -> str:
        """Return who decides the direction of an edge, in a few words."""
        words = {
            "data": "determined by the data",
            "tests": "determined by tests",
            "knowledge": "fixed by knowledge",
            "nobody": "not determined",
            "not measured": "in the learned graph, margin not measured",
        }
        text, margin = words[self.decided_by(edge)], self.margins.get(edge, inf)
        return text if margin == inf else f"{text}: margin {margin:.1f} nats"

    def to_list(self) -> list[dict[str, Any]]:
        """Return one record per edge, as plain data for JSON; a margin may be None."""
        edges = (*self.determined, *self.fixed, *self.open, *self.unmeasured)
        margins = (self.margins.get(edge, inf) for edge in edges)
        return [
            {
                "from": edge[0],
                "to": edge[1],
                "decided_by": self.decided_by(edge),
                "margin": None if margin == inf else margin,
            }
            for edge, margin in zip(edges, margins, strict=True)
        ]

    @classmethod
    def from_list(cls, records: Iterable[Mapping[str, Any]]) -> Directions:
        """Return the directions of records that `to_list` has written."""
        groups: dict[str, list[Edge]] = {by: [] for by in _BY.values()}
        margins: dict[Edge, float] = {}
        for record in records:
            edge = (str(record["from"]), str(record["to"]))
            groups[record["decided_by"]].append(edge)
            if record["margin"] is not None:
                margins[edge] = float(record["margin"])
        tested = groups[_BY["tested"]]
        return cls(
            determined=tuple(tested or groups[_BY["determined"]]),
            fixed=tuple(groups[_BY["fixed"]]),
            open=tuple(groups[_BY["open"]]),
            unmeasured=tuple(groups[_BY["unmeasured"]]),
            margins=margins,
            tested=bool(tested),
        )

    def __str__(self) -> str:
        data, known, free = len(self.determined), len(self.fixed), len(self.open)
        total = data + known + free + len(self.unmeasured)
        if not total:
            return "There are no edges."
        who, margin = (
            ("tests", "") if self.tested else ("the data", f" by at least {DECIDED:g} nats")
        )
        of = f" of {counted(total, 'direction')}"
        clauses = []
        if data:
            clauses.append(
                f"{who} decide {_all(total) if data == total else f'{data}{of}'}{margin}"
            )
            of = ""
        if known:
            number = _all(total) if known == total else f"{known}{of}"
            clauses.append(f"background knowledge decides {number}")
            of = ""
        if free:
            number = _all(total) if free == total else f"{free}{of}"
            clauses.append(f"{number} {'is' if free == 1 else 'are'} open: {self._why_open()}")
            of = ""
        if self.unmeasured:
            own = len(self.unmeasured)
            number = _all(total) if own == total else f"{own}{of}"
            verb = "is that" if own == 1 else "are those"
            clauses.append(f"{number} {verb} of the learned graph, and margins were not measured")
        text = "; ".join(clauses)
        return f"{text[0].upper()}{text[1:]}."

    __repr__ = __str__

    def _why_open(self) -> str:
        one = len(self.open) == 1
        known = [self.margins[edge] for edge in self.open if edge in self.margins]
        if not self.margins:
            return f"{'the edge' if one else 'these edges'} can point either way"
        best = f"the best graph that has {'it' if one else 'one of them'} the other way round"
        if len(known) < len(self.open):
            return f"{best} scores less than {DECIDED:g} nats lower, or was not found in seconds"
        if not any(known):
            return f"{best} has the same score"
        return f"{best} scores less than {DECIDED:g} nats lower"


Measure: TypeAlias = Callable[[Edges, Knowledge], Mapping[Edge, float] | None]
"""Returns the margins of edges among graphs that agree with the knowledge, if it can."""


def split_directions(
    dag: DAG,
    directed: Edges,
    knowledge: Knowledge,
    identified: Edges,
    measure: Measure,
    *,
    equivalent: bool = True,
    tested: bool = False,
) -> Directions:
    """Return the edges of a graph by who decides their directions.

    Parameters
    ----------
    directed
        Edges with a direction in its equivalence class, given the knowledge.
    knowledge
        Background knowledge, without what the data have identified.
    identified
        Edges whose directions the targets of interventions or non-Gaussian noise determine.
    measure
        Measures margins.
    equivalent
        Whether the graph is one member of a class, which tells what follows from knowledge alone.
    tested
        Whether tests have decided on directions.
    """
    forbidden = knowledge.bind(dag.nodes).forbidden
    closed = set(directed)
    free = tuple(edge for edge in dag.edges if edge not in closed)
    fixed = {(a, b) for a, b in directed if forbidden[dag.index(b), dag.index(a)]}
    fixed |= closed.intersection(knowledge.required)
    asked = tuple(edge for edge in dag.edges if edge in closed and edge not in fixed)
    margins = None if tested else measure(asked, knowledge)
    if margins is None:
        if equivalent:
            fixed |= closed - _told(dag, knowledge, identified)
        others = _of(dag, closed - fixed)
        return Directions(
            determined=others if tested else (),
            fixed=_of(dag, fixed),
            open=free,
            unmeasured=() if tested else others,
            tested=tested,
        )
    margins = dict.fromkeys(free, 0.0) | dict.fromkeys(fixed, inf) | dict(margins)
    unclear = {edge for edge in asked if edge not in margins}
    fixed |= {edge for edge in asked if margins.get(edge) == inf}
    clear = tuple(edge for edge in asked if DECIDED <= margins.get(edge, 0.0) < inf)
    if forbidden.sum() > len(forbidden) or knowledge.required:
        # What the data decide they decide without knowledge, too.
        without = measure(clear, Knowledge())
        if without is None:
            fixed |= set(clear)
        else:
            unclear |= set(clear).difference(without)
            fixed |= {edge for edge in clear if without.get(edge, inf) < DECIDED}
    return Directions(
        determined=tuple(edge for edge in clear if edge not in fixed | unclear),
        fixed=_of(dag, fixed),
        open=_of(dag, unclear | {edge for edge in margins if margins[edge] < DECIDED}),
        margins={edge: margins[edge] for edge in dag.edges if edge not in unclear},
    )


def _told(dag: DAG, knowledge: Knowledge, identified: Edges) -> set[Edge]:
    """Return the edges that have a direction in the equivalence class without knowledge.

    Two parents that are not adjacent determine directions. If knowledge keeps them apart, the data
    did not: with an edge between them, only the other directions are determined.
    """
    forbidden = knowledge.bind(dag.nodes).forbidden
    apart = forbidden & forbidden.T
    place = {name: i for i, name in enumerate(dag.topological_order())}
    pairs = [(dag.nodes[i], dag.nodes[j]) for i, j in np.argwhere(np.triu(apart, 1)).tolist()]
    joined = {(a, b) if place[a] < place[b] else (b, a) for a, b in pairs}
    whole = DAG(dag.nodes, [*dag.edges, *sorted(joined.difference(dag.edges))])
    told = whole.cpdag(Knowledge(required=identified)) if identified else whole.cpdag()
    return set(told.directed)


def _of(dag: DAG, edges: set[Edge]) -> Edges:
    return tuple(edge for edge in dag.edges if edge in edges)


def _all(total: int) -> str:
    if total == 1:
        return "the direction of the edge"
    return "both directions" if total == 2 else f"all {total} directions"


# --- Shares and probabilities of edges -----------------------------------------------------------
#
# How sure edges are, for reports: shares of bootstrap replicates, or posterior probabilities.

DETERMINED = 0.95
"""Share or probability of a direction, if there is an edge, from which on it is determined."""
_SHOWN = 0.05
"""Pairs of variables that are adjacent more rarely are not listed in a report."""


def probabilities() -> tuple[CertaintyMeasure, ...]:
    """Return what the probabilities of edges are called in a report."""
    from isthmus.report import Measure

    return (
        Measure("probability", "Probability: of an edge between the two, in either direction."),
        Measure(
            "probability this way",
            "Probability this way: that the edge points from the first to the second, if there is "
            f"one. The direction is called determined from {DETERMINED:.2f} on.",
        ),
    )


def shares() -> tuple[CertaintyMeasure, ...]:
    """Return what the shares of bootstrap replicates are called in a report."""
    from isthmus.report import Measure

    return (
        Measure(
            "share",
            "Share: of the replicates with an edge between the two, in either direction. It says "
            "how stable the edge is, not how probable.",
        ),
        Measure(
            "share this way",
            "Share this way: of the replicates with the edge, in which it points from the first to "
            "the second; about 0.5 if the data do not determine it. The direction is called "
            f"determined from {DETERMINED:.2f} on.",
        ),
    )


def certainty_of(
    weights: Ensemble | Posterior, dag: DAG, measures: tuple[CertaintyMeasure, ...]
) -> Certainty:
    """Return the shares or probabilities of the edges of a graph."""
    from isthmus.report import Certainty

    if set(weights.nodes) != set(dag.nodes):
        raise MismatchError(
            "The ensemble has other variables than the graph. Compute it from the same columns."
        )
    place = {name: i for i, name in enumerate(weights.nodes)}
    edges = weights.edge_probabilities()
    values = {}
    for a, b in dag.edges:
        along, against = float(edges[place[a], place[b]]), float(edges[place[b], place[a]])
        either = min(along + against, 1.0)
        values[a, b] = (either, along / (along + against) if either else 0.0)
    return Certainty(measures, values)


def edge_rows(
    nodes: tuple[str, ...],
    edges: NDArray[np.float64],
    threshold: float,
    further: tuple[NDArray[np.float64], ...] = (),
) -> tuple[EdgeRow, ...]:
    """Return a row per pair of variables, in its more frequent direction.

    Parameters
    ----------
    edges
        Share or probability of each edge ``[from, to]``.
    threshold
        Pairs that are adjacent with a larger share or probability are part of the graph.
    further
        Other numbers of the edges, in matrices ``[from, to]``.
    """
    from isthmus.report.page import EdgeRow

    either = np.minimum(edges + edges.T, 1.0)
    rows = []
    for a, b in np.argwhere(np.triu((either >= _SHOWN) | (either > threshold), 1)).tolist():
        a, b = (a, b) if edges[a, b] >= edges[b, a] else (b, a)
        share = float(edges[a, b] / (edges[a, b] + edges[b, a]))
        determined = share >= DETERMINED
        rows.append(
            EdgeRow(
                nodes[a],
                nodes[b],
                directed=determined,
                values=(float(either[a, b]), share, *(float(m[a, b]) for m in further)),
                in_graph=bool(either[a, b] > threshold),
                direction=f"{'determined' if determined else 'not determined'}: {share:.2f}",
            )
        )
    return tuple(rows)
