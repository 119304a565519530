"""How wrong a graph is about the effects of interventions, through the gadjid library."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from isthmus.errors import GraphError, MissingExtraError
from isthmus.graphs import CPDAG, DAG
from isthmus.graphs.names import same_nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class InterventionDistance:
    """How many ordered pairs (cause, effect) an estimate would get wrong.

    Attributes
    ----------
    mistakes
        Their number.
    fraction
        The same over all ordered pairs: 0 is best, 1 is worst.
    """

    mistakes: int
    fraction: float


def parent_aid(truth: DAG | CPDAG, estimate: DAG | CPDAG) -> InterventionDistance:
    """Adjust for the parents in the estimate; count the wrong effects.

    Parameters
    ----------
    truth, estimate
        Two DAGs or two CPDAGs, or one of each, over the same nodes.
    """
    return _distance("parent_aid", truth, estimate)


def ancestor_aid(truth: DAG | CPDAG, estimate: DAG | CPDAG) -> InterventionDistance:
    """Adjust for the ancestors in the estimate; count the wrong effects."""
    return _distance("ancestor_aid", truth, estimate)


def oset_aid(truth: DAG | CPDAG, estimate: DAG | CPDAG) -> InterventionDistance:
    """Adjust for the optimal set by the estimate; count the wrong effects."""
    return _distance("oset_aid", truth, estimate)


def sid(truth: DAG, estimate: DAG) -> InterventionDistance:
    """Return the structural intervention distance between two DAGs."""
    for graph in (truth, estimate):
        if not isinstance(graph, DAG):
            raise GraphError(
                f"sid is defined for two DAGs here, got a {type(graph).__name__}; "
                "use parent_aid, which takes CPDAGs too."
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
        _coded(truth), _coded(estimate.reorder(truth.nodes)), edge_direction="from row to column"
    )
    return InterventionDistance(int(mistakes), float(fraction))


def _coded(graph: DAG | CPDAG) -> NDArray[np.int8]:
    """Write 1 for an arrow and 2 for an undirected edge, as gadjid reads them."""
    matrix = graph.adjacency().astype(np.int8)
    if isinstance(graph, CPDAG):
        matrix[(matrix & matrix.T).astype(np.bool_)] = 2
    return matrix
