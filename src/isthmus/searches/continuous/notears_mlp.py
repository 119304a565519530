"""NOTEARS for models with parameters of any shape, such as one small neural network per node."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import BoundKnowledge
from isthmus.kernels.continuous import acyclic_part
from isthmus.objectives import PARAMETRIC_MODEL, ParametricLoss
from isthmus.objectives.parametric import NodeModel
from isthmus.options import require_instance, require_number
from isthmus.results.details import ModelDetails
from isthmus.searches.base import Accepts, Search, SearchResult, Watch
from isthmus.searches.continuous.central_path import (
    SMOOTHING,
    CentralPath,
    PathProblem,
    PathStage,
    allowed_edges,
)
from isthmus.searches.continuous.family_criterion import FamilyEBIC
from isthmus.types import Bools, Floats, Integers, Work, completed

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
