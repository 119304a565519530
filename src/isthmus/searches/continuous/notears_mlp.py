"""NOTEARS for models with parameters of any shape, such as one small neural network a node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import BoundKnowledge
from isthmus.graphs.adjacency import heaviest_acyclic
from isthmus.objectives import PARAMETRIC_MODEL, ParametricLoss
from isthmus.results.details import ModelDetails
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.continuous.central_path import (
    SMOOTHING,
    CentralPath,
    Problem,
    Stage,
    allowed_edges,
)
from isthmus.types import Bools, Floats

_PATH = (
    Stage(1.0, 1.0, 1e-5, 500),
    Stage(0.1, 0.9, 1e-5, 500),
    Stage(0.01, 0.8, 1e-5, 500),
    Stage(0.001, 0.7, 1e-5, 500),
)
_POLISH = (Stage(1.0, 1.0, 1e-6, 600),)


@final
@dataclass(frozen=True)
class NotearsMLP(Search[ParametricLoss]):
    """Continuous optimisation over the parameters of one small neural network a node.

    After Zheng et al. 2020 (arXiv 1909.13189), with the central path in place of the augmented
    Lagrangian, and a last optimisation of the networks along the graph that the path ended in. The
    score says which network (`Perceptrons`). It needs rows, and the extra ``numerics``. Lower
    values of the objective are better.

    Parameters
    ----------
    penalty
        Weight of the sum of the absolute weights between causes and hidden layers.
    threshold
        Edges of a weight up to this are cut off.
    """

    penalty: float = 0.01
    threshold: float = 0.3
    accepts: ClassVar[Accepts] = (PARAMETRIC_MODEL,)

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
        self._options = options
        self._loss = objective
        self._required = knowledge.required
        self._allowed = allowed_edges(knowledge, len(objective.nodes)) | self._required
        self._penalties = np.where(self._required, 0.0, options.penalty)
        self._path = CentralPath(self._problem(self._allowed, objective.start(rng)), _PATH)
        self._polishing = False
        self._residual: float | None = None

    def _problem(self, allowed: Bools, start: Floats) -> Problem:
        d = len(self._loss.nodes)
        return Problem(
            self._loss.value_and_gradient,
            start,
            self._loss.edge,
            d,
            d,
            allowed,
            self._penalties,
            grouped=False,
        )

    def step(self) -> bool:
        """Go along the path; at its end optimise along the graph it gave."""
        if not self._path.step():
            return False
        if self._polishing:
            self._residual = self._violation()
            return True
        weights = self._path.problem.weights(self._path.parameters)
        graph = heaviest_acyclic(weights, self._required, self._options.threshold)
        spent = self._path.evaluations
        self._path = CentralPath(self._problem(graph, self._path.parameters), _POLISH)
        self._path.evaluations += spent
        self._polishing = True
        return False

    def _violation(self) -> float:
        """How far the end is from optimal for its graph; what is smoothed away counts as zero."""
        parameters = self._path.parameters
        _, gradient = self._loss.value_and_gradient(parameters)
        open_ = self._of_parameters(self._path.problem.allowed, free=np.True_)
        penalties = self._of_parameters(self._penalties, free=0.0)
        zero = (self._loss.edge >= 0) & (np.abs(parameters) <= SMOOTHING)
        wrong = np.where(
            zero,
            np.maximum(np.abs(gradient) - penalties, 0.0),
            np.abs(gradient + penalties * np.sign(parameters)),
        )
        return float(wrong[open_].max(initial=0.0))

    def _of_parameters(self, edges: NDArray[Any], *, free: np.bool_ | float) -> NDArray[Any]:
        """For each parameter the value of its edge; ``free`` for those of no edge."""
        values = np.append(edges.ravel(), free)
        found: NDArray[Any] = values[np.where(self._loss.edge < 0, edges.size, self._loss.edge)]
        return found

    def best(self) -> SearchResult:
        """Return the graph of the weights above the threshold; never one with a cycle."""
        parameters = self._path.parameters
        weights = self._path.problem.weights(parameters)
        graph = heaviest_acyclic(weights, self._required, self._options.threshold)
        cut = np.where(self._of_parameters(graph, free=np.True_), parameters, 0.0)
        value, _ = self._loss.value_and_gradient(cut)
        value += float(np.abs(cut) @ self._of_parameters(self._penalties, free=0.0))
        details = ModelDetails(
            weights=np.where(graph, weights, 0.0),
            coefficients=cut,
            removed_edges=int(((weights > SMOOTHING) & ~graph).sum()),
            kkt_residual=self._violation() if self._residual is None else self._residual,
            evaluations=self._path.evaluations,
        )
        parents = tuple(tuple(np.flatnonzero(graph[:, j]).tolist()) for j in range(len(graph)))
        return SearchResult(parents, value, details)

    def describe(self) -> tuple[str, float, float | None]:
        """Say where on the path this is."""
        stage = "last stage, along one graph" if self._polishing else self._path.describe()
        return stage, np.nan, None

    def conclusion(self) -> str:
        """Say what the end means."""
        return (
            "the path ended in a graph, along which the networks were optimised "
            f"(largest violation of optimality {self._residual or 0.0:.1e}); other starts may end "
            "elsewhere."
        )
