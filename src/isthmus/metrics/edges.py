"""How many edges of an estimate are right, counted as the papers count them."""

from __future__ import annotations

from dataclasses import dataclass

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.names import same_nodes


@dataclass(frozen=True)
class EdgeMetrics:
    """How an estimate compares with the true DAG.

    The first four are those of the NOTEARS paper's code, so that tables can be compared: an edge
    turned round counts as a false discovery, and an undirected edge of the estimate counts as
    found when the true graph joins the two nodes. The others take directed edges and skeletons
    strictly.

    Attributes
    ----------
    tpr
        Edges found with the right direction (or undirected) over true edges.
    fdr
        Turned and invented edges over edges of the estimate.
    fpr
        Turned and invented edges over pairs that the true graph does not join.
    shd
        Invented plus missing plus turned edges.
    edges
        Edges of the estimate.
    precision, recall, f1
        For directed edges; an undirected edge of the estimate is not a claim about a direction.
    skeleton_precision, skeleton_recall, skeleton_f1
        The same for edges whatever their direction.

    Notes
    -----
    With nothing claimed precision is one, with nothing to find recall is one.
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
        What was learned, over the same nodes in whatever order.
    """
    if not isinstance(truth, DAG):
        raise GraphError(
            f"edge_metrics counts against a true DAG, got a {type(truth).__name__}. "
            "To compare equivalence classes use shd_cpdag."
        )
    if not isinstance(estimate, DAG | CPDAG | PDAG):
        raise GraphError(f"The estimate must be a DAG, CPDAG or PDAG, got {estimate!r}.")
    same_nodes(truth.nodes, estimate.nodes, "edge_metrics")
    true = set(truth.edges)
    joined = {frozenset(edge) for edge in true}
    directed = set(estimate.edges if isinstance(estimate, DAG) else estimate.directed)
    loose = {frozenset(e) for e in (() if isinstance(estimate, DAG) else estimate.undirected)}
    claimed = {frozenset(edge) for edge in directed} | loose

    right = len(directed & true)
    found = right + len(loose & joined)
    turned = sum((b, a) in true for a, b in directed)
    invented = len(claimed - joined)
    size = len(truth.nodes)
    absent = size * (size - 1) / 2 - len(true)
    strict = _rates(right, len(directed), len(true))
    skeleton = _rates(len(claimed & joined), len(claimed), len(joined))
    return EdgeMetrics(
        tpr=found / max(len(true), 1),
        fdr=(turned + invented) / max(len(claimed), 1),
        fpr=(turned + invented) / max(absent, 1),
        shd=invented + len(joined - claimed) + turned,
        edges=len(claimed),
        precision=strict[0],
        recall=strict[1],
        f1=strict[2],
        skeleton_precision=skeleton[0],
        skeleton_recall=skeleton[1],
        skeleton_f1=skeleton[2],
    )


def _rates(hits: int, claimed: int, wanted: int) -> tuple[float, float, float]:
    precision = hits / claimed if claimed else 1.0
    recall = hits / wanted if wanted else 1.0
    total = claimed + wanted
    return precision, recall, 2 * hits / total if total else 1.0
