"""NOTEARS for additive models: generalised linear models and sums of curves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias, final

import numpy as np

from isthmus.arrays import Bools, Floats, Integers, Work
from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.graphs.names import order_of
from isthmus.kernels import _native
from isthmus.kernels.continuous import acyclic_part
from isthmus.objectives import ADDITIVE_MODEL, AdditiveLoss, QuadraticAdditiveLoss
from isthmus.objectives.additive import PartOfQuadraticLoss, pays
from isthmus.options import require_instance, require_integer, require_number
from isthmus.results.details import ModelDetails
from isthmus.results.dynamic import DynamicNetwork
from isthmus.searches.base import Accepts, Search, SearchResult
from isthmus.searches.central_path import CentralPath, PathProblem, allowed_edges
from isthmus.searches.families import Families, normalise
from isthmus.searches.notears import LARGE
from isthmus.searches.notears_penalties import FamilyEBIC
from isthmus.searches.order_descent import SolvedOrder
from isthmus.watch import Watch

# --- The central path of an additive loss, and how far its end is from an optimum ---------------


@final
@dataclass(frozen=True, eq=False)
class AdditiveCandidate:
    """The solution for one penalty, and the graph that was chosen along its order."""

    share: float
    penalties: Floats
    descent: SolvedOrder
    graph: Bools
    criterion: float | None
    moved: bool


@final
@dataclass(frozen=True, eq=False)
class Answer:
    """A graph with coefficients and all that `best` tells about them, in units of the noise."""

    coefficients: Floats
    graph: Bools
    value: float
    residual: float
    removed: int


_SCREENED = 40
"""With more targets, edges that look like noise on their own are left out of the path."""
_NOISE = 0.6
"""Gradients below this share of what noise alone reaches at most look like noise."""
_LEAST = 1e-3
"""Edges of a smaller weight say nothing about the order."""


@final
class AdditivePath:
    """The central path over the coefficients of an additive loss.

    Parameters
    ----------
    loss
        The loss, in units of the noise.
    allowed, required
        Edges that may and that must be there, shape (nodes, targets).
    penalties
        Penalty of each edge.
    """

    def __init__(
        self, loss: AdditiveLoss, allowed: Bools, required: Bools, penalties: Floats
    ) -> None:
        self._loss, self._allowed, self._required = loss, allowed, required
        self._penalties = penalties
        self._open = np.empty(0, dtype=np.int64)
        self._path: CentralPath | None = None

    def _begin(self) -> Work[CentralPath]:
        loss = self._loss
        self._open = self._open_places(self._allowed)
        yield
        rows, columns = np.divmod(self._open, loss.targets)
        yield
        owner = loss.owner[rows]
        edge = np.where(owner < 0, -1, owner * loss.targets + columns)
        del rows, columns, owner
        yield
        function = self._value_and_gradient
        if isinstance(loss, QuadraticAdditiveLoss) and pays(loss, self._open):
            function = PartOfQuadraticLoss(loss, self._open).evaluation
        start = np.zeros(len(self._open))
        nodes, targets = len(loss.nodes), loss.targets
        yield
        return CentralPath(
            PathProblem(
                function, start, edge, nodes, targets, self._allowed, self._penalties, grouped=True
            )
        )

    def _open_places(self, allowed: Bools) -> Integers:
        """Return the flat places of the coefficients that are optimised."""
        owned = self._loss.owner >= 0
        open_ = np.ones((len(self._loss.owner), self._loss.targets), dtype=np.bool_)
        open_[owned] = allowed[self._loss.owner[owned]]
        return np.flatnonzero(open_)

    def _value_and_gradient(self, parameters: Floats) -> Work[tuple[float, Floats]]:
        large = len(parameters) >= LARGE
        coefficients = self._matrix(parameters)
        if large:
            yield
        value, gradient = yield from self._loss.evaluation(coefficients)
        open_gradient: Floats = gradient.ravel()[self._open]
        if large:
            yield
        return value, open_gradient

    def _matrix(self, parameters: Floats) -> Floats:
        coefficients = np.zeros(len(self._loss.owner) * self._loss.targets)
        coefficients[self._open] = parameters
        return coefficients.reshape(-1, self._loss.targets)

    def iterate(self) -> Work[bool]:
        """Do one iteration; return whether the end of the path is reached."""
        if self._path is None:
            self._path = yield from self._begin()
            yield
        return (yield from self._path.iterate())

    def describe(self) -> str:
        """Return a phrase for the progress line."""
        return "start" if self._path is None else self._path.describe()

    @property
    def iterations(self) -> int:
        """Number of iterations."""
        return 0 if self._path is None else self._path.iterations

    @property
    def evaluations(self) -> int:
        """Number of evaluations of the loss."""
        return 0 if self._path is None else self._path.evaluations

    def coefficients(self) -> Floats:
        """Return the coefficients reached, shape (rows, targets)."""
        if self._path is None:
            return np.zeros((len(self._loss.owner), self._loss.targets))
        return self._matrix(self._path.parameters)

    def order(self) -> list[int]:
        """Return the order of the heaviest edges that close no cycle."""
        targets = self._loss.targets
        weights = edge_norms(self._loss, self.coefficients())[:targets]
        order = order_of(acyclic_part(weights, self._required[:targets], _LEAST))
        assert order is not None
        return order


def edge_norms(loss: AdditiveLoss, values: Floats) -> Floats:
    """Return the norm of the values of each edge, shape (nodes, targets)."""
    squares = np.zeros((len(loss.nodes), loss.targets))
    for row, node in enumerate(loss.owner.tolist()):
        if node >= 0:
            squares[node] += values[row] * values[row]
    norms: Floats = np.sqrt(squares)
    return norms


def screened(loss: AdditiveLoss, allowed: Bools, required: Bools, noise: Floats) -> Work[Bools]:
    """Leave out edges that look like noise on their own, where there are many targets.

    Parameters
    ----------
    loss
        The loss, in units of the noise.
    allowed, required
        Edges that may and that must be there, shape (nodes, targets).
    noise
        Gradients that noise alone reaches at most, for each edge.
    """
    if loss.targets <= _SCREENED:
        return allowed
    kept = np.empty_like(allowed)
    nothing, none = np.empty(0, dtype=np.int64), np.empty(0)
    owned = np.flatnonzero(loss.owner >= 0)
    owner = loss.owner[owned]
    for j in range(loss.targets):
        value, gradient = loss.column(j, nothing, none)
        spread = 1.0 if loss.likelihood else np.sqrt(2.0 * max(value, 0.0))
        sizes = np.sqrt(np.bincount(owner, gradient[owned] ** 2, len(loss.nodes)))
        kept[:, j] = sizes > _NOISE * noise[:, j] * spread
        yield
    open_: Bools = allowed & (required | kept)
    return open_


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
    closed[:targets] = _native.reachable(square).T | np.eye(targets, dtype=np.bool_)
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


# --- The run that searches over additive losses share -------------------------------------------
#
# All numbers are in units of the noise (`normalise`). The central path gives an order of the
# nodes. For a given order the penalised loss is convex, and is minimised to machine precision,
# node by node: so the answer does not depend on how the path was followed, and its distance from
# optimality can be stated. Then nodes move in the order as long as that lowers the minimum.
# Parents are finally chosen along the order by a criterion, or by a threshold on the weights if
# one is given.

NetworkOf: TypeAlias = Callable[[Bools, Floats], DynamicNetwork]

_SHARES = (1.0, 0.5, 0.25)
"""Penalties to try where none is given, in units of what noise alone reaches."""
_RELAXED = 0.35
"""The penalty along the central path, in the same unit."""
_MANY = 40
"""With more targets, nodes do not move under the smallest of several penalties, where a move costs
most and changes least: at 60 nodes the same graph in half the time."""
_SLICE = 0.02
"""Seconds of work per step, after which the driver may stop the run."""
_RECORDED = 4
"""On the path, the graph of the weights is recorded when the iterations have grown by one part in
this many, so that recording takes a few per cent of the time at most."""
_SOON = 0.2
"""Seconds before the next intermediate result is recorded."""
_ZERO = 1e-9
"""Weights up to this are rounding errors."""
RESIDUAL = 1e-6
"""Largest violation of optimality, in units of the noise, of a search that has converged."""


@final
@dataclass(frozen=True, eq=False)
class AdditiveOptions:
    """Options of a search over additive losses.

    Attributes
    ----------
    penalties, thresholds
        One for each node as a cause, in the unit of the data; None to let the criterion choose.
    sweeps
        Maximum number of passes that move each node to its best place in the order.
    criterion
        Chooses among penalties and parents.
    """

    penalties: Floats | None
    thresholds: Floats | None
    sweeps: int
    criterion: FamilyEBIC


@final
class AdditiveRun:
    """A run over an additive loss.

    Parameters
    ----------
    objective
        The loss.
    knowledge
        Required and forbidden edges.
    options
        Penalties, thresholds and the criterion that chooses them.
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
        import scipy.linalg.lapack  # noqa: F401 - within a step it would delay Ctrl-C

        self._objective, self._options, self._network_of = objective, options, network_of
        targets = objective.targets
        self._required = np.ascontiguousarray(knowledge.required[:, :targets])
        self._allowed = allowed_edges(knowledge, targets) | self._required
        self._families: Families | None = None
        self._path: AdditivePath | None = None
        self._descent: SolvedOrder | None = None
        self._candidates: list[AdditiveCandidate] = []
        self._answer: Answer | None = None
        self._recorded = time.monotonic()
        self._text = "units of the noise"

    def search(self, watch: Watch) -> SearchResult:
        """Return the best graph until the end, or until it is time to stop."""
        with watch.until_stopped():
            watch.complete(self._stages(), self._say)
        return replace(self._best_so_far(), conclusion="" if watch.stopped else self._conclusion())

    def _stages(self) -> Work[None]:
        path = yield from self._begin()
        yield from self._follow(path)
        targets = self._loss.targets
        order, coefficients = path.order(), path.coefficients()
        for share in self._shares:
            penalties = share * self._penalties
            descent = SolvedOrder(
                self._loss, self._allowed, self._required, penalties, order, coefficients
            )
            last = len(self._shares) > 1 and share == self._shares[-1]
            sweeps = 0 if last and targets > _MANY else self._options.sweeps
            moved = yield from self._descend(descent, penalties, sweeps)
            candidate = yield from self._candidate(share, penalties, descent, moved=moved)
            self._candidates.append(candidate)
            yield from self._record_best(finished=False)
            if not (yield from self._promising()):
                break
            order, coefficients = list(descent.order), descent.coefficients
        best = self._best()
        for target in range(targets):
            yield from best.descent.finish(target)
            self._text = f"machine precision: {target + 1} of {targets} nodes"
        yield from self._record_best(finished=True)

    def _begin(self) -> Work[AdditivePath]:
        """Convert to units of the noise, and start the central path there."""
        options, required = self._options, self._required
        self._normalised = yield from normalise(self._objective)
        self._loss = self._normalised.loss
        if options.penalties is None:
            penalties = self._normalised.universal_penalties()
        else:
            given = self._normalised.penalties(options.penalties)
            penalties = np.broadcast_to(given, required.shape)
        self._penalties = np.where(required, 0.0, penalties)
        yield
        self._shares = _SHARES if options.penalties is None else (1.0,)
        if options.penalties is None or options.thresholds is None:
            self._families = Families(self._loss, options.criterion, self._allowed, required)
        allowed = self._allowed
        if options.penalties is None:
            allowed = yield from screened(self._loss, allowed, required, self._penalties)
            yield
        relaxed = (_RELAXED if options.penalties is None else 1.0) * self._penalties
        self._path = AdditivePath(self._loss, allowed, required, relaxed)
        self._path_penalties = relaxed
        yield
        yield from self._record(self._path.coefficients(), relaxed)
        return self._path

    def _follow(self, path: AdditivePath) -> Work[None]:
        """Follow the central path to its end."""
        recorded = 0
        while not (yield from path.iterate()):
            self._text = path.describe()
            if self._due() and path.iterations > recorded + recorded // _RECORDED:
                recorded = path.iterations
                yield from self._record(path.coefficients(), self._path_penalties)

    def _descend(self, descent: SolvedOrder, penalties: Floats, sweeps: int) -> Work[bool]:
        """Solve all nodes along an order, then move them; return whether the last sweep did."""
        targets = self._loss.targets
        for target in range(targets):
            yield from descent.settle(target)
            self._text = f"exact solution: {target + 1} of {targets} nodes"
        self._descent = descent
        yield from self._record_descent(descent, penalties)
        moved = True
        for sweep in range(sweeps):
            if not moved:
                break
            moved = False
            for left, node in enumerate(reversed(descent.order.copy())):
                if (yield from descent.move(node)):
                    moved = True
                    if self._due():
                        yield from self._record_descent(descent, penalties)
                self._text = f"sweep {sweep + 1}: {left + 1} of {targets} nodes moved"
        return moved

    def _promising(self) -> Work[bool]:
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
        return (yield from self._families.lacks_an_edge(last.graph))

    def _weights(self, coefficients: Floats) -> Floats:
        return edge_norms(self._loss, coefficients)

    def _candidate(
        self, share: float, penalties: Floats, descent: SolvedOrder, *, moved: bool
    ) -> Work[AdditiveCandidate]:
        weights = self._weights(descent.coefficients)
        if self._options.thresholds is not None or self._families is None:
            graph = self._cut(weights)
        else:
            graph = yield from self._chosen(descent)
        criterion = yield from self._judged(graph)
        return AdditiveCandidate(share, penalties, descent, graph, criterion, moved)

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
        graph[:targets] = acyclic_part(heavy[:targets], self._required[:targets], 0.0)
        return graph

    def _chosen(self, descent: SolvedOrder) -> Work[Bools]:
        """Choose the parents of each target along the order by the criterion."""
        assert self._families is not None
        graph = self._required.copy()
        for target in range(self._loss.targets):
            parents = yield from self._families.choose(target, descent.fits[target].coefficients)
            graph[list(parents), target] = True
        return graph

    def _judged(self, graph: Bools) -> Work[float | None]:
        if self._families is None:
            return None
        families = {
            j: frozenset(np.flatnonzero(graph[:, j]).tolist()) for j in range(graph.shape[1])
        }
        return (yield from self._families.total(families))

    def _best(self) -> AdditiveCandidate:
        """Return the candidate that the criterion prefers; of equal ones the first."""
        return min(self._candidates, key=lambda c: np.inf if c.criterion is None else c.criterion)

    def _record(
        self, coefficients: Floats, penalties: Floats, graph: Bools | None = None
    ) -> Work[None]:
        """Record a graph, by default that of the weights, with the penalised loss along it."""
        weights = self._weights(coefficients)
        yield
        if graph is None:
            graph = self._cut(weights)
        yield
        kept = np.where(self._rows_of(graph), coefficients, 0.0)
        yield
        value, residual = yield from loss_and_violation(
            self._loss, self._allowed, kept, graph, penalties
        )
        value += float((penalties * np.where(graph, weights, 0.0)).sum())
        removed = int(((weights > _ZERO) & ~graph).sum())
        self._answer = Answer(kept, graph, value, residual, removed)
        self._recorded = time.monotonic()
        yield

    def _due(self) -> bool:
        """Return whether the last answer is old enough to be replaced by a better one."""
        return time.monotonic() - self._recorded >= _SOON

    def _record_descent(self, descent: SolvedOrder, penalties: Floats) -> Work[None]:
        """Record the graph of an exact solution, unless a criterion chose one before."""
        if not self._candidates:
            yield from self._record(descent.coefficients, penalties)

    def _record_best(self, *, finished: bool) -> Work[None]:
        """Record the graph that the criterion prefers, refitted if it also chose the parents."""
        best = self._best()
        solution = best.descent.coefficients
        if self._options.thresholds is not None or self._families is None:
            yield from self._record(solution, best.penalties, best.graph)
            if finished and self._answer is not None:
                self._answer = replace(self._answer, residual=best.descent.residual)
            return
        coefficients, value, residual = yield from self._families.refit(best.graph)
        if finished:
            residual = max(residual, best.descent.residual)
        else:
            lasso = np.where(self._rows_of(best.graph), solution, 0.0)
            _, residual = yield from loss_and_violation(
                self._loss, self._allowed, lasso, best.graph, best.penalties
            )
        removed = int(((self._weights(solution) > _ZERO) & ~best.graph).sum())
        self._answer = Answer(coefficients, best.graph, value, residual, removed)

    def _rows_of(self, graph: Bools) -> Bools:
        """Return which coefficients belong to edges of a graph, or to none."""
        kept: Bools = graph[self._loss.owner] | (self._loss.owner[:, None] < 0)
        return kept

    def _best_so_far(self) -> SearchResult:
        """Return the graph recorded last; at first it has the required edges only."""
        answer = self._answer
        if answer is None:
            return self._nothing()
        normalised = self._normalised
        in_data = answer.coefficients * normalised.factors[:, None]
        return self._result(
            answer.graph,
            answer.value * normalised.unit**2,
            in_data,
            normalised.weights(self._weights(answer.coefficients)),
            answer.residual,
            answer.removed,
        )

    def _nothing(self) -> SearchResult:
        """Return what is known before the first evaluation."""
        loss = self._objective
        nothing, none = np.empty(0, dtype=np.int64), np.empty(0)
        value = sum(loss.column(j, nothing, none)[0] for j in range(loss.targets))
        coefficients = np.zeros((len(loss.owner), loss.targets))
        weights = np.zeros(self._required.shape)
        return self._result(self._required, value, coefficients, weights, np.inf, 0)

    def _result(
        self,
        graph: Bools,
        value: float,
        coefficients: Floats,
        weights: Floats,
        residual: float,
        removed: int,
    ) -> SearchResult:
        details = ModelDetails(
            weights=weights,
            coefficients=coefficients,
            removed_edges=removed,
            kkt_residual=residual,
            evaluations=0 if self._path is None else self._path.evaluations,
            network=None if self._network_of is None else self._network_of(graph, coefficients),
            criterion=self._best().criterion if self._candidates else None,
            path=tuple(
                {"share": c.share, "edges": int(c.graph.sum()), "criterion": c.criterion}
                for c in self._candidates
            ),
        )
        parents = [tuple(np.flatnonzero(column).tolist()) for column in graph.T]
        parents += [()] * (len(self._objective.nodes) - self._objective.targets)
        return SearchResult(tuple(parents), value, details, converged=residual <= RESIDUAL)

    def _say(self) -> tuple[str, float, float | None]:
        value = np.nan if self._descent is None else self._descent.value * self._normalised.unit**2
        return self._text, value, None

    def _conclusion(self) -> str:
        best = self._best()
        reason = (
            f"stopped after {self._options.sweeps} sweeps over the order"
            if best.moved
            else "no node can be moved in the order so that the objective falls"
        )
        residual = best.descent.residual
        return f"{reason}; for this order the weights are optimal up to {residual:.1e}."


# --- NOTEARS for additive models: generalised linear models and sums of curves ------------------


@final
@dataclass(frozen=True)
class NotearsAdditive(Search[AdditiveLoss]):
    """Learn an additive model by continuous optimisation of its coefficients.

    The score determines the model: `Logistic` and `Poisson` for Booleans and counts (from rows),
    `AdditiveLeastSquares` for curves (from moments of a basis). The weight of an edge is the norm
    of its coefficients. Lower values of the objective are better.

    Parameters
    ----------
    penalty
        Penalty on the sum of all edge weights, in the unit of the data. By default the criterion
        chooses among three multiples of the largest gradient that noise alone produces.
    threshold
        Remove edges with a weight up to this value, in the unit of the data. By default the
        criterion chooses the parents.
    sweeps
        Maximum number of passes over all nodes that move each node to its best place in the order
        found by the optimisation.
    criterion
        Criterion that chooses the penalty and the parents, if they are not given.
    """

    penalty: float | None = None
    threshold: float | None = None
    sweeps: int = 10
    criterion: FamilyEBIC = FamilyEBIC()
    accepts: ClassVar[Accepts] = (ADDITIVE_MODEL,)

    def __post_init__(self) -> None:
        require_number(self, "penalty", least=0, optional=True)
        require_number(self, "threshold", least=0, optional=True)
        require_integer(self, "sweeps", least=0)
        require_instance(self, "criterion", FamilyEBIC, "FamilyEBIC()")

    def search(
        self,
        objective: AdditiveLoss,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        each = np.ones(len(objective.nodes))
        options = AdditiveOptions(
            None if self.penalty is None else self.penalty * each,
            None if self.threshold is None else self.threshold * each,
            self.sweeps,
            self.criterion,
        )
        return AdditiveRun(objective, knowledge, options).search(watch)
