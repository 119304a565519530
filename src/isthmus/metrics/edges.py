"""Rates of correct, missing and extra edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PAG, PDAG
from isthmus.graphs.names import same_nodes
from isthmus.graphs.pag import ARROW, TAIL
from isthmus.plurals import a_type


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
