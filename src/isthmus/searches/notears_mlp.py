"""NOTEARS for models with parameters of any shape, such as one small neural network per node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools, Floats, Integers, Work, completed
from isthmus.graphs import BoundKnowledge
from isthmus.kernels.continuous import acyclic_part
from isthmus.objectives import PARAMETRIC_MODEL, AdditiveLoss
from isthmus.objectives.smooth import NodeModel, ParametricLoss
from isthmus.options import require_instance, require_number
from isthmus.results.details import ModelDetails
from isthmus.searches.base import Accepts, Search, SearchResult
from isthmus.searches.central_path import (
    SMOOTHING,
    CentralPath,
    PathProblem,
    PathStage,
    allowed_edges,
)
from isthmus.searches.notears_penalties import FamilyEBIC
from isthmus.watch import Watch

_PATH = (
    PathStage(1.0, 1.0, 1e-5, 500),
    PathStage(0.1, 0.9, 1e-5, 500),
    PathStage(0.01, 0.8, 1e-5, 500),
    PathStage(0.001, 0.7, 1e-5, 500),
)
_PENALTY = 0.18
"""The default penalty is this times ``√(log(d) / n)``: 0.01 for 20 nodes and 1,000 rows, as in the
experiments of Zheng et al."""
_CANDIDATE = 0.1
"""Edges of a smaller weight are not considered by the criterion."""
_SCREENED = 30
"""With more nodes, those that look independent of all others are left out of the optimisation."""
_SLICE = 0.02
"""Seconds of work per step, after which the driver may stop the run."""
_RESIDUAL = 1e-3
"""Largest violation of optimality, in units of the noise, of a search that has converged."""


@final
@dataclass(frozen=True)
class NotearsMLP(Search[ParametricLoss]):
    """Learn one small neural network per node by continuous optimisation.

    The method follows Zheng et al. 2020 (arXiv 1909.13189), with the central path in place of the
    augmented Lagrangian. A criterion then chooses among the parents at the end of the path, and the
    networks are refitted along the graph without the penalty. The score determines the network
    (`Perceptrons`). The search needs rows, and the extra ``neural``. Lower values of the objective
    are better.

    Parameters
    ----------
    penalty
        Penalty on the sum of the absolute weights between causes and hidden layers, in units of the
        noise. By default computed from the numbers of nodes and rows.
    threshold
        Remove edges with a weight up to this value, in units of the noise. By default the criterion
        chooses the parents.
    criterion
        Criterion that chooses the parents, if no threshold is given.
    """

    penalty: float | None = None
    threshold: float | None = None
    criterion: FamilyEBIC = FamilyEBIC()
    accepts: ClassVar[Accepts] = (PARAMETRIC_MODEL,)

    def __post_init__(self) -> None:
        require_number(self, "penalty", least=0, optional=True)
        require_number(self, "threshold", least=0, optional=True)
        require_instance(self, "criterion", FamilyEBIC, "FamilyEBIC()")

    def search(
        self,
        objective: ParametricLoss,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        return _Perceptrons(self, objective, knowledge, rng).search(watch)


@final
class _Perceptrons:
    def __init__(
        self,
        options: NotearsMLP,
        objective: ParametricLoss,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> None:
        import scipy.linalg.lapack
        import scipy.special  # noqa: F401 - within a step these would delay Ctrl-C

        self._options, self._whole, self._rng = options, objective, rng
        self._wanted = knowledge.required
        self._allowed = allowed_edges(knowledge, len(objective.nodes)) | self._wanted
        self._path: CentralPath | None = None
        self._models: list[NodeModel] = []
        self._answer: SearchResult | None = None
        self._text = "central path"

    def search(self, watch: Watch) -> SearchResult:
        """Return the best graph until the end, or until it is time to stop."""
        with watch.until_stopped():
            watch.complete(self._stages(), self._say)
        return replace(self._best_so_far(), conclusion="" if watch.stopped else self._conclusion())

    def _stages(self) -> Work[None]:
        self._active = yield from self._screened()
        if len(self._active):
            path = self._path = yield from self._begin()
            yield
            recorded = 0
            while not (yield from path.iterate()):
                self._text = path.describe()
                if path.iterations > recorded + recorded // 2:
                    recorded = path.iterations
                    yield from self._record(path)
            yield from self._refit(path)
        yield from self._record_models()

    def _screened(self) -> Work[Integers]:
        """Return the nodes that take part in the optimisation."""
        d = len(self._whole.nodes)
        if d <= _SCREENED or self._options.threshold is not None:
            return np.arange(d)
        dependent = yield from self._whole.looks_dependent()
        joined = dependent | self._wanted | self._wanted.T
        return np.flatnonzero(joined.any(axis=0))

    def _begin(self) -> Work[CentralPath]:
        """Begin the central path over the nodes that take part."""
        whole, size = self._whole, len(self._active)
        d, n = len(whole.nodes), whole.sample_size
        penalty = self._options.penalty
        if penalty is None:
            penalty = _PENALTY * math.sqrt(math.log(max(d, 2)) / n)
        inside = np.ix_(self._active, self._active)
        self._required = self._wanted[inside]
        self._penalties = np.where(self._required, 0.0, penalty)
        self._loss = whole.restricted(self._active.tolist()) if size < d else whole
        yield
        start = self._loss.start(self._rng)
        yield
        problem = PathProblem(
            self._loss.evaluation,
            start,
            self._loss.edge,
            size,
            size,
            self._allowed[inside],
            self._penalties,
            grouped=False,
        )
        return CentralPath(problem, _PATH)

    def _refit(self, path: CentralPath) -> Work[None]:
        """Choose the parents of each node among those that the path ended in."""
        graph = self._cut(path.problem.weights(path.parameters))
        recorded = 0
        for target in range(len(graph)):
            if target >= recorded + recorded // 2:
                recorded = max(target, 1)
                yield from self._record(path)
            model = yield from self._node(target, graph, path.parameters)
            self._models.append(model)
            self._text = f"parents of {target + 1} of {len(graph)} nodes"
            yield

    def _node(self, target: int, graph: Bools, start: Floats) -> Work[NodeModel]:
        """Fit the network of one node, and remove parents while the criterion gains."""
        loss, required = self._loss, set(np.flatnonzero(self._required[:, target]).tolist())
        model = yield from loss.refit(target, np.flatnonzero(graph[:, target]).tolist(), start)
        while self._options.threshold is None and set(model.parents) - required:
            yield
            smaller = yield from self._without_weakest(target, model, required)
            if smaller is None:
                trials = []
                for parent in sorted(set(model.parents) - required):
                    rest = [p for p in model.parents if p != parent]
                    trials.append((yield from loss.refit(target, rest, model)))
                gains = [self._gain(one, model) for one in trials]
                smaller = trials[int(np.argmin(gains))]
                if min(gains) > 0.0:
                    break
            model = smaller
        return model

    def _without_weakest(
        self, target: int, model: NodeModel, required: set[int]
    ) -> Work[NodeModel | None]:
        """Remove the parent that contributes least if that is too little, or if too many are there.

        Returns None if nothing has to be removed.
        """
        criterion, noise = self._options.criterion, math.sqrt(max(model.variance, 1e-300))
        order = np.argsort(model.contributions, kind="stable").tolist()
        weakest = next(k for k in order if model.parents[k] not in required)
        trusted = criterion.trusts(model.freedom, self._loss.sample_size)
        if trusted and model.contributions[weakest] > criterion.strength * noise:
            return None
        rest = [p for p in model.parents if p != model.parents[weakest]]
        return (yield from self._loss.refit(target, rest, model))

    def _gain(self, smaller: NodeModel, larger: NodeModel) -> float:
        """Return by how much the criterion prefers the larger of two models, in nats."""
        criterion, n = self._options.criterion, self._loss.sample_size
        possible = len(self._whole.nodes) - 1
        before, after = (
            criterion.edges(one.freedom, len(one.parents), n, possible) for one in (smaller, larger)
        )
        corrected = max(n - larger.freedom - 1.0, 0.0)
        ratio = max(smaller.variance, 1e-300) / max(larger.variance, 1e-300)
        return 0.5 * corrected * math.log(ratio) - (after - before)

    def _cut(self, weights: Floats) -> Bools:
        """Keep the edges above the threshold; never a cycle."""
        threshold = self._options.threshold
        return acyclic_part(weights, self._required, _CANDIDATE if threshold is None else threshold)

    def _best_so_far(self) -> SearchResult:
        """Return the graph recorded last; at first it has the required edges only."""
        if self._answer is not None:
            return self._answer
        whole = self._whole
        none = np.zeros(len(whole.edge))
        models = [completed(whole.refit(j, (), none)) for j in range(len(whole.nodes))]
        value = sum(model.loss for model in models)
        return self._result(
            self._wanted, np.zeros(self._wanted.shape), whole.joined(models), value, np.inf, 0
        )

    def _result(
        self,
        graph: Bools,
        weights: Floats,
        parameters: Floats,
        value: float,
        residual: float,
        removed: int,
    ) -> SearchResult:
        path = self._path
        details = ModelDetails(
            weights=np.where(graph, weights, 0.0),
            coefficients=parameters,
            removed_edges=removed,
            kkt_residual=residual,
            evaluations=0 if path is None else path.evaluations,
        )
        parents = tuple(tuple(np.flatnonzero(column).tolist()) for column in graph.T)
        return SearchResult(
            parents, value * self._whole.unit**2, details, converged=residual <= _RESIDUAL
        )

    def _record_models(self) -> Work[None]:
        """Record the models of all nodes."""
        whole, active = self._whole, self._active
        d = len(whole.nodes)
        chosen = dict(zip(active.tolist(), self._models, strict=True))
        none = np.zeros(len(whole.edge))
        models = []
        for j in range(d):
            if j in chosen:
                parents = tuple(active[list(chosen[j].parents)].tolist())
                models.append(replace(chosen[j], parents=parents))
            else:
                models.append((yield from whole.refit(j, (), none)))
            yield
        parameters = whole.joined(models)
        yield
        edge = whole.edge
        squares = np.bincount(edge[edge >= 0], parameters[edge >= 0] ** 2, d * d)
        yield
        graph = np.zeros((d, d), dtype=np.bool_)
        for target, model in enumerate(models):
            graph[list(model.parents), target] = True
        removed = 0
        if self._path is not None:
            heavy = self._path.problem.weights(self._path.parameters) > SMOOTHING
            removed = max(int(heavy.sum() - graph.sum()), 0)
        self._answer = self._result(
            graph,
            np.sqrt(squares).reshape(d, d),
            parameters,
            sum(model.loss for model in models),
            max((model.residual for model in models), default=0.0),
            removed,
        )

    def _record(self, path: CentralPath) -> Work[None]:
        """Record the graph of the weights on the path, without what was removed from it since."""
        d, inside = len(self._whole.nodes), np.ix_(self._active, self._active)
        parameters = path.parameters
        weights, graph = np.zeros((d, d)), np.zeros((d, d), dtype=np.bool_)
        weights[inside] = path.problem.weights(parameters)
        yield
        part = self._cut(weights[inside])
        for target, model in enumerate(self._models):
            part[:, target] = False
            part[list(model.parents), target] = True
        graph[inside] = part
        yield
        cut = np.where(self._of_parameters(part, free=np.True_), parameters, 0.0)
        yield
        value, gradient = yield from self._loss.evaluation(cut)
        penalties = self._of_parameters(self._penalties, free=0.0)
        yield
        sizes = np.abs(cut)
        value += float(sizes @ penalties)
        zero = (self._loss.edge >= 0) & (sizes <= SMOOTHING)
        yield
        pull = np.sign(cut) * penalties
        yield
        there = np.abs(gradient + pull)
        yield
        entering = np.maximum(np.abs(gradient) - penalties, 0.0)
        yield
        wrong = np.where(zero, entering, there)
        yield
        open_ = self._of_parameters(path.problem.allowed, free=np.True_)
        yield
        residual = float((wrong * open_).max(initial=0.0))
        removed = max(int((weights > SMOOTHING).sum() - graph.sum()), 0)
        self._answer = self._result(graph, weights, cut, value, residual, removed)
        yield

    def _of_parameters(self, edges: NDArray[Any], *, free: np.bool_ | float) -> NDArray[Any]:
        """Return for each parameter the value of its edge; ``free`` for those of no edge."""
        values = np.append(edges.ravel(), free)
        edge = self._loss.edge
        each: NDArray[Any] = values[np.where(edge < 0, edges.size, edge)]
        return each

    def _say(self) -> tuple[str, float, float | None]:
        return self._text, np.nan, None

    def _conclusion(self) -> str:
        residual = max((model.residual for model in self._models), default=0.0)
        return (
            "the networks are fitted along the graph that the path ended in (largest violation of "
            f"optimality {residual:.1e}); another seed may end in another local minimum."
        )


# --- Group lasso of one target on its possible causes, to machine precision ---------------------
#
# Newton's method on the groups that are not zero, where the penalised loss is smooth; groups
# enter when their gradient is steeper than the penalty and leave when they shrink to nothing.

EXACT = 1e-10
_NOTHING = 1e-9
_SMALL = 1e-2
_ROUNDS = 500


@final
@dataclass
class NodeLasso:
    """``loss of a target + Σ penalty |coefficients of a cause|``.

    Parameters
    ----------
    loss
        The loss of all targets.
    target
        The target.
    causes
        Nodes that may have coefficients.
    penalties
        Penalty of each node.
    """

    loss: AdditiveLoss
    target: int
    causes: Sequence[int]
    penalties: Floats

    def __post_init__(self) -> None:
        owner = self.loss.owner
        self._free = np.flatnonzero(owner < 0)
        by_owner = np.argsort(owner, kind="stable")
        starts = np.searchsorted(owner[by_owner], self.causes, side="left").tolist()
        stops = np.searchsorted(owner[by_owner], self.causes, side="right").tolist()
        spans = zip(self.causes, starts, stops, strict=True)
        self._groups = {c: by_owner[a:b] for c, a, b in spans}
        self._causes = np.array(self.causes, dtype=np.int64)
        # Rows of no cause are counted for a node that does not exist.
        self._nodes = len(self.loss.nodes)
        self._owner = np.where(owner < 0, self._nodes, owner)

    def _sizes(self, values: Floats) -> Floats:
        """Norm of the values of each node."""
        sizes: Floats = np.sqrt(np.bincount(self._owner, values * values, self._nodes + 1))
        return sizes

    def solve(self, start: Floats, tolerance: float = EXACT) -> Work[tuple[Floats, float]]:
        """Return the coefficients of all rows, and how far they are from optimal.

        ``start`` holds a guess at the coefficients; the solution does not depend on it.
        """
        coefficients = np.zeros_like(start)
        coefficients[self._free] = start[self._free]
        sizes = self._sizes(start)
        active = [c for c in self._groups if sizes[c] > 1e-2]
        for c in active:
            coefficients[self._groups[c]] = start[self._groups[c]]
        for _ in range(_ROUNDS):
            active = yield from self._descend(coefficients, active, tolerance)
            worst, enters = self._violation(coefficients, active)
            if enters is None or worst <= tolerance:
                return coefficients, worst
            # A short step down the gradient brings a group off zero, where it is smooth.
            yield from self._enter(coefficients, enters)
            active = [*active, enters]
        return coefficients, self._violation(coefficients, active)[0]

    def value(self, coefficients: Floats) -> float:
        """Return the penalised loss."""
        active = [c for c, rows in self._groups.items() if np.any(coefficients[rows] != 0.0)]
        return self._value(coefficients, active)[0]

    def _rows(self, active: Sequence[int]) -> Integers:
        parts = [self._free, *(self._groups[c] for c in active)]
        rows: Integers = np.concatenate(parts).astype(np.int64)
        return rows

    def _value(self, coefficients: Floats, active: Sequence[int]) -> tuple[float, Floats]:
        rows = self._rows(active)
        value, gradient = self.loss.column(self.target, rows, coefficients[rows])
        at = np.array(active, dtype=np.int64)
        return value + float(self.penalties[at] @ self._sizes(coefficients)[at]), gradient

    def _violation(self, coefficients: Floats, active: Sequence[int]) -> tuple[float, int | None]:
        """Return the largest violation of optimality, and the cause at zero that has it if any."""
        _, gradient = self._value(coefficients, active)
        worst = float(np.abs(gradient[self._free]).max(initial=0.0))
        if not len(self._causes):
            return worst, None
        sizes = self._sizes(coefficients)
        is_active = np.zeros(self._nodes + 1, dtype=np.bool_)
        is_active[np.array(active, dtype=np.int64)] = True
        there = is_active & (sizes > 0.0)
        penalties = np.append(self.penalties, 0.0)
        pull = np.divide(penalties, sizes, out=np.zeros_like(sizes), where=there)
        steep = self._sizes(gradient + pull[self._owner] * coefficients)
        wrong = np.where(there, steep, steep - penalties)[self._causes]
        largest = int(wrong.argmax())
        if wrong[largest] <= worst:
            return worst, None
        cause = int(self._causes[largest])
        return float(wrong[largest]), None if is_active[cause] else cause

    def _enter(self, coefficients: Floats, cause: int) -> Work[None]:
        rows = self._groups[cause]
        before = coefficients[rows].copy()
        nonzero = [
            c for c in self._groups if c == cause or np.any(coefficients[self._groups[c]] != 0.0)
        ]
        value, gradient = self._value(coefficients, nonzero)
        step = 1.0
        for _ in range(60):
            coefficients[rows] = before - step * gradient[rows]
            if self._value(coefficients, nonzero)[0] < value:
                return
            step *= 0.5
            yield

    def _descend(
        self, coefficients: Floats, active: list[int], tolerance: float
    ) -> Work[list[int]]:
        """Minimise over the active groups by damped Newton steps; return those that stay."""
        least, stalled = np.inf, 0
        for _ in range(_ROUNDS):
            active = yield from self._settle_small(coefficients, active)
            rows = self._rows(active)
            if len(rows) == 0:
                return active
            value, gradient = self._value(coefficients, active)
            slope, hessian = (
                gradient[rows].copy(),
                self.loss.curvature(self.target, rows, coefficients[rows]).copy(),
            )
            self._add_penalty(coefficients, active, slope, hessian)
            steepest = float(np.abs(slope).max())
            stalled = 0 if steepest < 0.5 * least else stalled + 1
            least = min(least, steepest)
            # Below the rounding of the gradient nothing more can be gained.
            if steepest <= 0.01 * tolerance or (stalled > 5 and steepest < tolerance):
                return active
            move = _newton(hessian, slope)
            yield
            moved = yield from self._line_search(coefficients, active, rows, move, value, slope)
            if not moved:
                return active
            active = self._shrunk(coefficients, active)
        return active

    def _settle_small(self, coefficients: Floats, active: list[int]) -> Work[list[int]]:
        """Move groups near zero by proximal steps: Newton's are short where the kink is near."""
        kept = []
        rows = self._rows(active)
        sizes = self._sizes(coefficients)
        for c in active:
            own = self._groups[c]
            if sizes[c] < _SMALL:
                _, gradient = self.loss.column(self.target, rows, coefficients[rows])
                steep = self._steepness(own, rows, coefficients)
                aim = coefficients[own] - gradient[own] / steep
                size = float(np.linalg.norm(aim))
                coefficients[own] = aim * max(
                    1.0 - self.penalties[c] / (steep * max(size, 1e-300)), 0.0
                )
                yield
            if np.any(coefficients[own] != 0.0):
                kept.append(c)
        return kept

    def _steepness(self, own: Integers, rows: Integers, coefficients: Floats) -> float:
        """Return the largest curvature of the loss over one group."""
        hessian = self.loss.curvature(self.target, rows, coefficients[rows])
        at = np.flatnonzero(np.isin(rows, own))
        return float(np.linalg.norm(hessian[np.ix_(at, at)], 2))

    def _add_penalty(
        self, coefficients: Floats, active: Sequence[int], slope: Floats, hessian: Floats
    ) -> None:
        at = len(self._free)
        for c in active:
            own = coefficients[self._groups[c]]
            stop = at + len(own)
            size = float(np.linalg.norm(own))
            unit = own / size
            slope[at:stop] += self.penalties[c] * unit
            curve = (np.eye(len(own)) - np.outer(unit, unit)) * (self.penalties[c] / size)
            hessian[at:stop, at:stop] += curve
            at = stop

    def _line_search(
        self,
        coefficients: Floats,
        active: Sequence[int],
        rows: Integers,
        move: Floats,
        value: float,
        slope: Floats,
    ) -> Work[bool]:
        before = coefficients[rows].copy()
        fall = float(slope @ move)
        length = 1.0
        # Near the optimum the value no longer shows a gain that the gradient still does.
        slack = 8 * np.finfo(np.float64).eps * abs(value)
        for _ in range(50):
            coefficients[rows] = before + length * move
            self._stop_at_zero(coefficients, active, before)
            if self._value(coefficients, active)[0] <= value + 1e-4 * length * fall + slack:
                return True
            length *= 0.5
            yield
        coefficients[rows] = before
        return False

    def _stop_at_zero(self, coefficients: Floats, active: Sequence[int], before: Floats) -> None:
        """Hold the groups that were about to pass zero, where their penalty has its kink."""
        at = len(self._free)
        for c in active:
            rows = self._groups[c]
            if float(coefficients[rows] @ before[at : at + len(rows)]) <= 0.0:
                coefficients[rows] = 0.0
            at += len(rows)

    def _shrunk(self, coefficients: Floats, active: list[int]) -> list[int]:
        """Set groups to zero that are next to nothing and want to be there."""
        kept = []
        sizes = self._sizes(coefficients)
        for c in active:
            if sizes[c] == 0.0 or (
                sizes[c] < _NOTHING and self._wants_zero(coefficients, active, c)
            ):
                coefficients[self._groups[c]] = 0.0
            else:
                kept.append(c)
        return kept

    def _wants_zero(self, coefficients: Floats, active: list[int], cause: int) -> bool:
        rest = [c for c in active if c != cause]
        rows = self._rows(rest)
        _, gradient = self.loss.column(self.target, rows, coefficients[rows])
        return bool(np.linalg.norm(gradient[self._groups[cause]]) <= self.penalties[cause])


def _newton(hessian: Floats, slope: Floats) -> Floats:
    try:
        move: Floats = np.asarray(-np.linalg.solve(hessian, slope), dtype=np.float64)
    except np.linalg.LinAlgError:
        move = np.full_like(slope, np.nan)
    if np.isfinite(move).all() and float(move @ slope) < 0.0:
        return move
    # Columns that determine each other: the step of least norm.
    least = np.linalg.lstsq(hessian, slope, rcond=1e-12)[0]
    move = np.asarray(-least, dtype=np.float64)
    return move if float(move @ slope) < 0.0 else -slope
