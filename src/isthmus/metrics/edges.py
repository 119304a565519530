"""Rates of correct, missing and extra edges."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.errors import GraphError, MissingExtraError, a_type
from isthmus.graphs import CPDAG, DAG, PAG, PDAG
from isthmus.graphs.names import bits, same_nodes
from isthmus.graphs.pag import ARROW, TAIL

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class EdgeMetrics:
    """Comparison of an estimated graph with the true DAG, edge by edge.

    The first four metrics are defined as in the code of the NOTEARS paper, so that results can be
    compared with published tables: a reversed edge counts as a false discovery, and an undirected
    edge of the estimate counts as correct if the two nodes are adjacent in the true graph. The
    others are the usual definitions for directed edges and for skeletons.

    Attributes
    ----------
    tpr
        True positive rate: correctly directed or undirected edges over true edges.
    fdr
        False discovery rate: reversed and extra edges over edges of the estimate.
    fpr
        False positive rate: reversed and extra edges over pairs not adjacent in the true graph.
    shd
        Structural Hamming distance: extra, missing and reversed edges.
    edges
        Number of edges of the estimate.
    precision, recall, f1
        For directed edges; undirected edges of the estimate are ignored.
    skeleton_precision, skeleton_recall, skeleton_f1
        The same for edges without regard to direction.

    Notes
    -----
    Precision is one if the estimate has no edges, recall is one if the true graph has none.
    """

    tpr: float
    fdr: float
    fpr: float
    shd: int
    edges: int
    precision: float
    recall: float
    f1: float
    skeleton_precision: float
    skeleton_recall: float
    skeleton_f1: float


def edge_metrics(truth: DAG, estimate: DAG | CPDAG | PDAG) -> EdgeMetrics:
    """Compare an estimate with the true DAG, edge by edge.

    Parameters
    ----------
    truth
        The true graph.
    estimate
        The learned graph, over the same nodes in any order.
    """
    if not isinstance(truth, DAG):
        raise GraphError(
            f"edge_metrics compares with a true DAG, got {a_type(truth)}. "
            "Use shd_cpdag to compare equivalence classes."
        )
    if not isinstance(estimate, DAG | CPDAG | PDAG):
        raise GraphError(f"The estimate must be a DAG, CPDAG or PDAG, got {estimate!r}.")
    same_nodes(truth.nodes, estimate.nodes, "edge_metrics")
    true = set(truth.edges)
    true_pairs = {frozenset(edge) for edge in true}
    directed = set(estimate.edges if isinstance(estimate, DAG) else estimate.directed)
    undirected = {frozenset(e) for e in (() if isinstance(estimate, DAG) else estimate.undirected)}
    pairs = {frozenset(edge) for edge in directed} | undirected

    correct = len(directed & true)
    reversed_ = sum((b, a) in true for a, b in directed)
    extra = len(pairs - true_pairs)
    size = len(truth.nodes)
    absent = size * (size - 1) / 2 - len(true)
    strict = _rates(correct, len(directed), len(true))
    skeleton = _rates(len(pairs & true_pairs), len(pairs), len(true_pairs))
    return EdgeMetrics(
        tpr=(correct + len(undirected & true_pairs)) / max(len(true), 1),
        fdr=(reversed_ + extra) / max(len(pairs), 1),
        fpr=(reversed_ + extra) / max(absent, 1),
        shd=extra + len(true_pairs - pairs) + reversed_,
        edges=len(pairs),
        precision=strict[0],
        recall=strict[1],
        f1=strict[2],
        skeleton_precision=skeleton[0],
        skeleton_recall=skeleton[1],
        skeleton_f1=skeleton[2],
    )


@dataclass(frozen=True)
class PAGMetrics:
    """Comparison of an estimated PAG with the true one.

    Attributes
    ----------
    adjacency_precision, adjacency_recall, adjacency_f1
        For edges without regard to their marks.
    arrowhead_precision, arrowhead_recall, arrowhead_f1
        For arrowheads: ends of edges that say "is not a cause". Those at pairs that are not
        adjacent in the other graph count as errors.
    tail_precision, tail_recall, tail_f1
        The same for tails, which say "is a cause".

    Notes
    -----
    Precision is one if the estimate has none of these, recall is one if the true graph has none.
    """

    adjacency_precision: float
    adjacency_recall: float
    adjacency_f1: float
    arrowhead_precision: float
    arrowhead_recall: float
    arrowhead_f1: float
    tail_precision: float
    tail_recall: float
    tail_f1: float


def pag_metrics(truth: PAG, estimate: PAG) -> PAGMetrics:
    """Compare an estimated PAG with the true one, mark by mark.

    Parameters
    ----------
    truth
        The true graph, such as ``PAG.from_dag(dag, hidden=["u"])``.
    estimate
        The learned graph, over the same nodes in any order.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus.metrics import pag_metrics
    >>> truth = ist.PAG(["a", "b", "c"], [("a", "o->", "b"), ("b", "<->", "c")])
    >>> estimate = ist.PAG(["a", "b", "c"], [("a", "o-o", "b"), ("b", "<->", "c")])
    >>> metrics = pag_metrics(truth, estimate)
    >>> metrics.adjacency_recall, round(metrics.arrowhead_recall, 2)
    (1.0, 0.67)
    """
    for graph in (truth, estimate):
        if not isinstance(graph, PAG):
            raise GraphError(f"pag_metrics compares two PAGs, got {a_type(graph)}.")
    same_nodes(truth.nodes, estimate.nodes, "pag_metrics")
    true, found = truth.matrix, estimate.reorder(truth.nodes).matrix
    rates = [
        _rates(int((one & other).sum()), int(one.sum()), int(other.sum()))
        for one, other in (
            (np.triu(found) > 0, np.triu(true) > 0),
            (found == ARROW, true == ARROW),
            (found == TAIL, true == TAIL),
        )
    ]
    return PAGMetrics(*(rate for three in rates for rate in three))


def _rates(correct: int, estimated: int, true: int) -> tuple[float, float, float]:
    precision = correct / estimated if estimated else 1.0
    recall = correct / true if true else 1.0
    total = estimated + true
    return precision, recall, 2 * correct / total if total else 1.0


# --- Structural Hamming distance: the number of pairs of nodes whose edge differs ---------------


def shd(a: DAG | CPDAG | PDAG, b: DAG | CPDAG | PDAG) -> int:
    """Return the structural Hamming distance between two graphs.

    It is the number of pairs of nodes whose edge differs: extra, missing, reversed, or directed in
    one graph and undirected in the other.

    Parameters
    ----------
    a, b
        Two DAGs, or two partially directed graphs, over the same nodes in any order.

    Raises
    ------
    GraphError
        If the nodes differ, or only one of the two is a DAG. Use `shd_cpdag` to compare a DAG with
        a CPDAG.

    Examples
    --------
    >>> import isthmus as ist
    >>> a = ist.DAG(["x", "y", "z"], [("x", "y"), ("y", "z")])
    >>> b = ist.DAG(["x", "y", "z"], [("y", "x")])
    >>> ist.shd(a, b)
    2
    """
    for graph in (a, b):
        if not isinstance(graph, DAG | CPDAG | PDAG):
            raise GraphError(
                f"shd compares two DAGs, CPDAGs or PDAGs, got {a_type(graph)}. "
                "Give solution.dag or DAG(nodes, edges), for example."
            )
    if isinstance(a, DAG) != isinstance(b, DAG):
        raise GraphError(
            f"shd compares two DAGs or two partially directed graphs, got {a_type(a)} and "
            f"{a_type(b)}. Use shd_cpdag to compare equivalence classes."
        )
    same_nodes(a.nodes, b.nodes, "shd")
    b = b.reorder(a.nodes)
    size = len(a.nodes)
    pairs: set[int] = set()
    into = zip(a.parent_masks, b.parent_masks, strict=True)
    for j, (p, q) in enumerate(into):
        pairs.update(min(i, j) * size + max(i, j) for i in bits(p ^ q))
    if not isinstance(a, DAG) and not isinstance(b, DAG):
        undirected = zip(a.neighbour_masks, b.neighbour_masks, strict=True)
        for j, (p, q) in enumerate(undirected):
            pairs.update(min(i, j) * size + max(i, j) for i in bits(p ^ q))
    return len(pairs)


def shd_cpdag(a: DAG | CPDAG, b: DAG | CPDAG) -> int:
    """Return the structural Hamming distance between two equivalence classes.

    Parameters
    ----------
    a, b
        CPDAGs, or DAGs that represent their equivalence class.
    """
    for graph in (a, b):
        if not isinstance(graph, DAG | CPDAG):
            raise GraphError(f"shd_cpdag takes DAGs and CPDAGs, got {type(graph).__name__}.")
    left = a.cpdag() if isinstance(a, DAG) else a
    right = b.cpdag() if isinstance(b, DAG) else b
    return shd(left, right)


# --- Adjustment and intervention distances, computed by the gadjid library ----------------------


@dataclass(frozen=True)
class InterventionDistance:
    """The number of causal effects that an estimated graph identifies wrongly.

    Attributes
    ----------
    mistakes
        Number of ordered pairs (cause, effect) that are wrong.
    fraction
        The same over all ordered pairs: 0 is best, 1 is worst.
    """

    mistakes: int
    fraction: float


def parent_aid(truth: DAG | CPDAG, estimate: DAG | CPDAG) -> InterventionDistance:
    """Return the parent adjustment distance: adjust for the parents in the estimate.

    Parameters
    ----------
    truth, estimate
        Two DAGs or two CPDAGs, or one of each, over the same nodes.
    """
    return _distance("parent_aid", truth, estimate)


def ancestor_aid(truth: DAG | CPDAG, estimate: DAG | CPDAG) -> InterventionDistance:
    """Return the ancestor adjustment distance: adjust for the ancestors in the estimate."""
    return _distance("ancestor_aid", truth, estimate)


def oset_aid(truth: DAG | CPDAG, estimate: DAG | CPDAG) -> InterventionDistance:
    """Return the optimal adjustment distance: adjust for the optimal set in the estimate."""
    return _distance("oset_aid", truth, estimate)


def sid(truth: DAG, estimate: DAG) -> InterventionDistance:
    """Return the structural intervention distance between two DAGs."""
    for graph in (truth, estimate):
        if not isinstance(graph, DAG):
            raise GraphError(
                f"sid takes two DAGs, got {a_type(graph)}; use parent_aid, which also takes CPDAGs."
            )
    return _distance("sid", truth, estimate)


def _distance(name: str, truth: DAG | CPDAG, estimate: DAG | CPDAG) -> InterventionDistance:
    for graph in (truth, estimate):
        if not isinstance(graph, DAG | CPDAG):
            raise GraphError(f"{name} takes DAGs and CPDAGs, got {type(graph).__name__}.")
    same_nodes(truth.nodes, estimate.nodes, name)
    try:
        library: Any = import_module("gadjid")
    except ImportError:
        raise MissingExtraError("gadjid", "metrics", f"{name}()") from None
    if len(truth.nodes) < 2:
        return InterventionDistance(0, 0.0)
    fraction, mistakes = getattr(library, name)(
        _encoded(truth),
        _encoded(estimate.reorder(truth.nodes)),
        edge_direction="from row to column",
    )
    return InterventionDistance(int(mistakes), float(fraction))


def _encoded(graph: DAG | CPDAG) -> NDArray[np.int8]:
    """Return the matrix that gadjid reads: 1 for a directed edge, 2 for an undirected one."""
    matrix = graph.adjacency().astype(np.int8)
    if isinstance(graph, CPDAG):
        matrix[(matrix & matrix.T).astype(np.bool_)] = 2
    return matrix
