"""How far the coefficients of an additive model are from optimal, along a graph."""

from __future__ import annotations

import numpy as np

from isthmus.kernels._native import reachable
from isthmus.objectives import AdditiveLoss
from isthmus.types import Bools, Floats, Work


def loss_and_violation(
    loss: AdditiveLoss, allowed: Bools, coefficients: Floats, graph: Bools, penalties: Floats
) -> Work[tuple[float, float]]:
    """Return the loss of coefficients, and by how much they violate the optimality conditions.

    Parameters
    ----------
    loss
        The loss.
    allowed
        Edges that may be there, shape (nodes, targets).
    coefficients
        Zero where the graph has no edge.
    graph
        An acyclic graph; edges that would close a cycle in it need not be optimal.
    penalties
        Weight of the penalty of each edge.
    """
    targets, nodes = loss.targets, len(loss.nodes)
    closed = np.zeros_like(graph)
    square = np.ascontiguousarray(graph[:targets])
    closed[:targets] = reachable(square).T | np.eye(targets, dtype=np.bool_)
    open_ = allowed & ~closed
    # What belongs to no node is counted for one that does not exist.
    owner = np.where(loss.owner < 0, nodes, loss.owner)
    yield
    value, worst = 0.0, 0.0
    for j in range(targets):
        own = coefficients[:, j]
        rows = np.flatnonzero(own)
        part, gradient = loss.column(j, rows, own[rows])
        value += part
        free = np.abs(gradient[loss.owner < 0]).max(initial=0.0)
        sizes = np.sqrt(np.bincount(owner, own * own, nodes + 1))
        there = sizes[:nodes] > 0.0
        pull = np.zeros(nodes + 1)
        np.divide(penalties[:, j], sizes[:nodes], out=pull[:nodes], where=there)
        pulled = gradient + pull[owner] * own
        steep = np.sqrt(np.bincount(owner, pulled * pulled, nodes + 1))[:nodes]
        entering = np.where(open_[:, j], np.maximum(steep - penalties[:, j], 0.0), 0.0)
        worst = max(worst, float(free), float(np.where(there, steep, entering).max(initial=0.0)))
        yield
    return value, worst
