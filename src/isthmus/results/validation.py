"""What data say about a given graph."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any, final

from isthmus.errors import MismatchError, counted, rounded
from isthmus.frames import table_of
from isthmus.graphs import DAG, PAG, Knowledge
from isthmus.report.page import Check

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHOWN = 5
"""Maximum number of objections, and of edges, that are printed."""


@final
@dataclass(frozen=True)
class ImpliedIndependence:
    """Two variables without an edge, which the graph says are independent given some others.

    Attributes
    ----------
    x, y
        The two variables; neither is a descendant of `y`.
    given
        The parents of `y`; of a PAG, a set that separates the two.
    p_value
        The p-value of the independence, the larger one of two: that for noise of constant variance,
        and that of a test which allows for unequal variances, from rows or from sums of functions.
    p_from_sums
        The p-value for noise of constant variance, which is the same wherever the rows are.
    adjusted
        The p-value after Holm's correction for the number of independences.
    """

    x: str
    y: str
    given: tuple[str, ...]
    p_value: float
    p_from_sums: float
    adjusted: float

    def __str__(self) -> str:
        given = f" given {', '.join(self.given)}" if self.given else ""
        return f"{self.x} and {self.y}{given}"


@final
@dataclass(frozen=True)
class EdgeSupport:
    """An edge of the graph, and the test whether the data need it.

    Attributes
    ----------
    cause, effect
        The two ends.
    given
        The other parents of `effect`; of a PAG, a set that separates the two without the edge.
    p_value
        The p-value of independence of the two given these. A large one means that the data do not
        show the edge, and not that there is none.
    """

    cause: str
    effect: str
    given: tuple[str, ...]
    p_value: float


@final
@dataclass(frozen=True)
class Shuffled:
    """The score of the graph among those of the same graph with its names shuffled.

    Attributes
    ----------
    score
        Score of the graph.
    best
        Largest score with shuffled names.
    p_value
        Share of shuffles, with the graph itself as one of them, that score at least as well.
    permutations
        Number of shuffles.
    equal
        Number of shuffles that score the same, because they give an equivalent graph. If there are
        many, as for small graphs, the share cannot be small, whatever the data are.
    """

    score: float
    best: float
    p_value: float
    permutations: int
    equal: int = 0


@final
@dataclass(frozen=True)
class Validation:
    """Whether data agree with a graph, and where they object.

    Attributes
    ----------
    dag
        The graph; of knowledge alone, the best one that agrees with it.
    n
        Number of rows.
    alpha
        Probability of an objection if the graph is true.
    independences
        The independences that the graph implies, one for each pair without an edge; those that the
        data object to most come first. Those that cannot be tested, since the parents determine
        one of the two, are left out.
    edges
        The edges, those with the least support first.
    fisher_c
        Fisher's C, its degrees of freedom and p-value: all independences at once, from tests that
        are independent of each other if the graph is true. None if it was not computed.
    shuffled
        Comparison with shuffled names; None if it was not computed.
    violated
        Edges, or missing edges, that contradict background knowledge.
    remarks
        What a reader should know about the tests.
    knowledge
        The background knowledge, if it was tested without a graph. Then `independences` are those
        of pairs that may have no edge, and `edges` the required ones.
    contradicted
        Directions that the data decide without this knowledge, and that it forbids.
    """

    dag: DAG | PAG
    n: int
    alpha: float
    independences: tuple[ImpliedIndependence, ...]
    edges: tuple[EdgeSupport, ...]
    fisher_c: tuple[float, int, float] | None = None
    shuffled: Shuffled | None = None
    violated: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    knowledge: Knowledge | None = None
    contradicted: tuple[str, ...] = ()

    @property
    def p_value(self) -> float:
        """The p-value of all independences: the smallest one after the correction."""
        return min((i.adjusted for i in self.independences), default=nan)

    @property
    def agrees(self) -> bool:
        """Whether the data object to no independence, and to no direction of knowledge."""
        return not self.objections and not self.contradicted

    @property
    def objections(self) -> tuple[ImpliedIndependence, ...]:
        """Independences that the data reject, the clearest first.

        Each asks for an edge between the two, or for another edge near them. One missing edge can
        cause several objections, so add the first and look again.
        """
        return tuple(i for i in self.independences if i.adjusted <= self.alpha)

    @property
    def unsupported(self) -> tuple[EdgeSupport, ...]:
        """Edges that the data do not show."""
        return tuple(e for e in self.edges if not e.p_value <= self.alpha)

    @property
    def asked(self) -> DAG:
        """The graph that the data ask for: with an edge per objection, without those not shown.

        It is a picture of the answer and no estimate: one missing edge can cause several
        objections. Edges of a PAG have no such graph.
        """
        if isinstance(self.dag, PAG):
            raise MismatchError("A PAG has marks that no test decides. Look at its objections.")
        weak = {(e.cause, e.effect) for e in self.unsupported}
        kept = [edge for edge in self.dag.edges if edge not in weak]
        return DAG(self.dag.nodes, [*kept, *((i.x, i.y) for i in self.objections)])

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the graph: what the data object to as missing edges, what they do not show as added.

        Parameters
        ----------
        ax
            Axes to draw on; by default those of a new figure.
        options
            Passed on to `isthmus.plots.plot_graph`.
        """
        from isthmus.plots import plot_graph

        reference = None if isinstance(self.dag, PAG) else self.asked
        return plot_graph(self.dag, ax=ax, **({"reference": reference} | options))

    def summary(self) -> Check:
        """Return the answer as reports show it: sentences, and a table of the objections."""
        lines = (line for line in str(self).splitlines() if not line.startswith("  "))
        rows = ((str(i), rounded(i.adjusted)) for i in self.objections)
        return Check(tuple(lines), tuple(rows))

    def to_frame(self, like: object = None) -> Any:
        """Return one row per implied independence and per edge; see :func:`isthmus.to_frame`."""
        rows = [
            ("independence", i.x, i.y, ", ".join(i.given), i.p_value, i.adjusted)
            for i in self.independences
        ]
        rows += [
            ("edge", e.cause, e.effect, ", ".join(e.given), e.p_value, nan) for e in self.edges
        ]
        names = ("claim", "x", "y", "given", "p_value", "adjusted")
        columns = zip(*rows, strict=True) if rows else ((),) * len(names)
        return table_of(dict(zip(names, columns, strict=True)), like)

    def __str__(self) -> str:
        return "\n".join([*self._verdict(), *self._about_edges(), *self._global(), *self._notes()])

    __repr__ = __str__

    def _verdict(self) -> list[str]:
        tested = counted(len(self.independences), "independence")
        what = "graph" if self.knowledge is None else "knowledge"
        if not self.independences:
            if self.knowledge is not None:
                return ["The knowledge excludes no pair of variables, so there is none to test."]
            return ["The graph implies no independence that could be tested."]
        rows = f"The data ({self.n:,} rows)"
        rejected = self.objections
        if not rejected:
            smallest = rounded(self.p_value)
            one = len(self.independences) == 1
            none = "the only independence" if one else f"none of the {tested}"
            lines = [
                f"{rows} do not object to the {what}: {none} that it implies is",
                f"{'not ' if one else ''}rejected (smallest p-value after correction {smallest}).",
            ]
            if self.knowledge is None:
                lines.append("A graph with more edges would pass, too.")
            return [" ".join(lines)]
        lines = [
            f"{rows} object to the {what}: they reject {len(rejected)} of {tested}.",
            f"By the {what}, these are independent:",
        ]
        lines = [" ".join(lines)]
        lines += [f"  {i} (p = {rounded(i.adjusted)})" for i in rejected[:_SHOWN]]
        if len(rejected) > _SHOWN:
            lines.append(f"  and {len(rejected) - _SHOWN} more")
        if len(rejected) > 1:
            lines.append("One missing edge can cause several: add the first, and look again.")
        return lines

    def _about_edges(self) -> list[str]:
        kinds = {} if isinstance(self.dag, DAG) else {(a, b): k for a, k, b in self.dag.edges}
        weak = [
            f"{e.cause} {kinds.get((e.cause, e.effect), '→')} {e.effect}" for e in self.unsupported
        ]
        if not self.edges:
            return []
        what = "edge" if self.knowledge is None else "required edge"
        edges = counted(len(self.edges), what)
        if not weak:
            each = f"the {what}" if len(self.edges) == 1 else f"each of the {edges}"
            return [f"The data show {each}."]
        more = f" and {len(weak) - _SHOWN} more" if len(weak) > _SHOWN else ""
        return [f"The data do not show {len(weak)} of {edges}: {', '.join(weak[:_SHOWN])}{more}."]

    def _global(self) -> list[str]:
        lines = []
        if self.fisher_c is not None:
            c, freedom, p = self.fisher_c
            lines.append(f"Fisher's C = {c:.1f} with {freedom} degrees, p = {rounded(p)}.")
        if self.shuffled is not None:
            s = self.shuffled
            if (1 + s.equal) / (1 + s.permutations) > self.alpha:
                lines.append(
                    f"Shuffled names cannot tell whether the graph is a coincidence: "
                    f"{s.equal} of {counted(s.permutations, 'shuffle')} give a graph with the same "
                    "score."
                )
                return lines
            relation = "no better than" if s.p_value > self.alpha else "better than"
            lines.append(
                f"The graph scores {relation} itself with shuffled names (p = "
                f"{rounded(s.p_value)}, {counted(s.permutations, 'shuffle')})."
            )
        return lines

    def _notes(self) -> list[str]:
        against = [f"Background knowledge: {v}" for v in self.violated]
        if self.contradicted:
            against.append(
                f"The data decide against the knowledge: {', '.join(self.contradicted)}."
            )
        return [*against, *self.remarks]
