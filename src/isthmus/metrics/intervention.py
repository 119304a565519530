"""Adjustment and intervention distances, computed by the gadjid library."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.errors import GraphError, MissingExtraError
from isthmus.graphs import CPDAG, DAG
from isthmus.graphs.names import same_nodes
from isthmus.plurals import a_type

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
