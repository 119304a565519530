"""NOTEARS for models with parameters of any shape, such as one small neural network per node."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.kernels.continuous import acyclic_part
from isthmus.objectives import PARAMETRIC_MODEL, ParametricLoss
from isthmus.objectives.parametric import NodeModel
from isthmus.results.details import ModelDetails
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.continuous.central_path import (
    SMOOTHING,
    CentralPath,
    Problem,
    Stage,
    allowed_edges,
)
from isthmus.searches.continuous.family_criterion import FamilyEBIC
from isthmus.types import Bools, Floats, Work, advance

_PATH = (
    Stage(1.0, 1.0, 1e-5, 500),
    Stage(0.1, 0.9, 1e-5, 500),
    Stage(0.01, 0.8, 1e-5, 500),
    Stage(0.001, 0.7, 1e-5, 500),
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

    After Zheng et al. 2020 (arXiv 1909.13189), with the central path in place of the augmented
    Lagrangian. A criterion then chooses among the parents that the path ended in, and the networks
    are fitted once more along the graph, without the penalty. The score says which network
    (`Perceptrons`). It needs rows, and the extra ``numerics``. Lower values of the objective are
    better.

    Parameters
    ----------
    penalty
        Weight of the sum of the absolute weights between causes and hidden layers, in units of the
        noise. By default it follows from the numbers of nodes and rows.
    threshold
        Remove edges with a weight up to this, in units of the noise. By default the criterion
        chooses the parents.
    criterion
        Chooses the parents where no threshold is given.
    """

    penalty: float | None = None
    threshold: float | None = None
    criterion: FamilyEBIC = FamilyEBIC()
    accepts: ClassVar[Accepts] = (PARAMETRIC_MODEL,)

    def __post_init__(self) -> None:
        for name in ("penalty", "threshold"):
            value = getattr(self, name)
            if value is not None and not value >= 0.0:
                raise MismatchError(f"{name} must not be negative; {value} was given.")

    def begin(
        self, objective: ParametricLoss, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[SearchResult]:
        """Start a run; the first parameters are drawn."""
        return _ParametricRun(self, objective, knowledge, rng)


@final
class _ParametricRun(Run[SearchResult]):
    def __init__(
        self,
        options: NotearsMLP,
        objective: ParametricLoss,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> None:
        self._options, self._whole = options, objective
        d, n = len(objective.nodes), objective.sample_size
        penalty = options.penalty
        if penalty is None:
            penalty = _PENALTY * math.sqrt(math.log(max(d, 2)) / n)
        self._active = self._screened(knowledge.required)
        inside = np.ix_(self._active, self._active)
        allowed = allowed_edges(knowledge, d) | knowledge.required
        self._required = knowledge.required[inside]
        self._penalties = np.where(self._required, 0.0, penalty)
        # Of no node or all of them it is the loss as it is.
        part = 0 < len(self._active) < d
        self._loss = objective.restricted(self._active.tolist()) if part else objective
        self._path: CentralPath | None = None
        if len(self._active):
            problem = Problem(
                self._evaluation,
                self._loss.start(rng),
                self._loss.edge,
                len(self._active),
                len(self._active),
                allowed[inside],
                self._penalties,
                grouped=False,
            )
            self._path = CentralPath(problem, _PATH)
        self._models: list[NodeModel] = []
        self._text = "central path"
        self._work = self._stages()

    def _screened(self, required: Bools) -> NDArray[np.int64]:
        """Return the nodes that take part in the optimisation."""
        d = len(self._whole.nodes)
        if d <= _SCREENED or self._options.threshold is not None:
            return np.arange(d)
        joined = self._whole.looks_dependent() | required | required.T
        return np.flatnonzero(joined.any(axis=0))

    def step(self) -> bool:
        """Work for a slice of time; return whether the search has finished."""
        return advance(self._work, _SLICE)

    def _evaluation(self, parameters: Floats) -> Work[tuple[float, Floats]]:
        yield
        return self._loss.value_and_gradient(parameters)

    def _stages(self) -> Work[None]:
        if self._path is None:
            return
        while not (yield from self._path.iterate()):
            self._text = self._path.describe()
        graph = self._cut(self._path.problem.weights(self._path.parameters))
        for target in range(len(graph)):
            model = yield from self._node(target, graph, self._path.parameters)
            self._models.append(model)
            self._text = f"parents of {target + 1} of {len(graph)} nodes"
            yield

    def _node(self, target: int, graph: Bools, start: Floats) -> Work[NodeModel]:
        """Fit the network of one node, and remove parents while the criterion gains."""
        loss, required = self._loss, set(np.flatnonzero(self._required[:, target]).tolist())
        model = loss.refit(target, np.flatnonzero(graph[:, target]).tolist(), start)
        while self._options.threshold is None and set(model.parents) - required:
            yield
            smaller = self._without_weakest(target, model, required)
            if smaller is None:
                trials = []
                for parent in sorted(set(model.parents) - required):
                    rest = [p for p in model.parents if p != parent]
                    trials.append(loss.refit(target, rest, model))
                    yield
                gains = [self._gain(one, model) for one in trials]
                smaller = trials[int(np.argmin(gains))]
                if min(gains) > 0.0:
                    break
            model = smaller
        return model

    def _without_weakest(
        self, target: int, model: NodeModel, required: set[int]
    ) -> NodeModel | None:
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
        return self._loss.refit(target, rest, model)

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

    def best(self) -> SearchResult:
        """Return the graph chosen so far; never one with a cycle."""
        d = len(self._whole.nodes)
        models = self._finished()
        if models is None:
            weights, graph, parameters, value, residual = self._on_path()
        else:
            parameters = self._whole.joined(models)
            edge = self._whole.edge
            squares = np.bincount(edge[edge >= 0], parameters[edge >= 0] ** 2, d * d)
            weights = np.sqrt(squares).reshape(d, d)
            graph = np.zeros((d, d), dtype=np.bool_)
            for target, model in enumerate(models):
                graph[list(model.parents), target] = True
            value = sum(model.loss for model in models)
            residual = max((model.residual for model in models), default=0.0)
        details = ModelDetails(
            weights=np.where(graph, weights, 0.0),
            coefficients=parameters,
            removed_edges=self._removed(int(graph.sum())),
            kkt_residual=residual,
            evaluations=0 if self._path is None else self._path.evaluations,
        )
        parents = tuple(tuple(np.flatnonzero(column).tolist()) for column in graph.T)
        return SearchResult(
            parents, value * self._whole.unit**2, details, converged=residual <= _RESIDUAL
        )

    def _finished(self) -> list[NodeModel] | None:
        """Return the models of all nodes; None while some are still to come."""
        if len(self._models) < len(self._active):
            return None
        whole = self._whole
        none = np.zeros(len(whole.edge))
        chosen = dict(zip(self._active.tolist(), self._models, strict=True))
        return [
            replace(chosen[j], parents=tuple(self._active[list(chosen[j].parents)].tolist()))
            if j in chosen
            else whole.refit(j, (), none)
            for j in range(len(whole.nodes))
        ]

    def _removed(self, edges: int) -> int:
        if self._path is None:
            return 0
        weights = self._path.problem.weights(self._path.parameters)
        return max(int((weights > SMOOTHING).sum()) - edges, 0)

    def _on_path(self) -> tuple[Floats, Bools, Floats, float, float]:
        """Return weights, graph, parameters, objective and residual on the central path."""
        assert self._path is not None
        d, inside = len(self._whole.nodes), np.ix_(self._active, self._active)
        parameters = self._path.parameters
        weights, graph = np.zeros((d, d)), np.zeros((d, d), dtype=np.bool_)
        weights[inside] = self._path.problem.weights(parameters)
        part = self._cut(weights[inside])
        for target, model in enumerate(self._models):
            part[:, target] = False
            part[list(model.parents), target] = True
        graph[inside] = part
        cut = np.where(self._of_parameters(part, free=np.True_), parameters, 0.0)
        value, gradient = self._loss.value_and_gradient(cut)
        penalties = self._of_parameters(self._penalties, free=0.0)
        value += float(np.abs(cut) @ penalties)
        zero = (self._loss.edge >= 0) & (np.abs(cut) <= SMOOTHING)
        wrong = np.where(
            zero,
            np.maximum(np.abs(gradient) - penalties, 0.0),
            np.abs(gradient + penalties * np.sign(cut)),
        )
        open_ = self._of_parameters(self._path.problem.allowed, free=np.True_)
        return weights, graph, cut, value, float(wrong[open_].max(initial=0.0))

    def _of_parameters(self, edges: NDArray[Any], *, free: np.bool_ | float) -> NDArray[Any]:
        """Return for each parameter the value of its edge; ``free`` for those of no edge."""
        values = np.append(edges.ravel(), free)
        edge = self._loss.edge
        each: NDArray[Any] = values[np.where(edge < 0, edges.size, edge)]
        return each

    def describe(self) -> tuple[str, float, float | None]:
        """Say where the run stands."""
        return self._text, np.nan, None

    def conclusion(self) -> str:
        """Explain why the search stopped."""
        residual = max((model.residual for model in self._models), default=0.0)
        return (
            "the networks are fitted along the graph that the path ended in (largest violation of "
            f"optimality {residual:.1e}); another seed may end in another local minimum."
        )
