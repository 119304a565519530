"""Structural Hamming distance: the number of pairs of nodes whose edge differs."""

from __future__ import annotations

from isthmus.errors import GraphError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.bits import bits
from isthmus.graphs.names import same_nodes
from isthmus.plurals import a_type


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
