"""What the searches over additive losses share: along the central path, then exact.

The path gives an order of the nodes. For a given order the penalised loss is convex, and is
minimised to machine precision, node by node: so the answer does not hang on how the path was
followed, and its residual from optimality can be stated. Then nodes move in the order as long as
that lowers the minimum.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import BoundKnowledge
from isthmus.objectives import AdditiveLoss
from isthmus.results.details import ModelDetails
from isthmus.results.dynamic import DynamicNetwork
from isthmus.searches.base import Run, SearchResult
from isthmus.searches.continuous.central_path import (
    CentralPath,
    Problem,
    acyclic_part,
    allowed_edges,
    order_of,
)
from isthmus.searches.continuous.order_descent import OrderDescent

Floats: TypeAlias = NDArray[np.float64]
Truths: TypeAlias = NDArray[np.bool_]
NetworkOf: TypeAlias = Callable[[Truths, Floats], DynamicNetwork]


@final
class AdditiveRun(Run[SearchResult]):
    """A run over an additive loss.

    Parameters
    ----------
    objective
        The loss.
    knowledge
        What must and must not be in the graph.
    penalties
        Of each cause, one for each node of the objective.
    thresholds
        Of each cause: weights up to this are cut off.
    sweeps
        How often, at most, every node is moved to its best place in the order.
    network_of
        Makes the dynamic network of a graph and its coefficients, for time series.
    """

    def __init__(
        self,
        objective: AdditiveLoss,
        knowledge: BoundKnowledge,
        penalties: Floats,
        thresholds: Floats,
        sweeps: int,
        network_of: NetworkOf | None = None,
    ) -> None:
        self._loss = objective
        self._thresholds = thresholds[:, None]
        self._network_of = network_of
        nodes, targets = len(objective.nodes), objective.targets
        self._required = knowledge.required[:, :targets]
        self._allowed = allowed_edges(knowledge, targets) | self._required
        self._penalties = np.where(self._required, 0.0, penalties[:, None])
        rows = len(objective.owner)
        edge = objective.owner[:, None] * targets + np.arange(targets)
        edge[objective.owner < 0] = -1
        self._problem = Problem(
            self._flat,
            np.zeros(rows * targets),
            edge.ravel(),
            nodes,
            targets,
            self._allowed,
            self._penalties,
            grouped=True,
        )
        self._path = CentralPath(self._problem)
        self._descent: OrderDescent | None = None
        self._settled = 0
        self._queue: list[int] = []
        self._sweeps_left = sweeps
        self._moved = True
        self._searching = True
        self._finished = 0

    def _flat(self, parameters: Floats) -> tuple[float, Floats]:
        value, gradient = self._loss.value_and_gradient(parameters.reshape(-1, self._loss.targets))
        return value, gradient.ravel()

    def step(self) -> bool:
        """Go along the path; then solve one node exactly, or move one in the order."""
        if self._descent is None:
            if self._path.step():
                self._descent = self._begin_descent()
            return False
        if self._settled < self._loss.targets:
            self._descent.settle(self._settled)
            self._settled += 1
            return False
        if self._searching:
            self._searching = self._move()
            return False
        self._descent.finish(self._finished)
        self._finished += 1
        return self._finished == self._loss.targets

    def _move(self) -> bool:
        """Move one node; return whether to go on."""
        assert self._descent is not None
        if not self._queue:
            if not self._moved or self._sweeps_left == 0:
                return False
            self._sweeps_left -= 1
            self._queue = list(self._descent.order)
            self._moved = False
        self._moved |= self._descent.move(self._queue.pop())
        return True

    def _begin_descent(self) -> OrderDescent:
        d = self._loss.targets
        weights = self._problem.weights(self._path.parameters)[:d]
        order = order_of(acyclic_part(weights, self._required[:d], 1e-3))
        return OrderDescent(
            self._loss,
            self._allowed,
            self._required,
            self._penalties,
            order,
            self._path.parameters.reshape(-1, d),
        )

    def best(self) -> SearchResult:
        """Return the graph of the weights above the threshold; never one with a cycle."""
        d = self._loss.targets
        exact = self._descent if self._settled == d else None
        ended = exact is not None and self._finished == d
        found = self._path.parameters.reshape(-1, d) if exact is None else exact.coefficients
        weights = self._problem.weights(found.ravel())
        heavy = np.where(weights > self._thresholds, weights, 0.0)
        graph = self._required | (heavy > 0.0)
        graph[:d] = acyclic_part(heavy[:d], self._required[:d], 0.0)
        kept = graph[self._loss.owner] | (self._loss.owner[:, None] < 0)
        cut = np.where(kept, found, 0.0)
        value, _ = self._loss.value_and_gradient(cut)
        value += float((self._penalties * np.where(graph, weights, 0.0)).sum())
        details = ModelDetails(
            weights=np.where(graph, weights, 0.0),
            coefficients=cut,
            removed_edges=int(((weights > 1e-9) & ~graph).sum()),
            kkt_residual=(
                exact.residual if exact is not None and ended else self._violation(cut, graph)
            ),
            evaluations=self._path.evaluations,
            network=None if self._network_of is None else self._network_of(graph, cut),
        )
        parents = [tuple(np.flatnonzero(graph[:, j]).tolist()) for j in range(d)]
        parents += [()] * (len(self._loss.nodes) - d)
        return SearchResult(tuple(parents), value, details)

    def _violation(self, coefficients: Floats, graph: Truths) -> float:
        """How far coefficients along a graph are from optimal, for edges that close no cycle."""
        loss, d = self._loss, self._loss.targets
        _, gradient = loss.value_and_gradient(coefficients)
        free = loss.owner < 0
        wrong = float(np.abs(gradient[free]).max(initial=0.0))
        weights = self._problem.weights(coefficients.ravel())
        pull = np.divide(self._penalties, weights, out=np.zeros_like(weights), where=weights > 0.0)
        slope = gradient + pull[loss.owner] * coefficients
        steep = np.sqrt(_by_node(slope[~free] ** 2, loss.owner[~free], len(loss.nodes)))
        reach = graph.copy()
        for k in range(d):
            reach |= np.outer(reach[:, k], reach[k])
        closed = np.zeros_like(graph)
        closed[:d] = reach[:d].T | np.eye(d, dtype=np.bool_)
        entering = np.where(self._allowed & ~closed, np.maximum(steep - self._penalties, 0.0), 0.0)
        return max(wrong, float(np.where(weights > 0.0, steep, entering).max(initial=0.0)))

    def describe(self) -> tuple[str, float, float | None]:
        """Say where on the path this is."""
        if self._descent is None:
            return self._path.describe(), np.nan, None
        if self._settled < self._loss.targets:
            text = f"exact solution: {self._settled} of {self._loss.targets} nodes"
            return text, np.nan, None
        left = f"{len(self._queue)} nodes left to move in this sweep"
        return left, self._descent.value, None

    def conclusion(self) -> str:
        """Say what the end means."""
        residual = 0.0 if self._descent is None else self._descent.residual
        still = "many sweeps over the order were made" if self._moved else "no node wants to move"
        return f"{still}; for this order of the nodes the weights are optimal up to {residual:.1e}."


def _by_node(values: Floats, owner: NDArray[np.int64], nodes: int) -> Floats:
    """Sum rows by the node they belong to."""
    found = np.zeros((nodes, values.shape[1]))
    np.add.at(found, owner, values)
    return found
