"""Structural Hamming distance: how many pairs of nodes are joined differently."""

from __future__ import annotations

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.bits import transpose
from isthmus.graphs.names import same_nodes


def shd(a: DAG | CPDAG | PDAG, b: DAG | CPDAG | PDAG) -> int:
    """Count the pairs of nodes whose edge differs.

    An edge too many, too few, turned round, or directed in one graph and undirected in the other:
    each counts one.

    Parameters
    ----------
    a, b
        Two DAGs, or two partially directed graphs, over the same nodes in whatever order.

    Raises
    ------
    GraphError
        If the nodes differ, or one is a DAG and the other is not. `shd_cpdag` compares classes.
    """
    for graph in (a, b):
        if not isinstance(graph, DAG | CPDAG | PDAG):
            raise GraphError(
                f"shd compares two DAGs, CPDAGs or PDAGs, got a {type(graph).__name__}. "
                "Give for instance solution.dag, or DAG(nodes, edges)."
            )
    if isinstance(a, DAG) != isinstance(b, DAG):
        raise GraphError(
            f"shd compares like with like, got {type(a).__name__} and {type(b).__name__}. "
            "To compare equivalence classes use shd_cpdag, which turns a DAG into its CPDAG."
        )
    same_nodes(a.nodes, b.nodes, "shd")
    b = b.reorder(a.nodes)
    size = len(a.nodes)
    into = [p ^ q for p, q in zip(a.parent_masks, b.parent_masks, strict=True)]
    differs = [p | q for p, q in zip(into, transpose(into, size), strict=True)]
    if not isinstance(a, DAG) and not isinstance(b, DAG):
        loose = zip(a.neighbour_masks, b.neighbour_masks, strict=True)
        differs = [d | (p ^ q) for d, (p, q) in zip(differs, loose, strict=True)]
    return sum(mask.bit_count() for mask in differs) // 2


def shd_cpdag(a: DAG | CPDAG, b: DAG | CPDAG) -> int:
    """Count the pairs of nodes whose edge differs between two equivalence classes.

    Parameters
    ----------
    a, b
        CPDAGs, or DAGs that stand for their class.
    """
    for graph in (a, b):
        if not isinstance(graph, DAG | CPDAG):
            raise GraphError(f"shd_cpdag takes DAGs and CPDAGs, got {type(graph).__name__}.")
    left = a.cpdag() if isinstance(a, DAG) else a
    right = b.cpdag() if isinstance(b, DAG) else b
    return shd(left, right)
