"""The run that searches over additive losses share.

All numbers are in units of the noise (`normalise`). The central path gives an order of the nodes.
For a given order the penalised loss is convex, and is minimised to machine precision, node by node:
so the answer does not depend on how the path was followed, and its distance from optimality can be
stated. Then nodes move in the order as long as that lowers the minimum. Parents are finally chosen
along the order by a criterion, or by a threshold on the weights if one is given.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.graphs.adjacency import heaviest_acyclic, transitive_closure
from isthmus.objectives import AdditiveLoss
from isthmus.results.details import ModelDetails
from isthmus.results.dynamic import DynamicNetwork
from isthmus.searches.base import Run, SearchResult
from isthmus.searches.continuous.additive_path import AdditivePath, edge_norms
from isthmus.searches.continuous.central_path import allowed_edges
from isthmus.searches.continuous.families import Families
from isthmus.searches.continuous.family_criterion import FamilyEBIC
from isthmus.searches.continuous.normalisation import normalise
from isthmus.searches.continuous.order_descent import OrderDescent
from isthmus.types import Bools, Floats

NetworkOf: TypeAlias = Callable[[Bools, Floats], DynamicNetwork]

_SHARES = (1.0, 0.5, 0.25)
"""Penalties to try where none is given, in units of what noise alone reaches."""
_RELAXED = 0.35
"""The penalty along the central path, in the same unit."""
_MANY = 40
"""With more targets, nodes do not move under the smallest of several penalties, where a move costs
most and changes least: at 60 nodes the same graph in half the time."""
RESIDUAL = 1e-6
"""Largest violation of optimality, in units of the noise, of a search that has converged."""


@final
@dataclass(frozen=True, eq=False)
class AdditiveOptions:
    """What a search over additive losses is asked for.

    Attributes
    ----------
    penalties, thresholds
        One for each node as a cause, in the unit of the data; None to let the criterion choose.
    sweeps
        How often, at most, every node is moved to its best place in the order.
    criterion
        Chooses among penalties and parents.
    """

    penalties: Floats | None
    thresholds: Floats | None
    sweeps: int
    criterion: FamilyEBIC


@final
@dataclass(frozen=True, eq=False)
class _Candidate:
    """The solution for one penalty, and the graph that was chosen along its order."""

    share: float
    penalties: Floats
    descent: OrderDescent
    graph: Bools
    criterion: float | None
    moved: bool


@final
class AdditiveRun(Run[SearchResult]):
    """A run over an additive loss.

    Parameters
    ----------
    objective
        The loss.
    knowledge
        What must and must not be in the graph.
    options
        Penalties, thresholds, and who chooses them.
    network_of
        Makes the dynamic network of a graph and its coefficients, for time series.
    """

    def __init__(
        self,
        objective: AdditiveLoss,
        knowledge: BoundKnowledge,
        options: AdditiveOptions,
        network_of: NetworkOf | None = None,
    ) -> None:
        automatic = options.penalties is None or options.thresholds is None
        if automatic and objective.sample_size is None:
            raise MismatchError(
                "The objective does not know its sample size, so no criterion can choose: give a "
                "penalty and a threshold."
            )
        self._options, self._network_of = options, network_of
        self._normalised = normalise(objective)
        self._loss = self._normalised.loss
        targets = objective.targets
        self._required = knowledge.required[:, :targets]
        self._allowed = allowed_edges(knowledge, targets) | self._required
        if options.penalties is None:
            penalties = self._normalised.universal_penalties()
        else:
            given = self._normalised.penalties(options.penalties)
            penalties = np.broadcast_to(given, self._required.shape)
        self._penalties = np.where(self._required, 0.0, penalties)
        self._shares = _SHARES if options.penalties is None else (1.0,)
        relaxed = _RELAXED if options.penalties is None else 1.0
        self._path_penalties = relaxed * self._penalties
        self._path = AdditivePath(
            self._loss,
            self._allowed,
            self._required,
            self._path_penalties,
            self._penalties if options.penalties is None else None,
        )
        self._families: Families | None = None
        if automatic:
            self._families = Families(self._loss, options.criterion, self._allowed, self._required)
        self._descent: OrderDescent | None = None
        self._candidates: list[_Candidate] = []
        self._finished = False
        self._text = "central path"
        self._work = self._stages()

    def step(self) -> bool:
        """Advance to the next point at which the run can be stopped."""
        return next(self._work, None) is None

    def _stages(self) -> Iterator[bool]:
        while not self._path.step():
            self._text = self._path.describe()
            yield True
        targets = self._loss.targets
        order, coefficients = self._path.order(), self._path.coefficients()
        for share in self._shares:
            penalties = share * self._penalties
            descent = OrderDescent(
                self._loss, self._allowed, self._required, penalties, order, coefficients
            )
            last = len(self._shares) > 1 and share == self._shares[-1]
            sweeps = 0 if last and targets > _MANY else self._options.sweeps
            moved = yield from self._descend(descent, sweeps)
            self._candidates.append(self._candidate(share, penalties, descent, moved=moved))
            if not self._promising():
                break
            order, coefficients = list(descent.order), descent.coefficients
            yield True
        best = self._best()
        for target in range(targets):
            best.descent.finish(target)
            yield True
        self._finished = True

    def _descend(self, descent: OrderDescent, sweeps: int) -> Generator[bool, None, bool]:
        """Solve all nodes along an order, then move them; return whether the last sweep did."""
        targets = self._loss.targets
        for target in range(targets):
            descent.settle(target)
            self._text = f"exact solution: {target + 1} of {targets} nodes"
            yield True
        self._descent = descent
        moved = True
        for sweep in range(sweeps):
            if not moved:
                break
            moved = False
            for left, node in enumerate(reversed(descent.order.copy())):
                moved |= descent.move(node)
                self._text = f"sweep {sweep + 1}: {left + 1} of {targets} nodes moved"
                yield True
        return moved

    def _promising(self) -> bool:
        """Return whether a smaller penalty may give a better graph.

        Not if the last one did not, nor if no single further edge, whatever the order, would.
        """
        last = self._candidates[-1]
        if last.criterion is None or self._families is None:
            return True
        if len(self._candidates) > 1:
            before = self._candidates[-2].criterion
            if before is not None and last.criterion >= before:
                return False
        return self._families.lacks_an_edge(last.graph)

    def _weights(self, coefficients: Floats) -> Floats:
        return edge_norms(self._loss, coefficients)

    def _candidate(
        self, share: float, penalties: Floats, descent: OrderDescent, *, moved: bool
    ) -> _Candidate:
        weights = self._weights(descent.coefficients)
        if self._options.thresholds is not None or self._families is None:
            graph = self._cut(weights)
        else:
            graph = self._chosen(descent)
        return _Candidate(share, penalties, descent, graph, self._judged(graph), moved)

    def _cut(self, weights: Floats) -> Bools:
        """Keep the edges above the threshold; never a cycle."""
        thresholds = self._options.thresholds
        if thresholds is None:
            heavy = np.where(weights > self._penalties, weights, 0.0)
        else:
            in_data = self._normalised.weights(weights)
            heavy = np.where(in_data > thresholds[:, None], weights, 0.0)
        targets = self._loss.targets
        graph = self._required | (heavy > 0.0)
        graph[:targets] = heaviest_acyclic(heavy[:targets], self._required[:targets], 0.0)
        return graph

    def _chosen(self, descent: OrderDescent) -> Bools:
        """Choose the parents of each target along the order by the criterion."""
        assert self._families is not None
        graph = self._required.copy()
        for target in range(self._loss.targets):
            parents = self._families.choose(target, descent.fits[target].coefficients)
            graph[list(parents), target] = True
        return graph

    def _judged(self, graph: Bools) -> float | None:
        if self._families is None:
            return None
        families = {
            j: frozenset(np.flatnonzero(graph[:, j]).tolist()) for j in range(graph.shape[1])
        }
        return self._families.total(families)

    def _best(self) -> _Candidate:
        """Return the candidate that the criterion prefers; of equal ones the first."""
        return min(self._candidates, key=lambda c: np.inf if c.criterion is None else c.criterion)

    def best(self) -> SearchResult:
        """Return the graph chosen so far; before there is one, the one that the weights show."""
        if not self._candidates:
            exact = self._descent
            coefficients = self._path.coefficients() if exact is None else exact.coefficients
            graph = self._cut(self._weights(coefficients))
            return self._penalised(coefficients, graph, self._path_penalties)
        best = self._best()
        if self._options.thresholds is not None or self._families is None:
            return self._penalised(best.descent.coefficients, best.graph, best.penalties)
        coefficients, residual = self._families.refit(best.graph)
        if self._finished:
            residual = max(residual, best.descent.residual)
        else:
            lasso = np.where(self._rows_of(best.graph), best.descent.coefficients, 0.0)
            residual = self._violation(lasso, best.graph, best.penalties)
        value, _ = self._loss.value_and_gradient(coefficients)
        found = best.descent.coefficients
        cut = int(((self._weights(found) > 1e-9) & ~best.graph).sum())
        return self._result(coefficients, best.graph, value, residual, cut)

    def _rows_of(self, graph: Bools) -> Bools:
        """Return which coefficients belong to edges of a graph, or to none."""
        kept: Bools = graph[self._loss.owner] | (self._loss.owner[:, None] < 0)
        return kept

    def _penalised(self, coefficients: Floats, graph: Bools, penalties: Floats) -> SearchResult:
        """Return a graph with the weights of the penalised problem."""
        weights = self._weights(coefficients)
        kept = np.where(self._rows_of(graph), coefficients, 0.0)
        value, _ = self._loss.value_and_gradient(kept)
        value += float((penalties * np.where(graph, weights, 0.0)).sum())
        if self._finished:
            residual = self._best().descent.residual
        else:
            residual = self._violation(kept, graph, penalties)
        cut = int(((weights > 1e-9) & ~graph).sum())
        return self._result(kept, graph, value, residual, cut)

    def _result(
        self, coefficients: Floats, graph: Bools, value: float, residual: float, removed: int
    ) -> SearchResult:
        normalised, loss = self._normalised, self._loss
        in_data = coefficients * normalised.factors[:, None]
        details = ModelDetails(
            weights=normalised.weights(self._weights(coefficients)),
            coefficients=in_data,
            removed_edges=removed,
            kkt_residual=residual,
            evaluations=self._path.evaluations,
            network=None if self._network_of is None else self._network_of(graph, in_data),
            criterion=self._best().criterion if self._candidates else None,
            path=tuple(
                {"share": c.share, "edges": int(c.graph.sum()), "criterion": c.criterion}
                for c in self._candidates
            ),
        )
        parents = [tuple(np.flatnonzero(column).tolist()) for column in graph.T]
        parents += [()] * (len(loss.nodes) - loss.targets)
        return SearchResult(
            tuple(parents),
            value * normalised.unit**2,
            details,
            converged=residual <= RESIDUAL,
        )

    def _violation(self, coefficients: Floats, graph: Bools, penalties: Floats) -> float:
        """Return how far coefficients along a graph are from optimal, in units of the noise."""
        loss, targets = self._loss, self._loss.targets
        _, gradient = loss.value_and_gradient(coefficients)
        free = loss.owner < 0
        wrong = float(np.abs(gradient[free]).max(initial=0.0))
        weights = self._weights(coefficients)
        pull = np.divide(penalties, weights, out=np.zeros_like(weights), where=weights > 0.0)
        steep = self._weights(gradient + pull[loss.owner] * coefficients)
        closed = np.zeros_like(graph)
        closed[:targets] = transitive_closure(graph[:targets]).T | np.eye(targets, dtype=np.bool_)
        entering = np.where(self._allowed & ~closed, np.maximum(steep - penalties, 0.0), 0.0)
        return max(wrong, float(np.where(weights > 0.0, steep, entering).max(initial=0.0)))

    def describe(self) -> tuple[str, float, float | None]:
        """Say where the run stands."""
        value = np.nan if self._descent is None else self._descent.value * self._normalised.unit**2
        return self._text, value, None

    def conclusion(self) -> str:
        """Explain why the search stopped."""
        best = self._best()
        reason = (
            f"stopped after {self._options.sweeps} sweeps over the order"
            if best.moved
            else "no node can be moved in the order so that the objective falls"
        )
        residual = best.descent.residual
        return f"{reason}; for this order the weights are optimal up to {residual:.1e}."
