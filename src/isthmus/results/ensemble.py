"""Weighted graphs, the result of a bootstrap or a posterior distribution."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, DataError, a_type, counted
from isthmus.graphs import CPDAG, DAG
from isthmus.graphs.names import check_nodes
from isthmus.results.ensemble_file import read_ensemble, write_ensemble
from isthmus.results.features import (
    Feature,
    Graphs,
    NodeMatrix,
    check_numbers,
    descendants,
    markov_blankets,
)
from isthmus.results.reading import Disclosure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AnyFeature: TypeAlias = Feature | Callable[[DAG], float]
_CHUNK = 4_000_000
"""Entries of the adjacency matrices that are unpacked at a time."""
_STABLE = 0.95
"""Share of the graphs from which on a summary calls an edge present in nearly all of them."""
_ROUNDING = 1e-9
"""Sums of weights that differ by less are equal."""


@final
@dataclass(frozen=True, eq=False)
class Ensemble:
    """Distinct graphs over the same nodes, each with a weight.

    The graphs are replicates of a bootstrap, or draws from a posterior. Methods named
    ``..._probabilities`` add up weights. For a bootstrap these are shares of the replicates: they
    say how stable an edge is, not how probable.

    There are no standard errors, because an ensemble does not know how many draws or replicates its
    weights stand for. With ``n`` independent ones, the standard error of a probability or share
    ``p`` is the square root of ``p * (1 - p) / n``.

    Attributes
    ----------
    nodes
        Names of the nodes.
    parents
        Graphs as bits, of shape (graphs, nodes, words). Bit ``p`` of row ``v``, counted through
        its words of 64 bits, says whether node ``p`` is a parent of node ``v``.
    weights
        Weight of each graph. The weights add up to one.
    log_scores
        Logarithm of score times prior of each graph, up to a constant; None if not known.
    notes
        How the graphs were made, and warnings.
    disclosure
        The data that were released.
    rows
        Number of rows of the data; None if not known.

    Examples
    --------
    >>> from isthmus import DAG
    >>> from isthmus.results import Ensemble, path
    >>> chain = DAG(["a", "b", "c"], [("a", "b"), ("b", "c")])
    >>> ensemble = Ensemble.from_dags([chain, DAG(["a", "b", "c"])], [3, 1])
    >>> ensemble.probability(path("a", "c"))
    0.75
    >>> ensemble.probability(lambda dag: len(dag.edges) == 0)
    0.25
    """

    nodes: tuple[str, ...]
    parents: NDArray[np.uint64]
    weights: NDArray[np.float64]
    log_scores: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()
    disclosure: Disclosure = Disclosure.none()
    rows: int | None = None

    def __post_init__(self) -> None:
        names, _ = check_nodes(self.nodes)
        object.__setattr__(self, "nodes", names)
        d, words = len(names), -(-len(names) // 64)
        if self.parents.ndim != 3 or self.parents.shape[1:] != (d, words):
            raise ArgumentError(
                f"Graphs of {d} nodes need an array of shape (graphs, {d}, {words}); "
                f"{self.parents.shape} was given."
            )
        if self.parents.dtype != np.uint64:
            raise ArgumentError(
                f"Graphs are unsigned 64-bit words; an array of {self.parents.dtype} was given."
            )
        check_numbers({"log_scores": self.log_scores}, (len(self.parents),))
        if self.weights.shape != (len(self.parents),):
            raise ArgumentError(
                f"{len(self.parents)} graphs need as many weights; an array of shape "
                f"{self.weights.shape} was given."
            )
        total = self.weights.sum()
        if not (np.isfinite(total) and total > 0 and (self.weights >= 0).all()):
            raise DataError(
                "The weights of graphs must be finite, not negative, and some must be positive."
            )
        object.__setattr__(self, "weights", self.weights / total)

    @classmethod
    def from_dags(
        cls,
        dags: Sequence[DAG],
        weights: Sequence[float] | None = None,
        *,
        notes: tuple[str, ...] = (),
        disclosure: Disclosure = Disclosure.none(),
        rows: int | None = None,
    ) -> Ensemble:
        """Collect graphs over the same nodes; equal graphs are joined.

        Parameters
        ----------
        dags
            At least one graph.
        weights
            Weight of each graph; by default all count the same.
        notes, disclosure, rows
            As for the class.
        """
        if not dags:
            raise ArgumentError("An ensemble needs one graph at least; none was given.")
        nodes = dags[0].nodes
        given = [1.0] * len(dags) if weights is None else [float(w) for w in weights]
        if len(given) != len(dags):
            raise ArgumentError(f"{len(dags)} graphs and {len(given)} weights were given.")
        joined: dict[DAG, float] = {}
        for dag, weight in zip(dags, given, strict=True):
            dag = dag.reorder(nodes)
            joined[dag] = joined.get(dag, 0.0) + weight
        words = -(-len(nodes) // 64)
        masks = [
            [[mask >> 64 * w & (1 << 64) - 1 for w in range(words)] for mask in dag.parent_masks]
            for dag in joined
        ]
        return cls(
            nodes,
            np.array(masks, np.uint64).reshape(len(joined), len(nodes), words),
            np.array(list(joined.values())),
            notes=notes,
            disclosure=disclosure,
            rows=rows,
        )

    def __len__(self) -> int:
        return len(self.parents)

    def dag(self, position: int) -> DAG:
        """Return one of the graphs."""
        masks = [
            sum(int(word) << 64 * w for w, word in enumerate(row)) for row in self.parents[position]
        ]
        return DAG.from_masks(self.nodes, masks)

    @cached_property
    def dags(self) -> tuple[DAG, ...]:
        """The distinct graphs, in the order of `weights`."""
        return tuple(self.dag(i) for i in range(len(self)))

    def edge_probabilities(self) -> NodeMatrix:
        """Return the total weight of the graphs with each edge ``[from, to]``.

        For a bootstrap this is the share of the replicates that have the edge; for draws from a
        posterior, its probability. Rows and columns are in the order of `nodes`.
        """
        return self._named(self._average(lambda graphs: graphs))

    def adjacency_probabilities(self) -> NodeMatrix:
        """Return the total weight of the graphs with an edge, in either direction.

        For a bootstrap this is the share of the replicates. The matrix is symmetric.
        """
        edges = np.asarray(self.edge_probabilities())
        return self._named(np.minimum(edges + edges.T, 1.0))

    def direction_probabilities(self) -> NodeMatrix:
        """Return how often an edge has the direction ``[from, to]``, if there is one.

        For a bootstrap this is a share of the replicates with the edge.
        It is 0 in both directions for nodes that are adjacent in none of the graphs.
        """
        edges = np.asarray(self.edge_probabilities())
        either = edges + edges.T
        shares = np.divide(edges, either, out=np.zeros_like(edges), where=either > 0)
        return self._named(shares)

    def path_probabilities(self) -> NodeMatrix:
        """Return the total weight of the graphs with a directed path ``[from, to]``.

        In these graphs one node is an ancestor of the other.
        """
        return self._named(self._average(descendants))

    def markov_blanket_probabilities(self) -> NodeMatrix:
        """Return the total weight of the graphs with one node in the Markov blanket of the other.

        The matrix is symmetric.
        """
        return self._named(self._average(markov_blankets))

    def probability(self, feature: AnyFeature) -> float:
        """Return the total weight of the graphs with a feature, or the mean of a function of them.

        Parameters
        ----------
        feature
            `edge`, `path` or `in_markov_blanket` of `isthmus.results`, or a function that takes a
            `DAG` and returns a Boolean or a number.
        """
        return float(self.weights @ self.evaluate(feature))

    def evaluate(self, feature: AnyFeature) -> NDArray[np.float64]:
        """Return the value of a feature for each graph."""
        if isinstance(feature, Feature):
            parts = [feature.holds(graphs, self.nodes) for _, graphs in self._adjacency()]
            return np.concatenate(parts).astype(np.float64)
        if not callable(feature):
            raise ArgumentError(
                "A feature is edge(a, b), path(a, b), in_markov_blanket(a, of=b) or a function of "
                f"a DAG; {a_type(feature)} was given."
            )
        return np.array([_number(feature(dag)) for dag in self.dags], np.float64)

    def most_probable(self) -> DAG:
        """Return the graph with the highest score, or with the largest weight if none is known.

        This is the maximum a-posteriori graph among those that were drawn. Equivalent graphs have
        the same score; `equivalence_classes` adds them up.
        """
        ranking = self.weights if self.log_scores is None else self.log_scores
        return self.dag(int(np.argmax(ranking)))

    def median_graph(self, threshold: float = 0.5) -> DAG:
        """Return the graph of all edges whose weight is above a threshold.

        Parameters
        ----------
        threshold
            Between 0 and 1. Edges are added from the most frequent to the least; one that would
            close a cycle is left out, which is rare at the default.
        """
        return dag_above(self.nodes, self.edge_probabilities(), threshold)

    def threshold(self) -> float:
        """Estimate above which share of the replicates an edge is significant.

        If the data were unlimited, all shares would be 0 or 1. The estimate of Scutari and
        Nagarajan (2013) is the quantile of the observed shares at which their distribution
        function comes closest, in the L1 norm, to such a step function. This is always the largest
        observed share that does not exceed one half, or 0 if there is none.
        """
        d = len(self.nodes)
        seen = self.adjacency_probabilities()[np.triu_indices(d, 1)]
        # The integral of |F(x) - t| over [0, 1] is least at the median of F, which is F(1/2).
        return float(seen[seen <= 0.5 + _ROUNDING].max(initial=0.0))

    def averaged_graph(self, threshold: float | None = None) -> DAG:
        """Return the graph of all pairs that are adjacent in more than a threshold of the graphs.

        Each edge gets its more frequent direction, the clearest directions first, unless that
        would close a cycle.

        Parameters
        ----------
        threshold
            Between 0 and 1; by default estimated from the shares, see `threshold`.
        """
        limit = self.threshold() if threshold is None else threshold
        return averaged_dag(self.nodes, self.edge_probabilities(), limit)

    @cached_property
    def cpdags(self) -> tuple[CPDAG, ...]:
        """The Markov equivalence class of each graph, in the order of `weights`."""
        return tuple(dag.cpdag() for dag in self.dags)

    def equivalence_classes(self) -> tuple[tuple[CPDAG, float], ...]:
        """Return the Markov equivalence classes with their weights, largest first."""
        totals: dict[CPDAG, float] = {}
        for cpdag, weight in zip(self.cpdags, self.weights.tolist(), strict=True):
            totals[cpdag] = totals.get(cpdag, 0.0) + weight
        return tuple(sorted(totals.items(), key=lambda item: -item[1]))

    def compelled_probabilities(self) -> NodeMatrix:
        """Return the total weight of the graphs whose CPDAG has the direction ``[from, to]``.

        The directions of the other edges of a graph differ between equivalent graphs, which no
        data can distinguish.
        """
        d = len(self.nodes)
        index = {name: i for i, name in enumerate(self.nodes)}
        total = np.zeros((d, d))
        for cpdag, weight in self.equivalence_classes():
            for a, b in cpdag.directed:
                total[index[a], index[b]] += weight
        return self._named(total)

    @property
    def effective_size(self) -> float:
        """The number of equally weighted graphs that would be as diverse: ``1 / sum(w ** 2)``."""
        return float(1.0 / np.square(self.weights).sum())

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the share of the graphs with each edge as a coloured matrix."""
        from isthmus.plots import plot_edge_probabilities

        shares = self.edge_probabilities()
        return plot_edge_probabilities(self.nodes, shares, ax=ax, label="share of graphs")

    def report(
        self,
        path: str | PathLike[str],
        *,
        title: str = "Stability of a network",
        threshold: float | None = None,
        reference: DAG | None = None,
        table: str | None = None,
        command: str | None = None,
    ) -> None:
        """Write an HTML report with the interactive network and the shares of its edges.

        Parameters
        ----------
        path
            File to write. The page is self-contained: it opens offline and loads nothing.
        title
            Title of the page.
        threshold
            Pairs that are adjacent in a larger share of the graphs are drawn at first; by default
            estimated from the shares, see `threshold`.
        reference
            A graph to compare the drawn edges with.
        table
            Name of the table, such as its file, to be shown beside the title.
        command
            The command line that computed the ensemble, to be shown in the page.
        """
        from isthmus.report.page import RunAgain
        from isthmus.report.rendering import render
        from isthmus.results.directions import shares
        from isthmus.results.ensemble_file import graphs_page

        limit = self.threshold() if threshold is None else threshold
        scored = self.notes and self.notes[0].startswith("Score ")
        page = graphs_page(
            self,
            self.averaged_graph(limit),
            measures=shares(),
            title=title,
            threshold=limit,
            reference=reference,
            table=table,
            again=RunAgain(command=command, verb="bootstrap"),
            notes=self.notes[1:] if scored else self.notes,
        )
        Path(path).write_text(render(page), encoding="utf-8")

    def save(self, path: str | PathLike[str]) -> None:
        """Write the ensemble to a file (see the reference on the file format)."""
        write_ensemble(self.__dict__, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Ensemble:
        """Read an ensemble that `save` has written.

        Raises
        ------
        FormatError
            If the file is damaged or holds something else.
        """
        return read_ensemble(path, cls)

    def _average(self, of: Callable[[Graphs], Graphs]) -> NDArray[np.float64]:
        d = len(self.nodes)
        total = np.zeros(d * d)
        for part, graphs in self._adjacency():
            total += self.weights[part] @ of(graphs).reshape(len(graphs), d * d)
        return np.minimum(total, 1.0).reshape(d, d)

    def _named(self, values: NDArray[np.float64]) -> NodeMatrix:
        return NodeMatrix.of(self.nodes, values, "share")

    def _adjacency(self) -> Iterator[tuple[slice, Graphs]]:
        """Unpack the graphs, some at a time."""
        d = len(self.nodes)
        step = max(1, _CHUNK // max(1, d * d))
        for first in range(0, len(self), step):
            part = slice(first, first + step)
            yield part, unpack(self.parents[part])

    def to_frame(self, like: object = None) -> Any:
        """Return one row per edge that occurs, with its share; see :func:`isthmus.to_frame`."""
        return self.edge_probabilities().to_frame(like)

    def _repr_html_(self) -> str | None:
        from isthmus.plots import notebook_drawing

        graph, edges = self.median_graph(), self.edge_probabilities()
        strengths = {(a, b): float(edges[graph.index(a), graph.index(b)]) for a, b in graph.edges}
        caption = f"{self}\nDrawn: edges in more than half of the graphs."
        return notebook_drawing(graph, caption, strengths=strengths or None)

    def __str__(self) -> str:
        either = self.adjacency_probabilities()[np.triu_indices(len(self.nodes), 1)]
        stable = int((either >= _STABLE).sum())
        unstable = int(((either >= 1.0 - _STABLE) & (either < _STABLE)).sum())
        graphs = f"{counted(len(self), 'distinct graph')} of {counted(len(self.nodes), 'variable')}"
        pairs = f"{counted(stable, 'pair')} of variables adjacent in at least {_STABLE:.0%} of the "
        pairs += f"graphs, {unstable} in {1.0 - _STABLE:.0%} to {_STABLE:.0%}"
        first = f"{graphs}, with {either.sum():.1f} edges on average"
        return "\n".join((first, pairs, *self.notes))

    __repr__ = __str__


def unpack(parents: NDArray[np.uint64]) -> Graphs:
    """Return adjacency matrices ``[graph, from, to]`` of graphs given as bits."""
    graphs, d, words = parents.shape
    octets = (
        np.ascontiguousarray(parents.astype("<u8")).view(np.uint8).reshape(graphs, d, words * 8)
    )
    flags = np.unpackbits(octets, axis=2, count=d, bitorder="little")
    return flags.transpose(0, 2, 1).astype(np.bool_)


def _number(value: object) -> float:
    if isinstance(value, (Real, np.bool_)):
        return float(value)
    raise ArgumentError(
        f"A feature must give a Boolean or a number for each graph; {value!r} was given."
    )


def _checked(threshold: float) -> float:
    if not (isinstance(threshold, Real) and 0.0 <= threshold <= 1.0):
        raise ArgumentError(f"threshold must be between 0 and 1; {threshold!r} was given.")
    return threshold


def averaged_dag(nodes: Sequence[str], edges: NDArray[np.float64], threshold: float) -> DAG:
    """Return the graph of all pairs whose edges have a total weight above a threshold."""
    either = np.minimum(edges + edges.T, 1.0)
    # Both directions of an edge are ranked, so that one of them is always possible.
    clear = np.where(either > _checked(threshold), (2.0 + edges - edges.T) / 4.0, 0.0)
    return dag_above(nodes, clear, 0.0)


def dag_above(nodes: Sequence[str], probabilities: NDArray[np.float64], threshold: float) -> DAG:
    """Return the graph of the edges with a probability above a threshold, without cycles."""
    _checked(threshold)
    d = len(nodes)
    below = [0] * d  # descendants of each node, and the node itself
    for v in range(d):
        below[v] = 1 << v
    parents: list[list[int]] = [[] for _ in range(d)]
    order = np.argsort(-probabilities, axis=None, kind="stable")
    for a, b in zip(*np.unravel_index(order, (d, d)), strict=True):
        if probabilities[a, b] <= threshold:
            break
        if below[b] >> int(a) & 1:
            continue
        parents[b].append(int(a))
        for v in range(d):
            if below[v] >> int(a) & 1:
                below[v] |= below[b]
    return DAG.from_parents(nodes, parents)
