"""NOTEARS for linear models: continuous optimisation over weights, then exact moves.

Zheng, Aragam, Ravikumar and Xing 2018 (arXiv 1803.01422) turn acyclicity into a smooth constraint.
Here the relaxed problem gives a first order of the variables; along an order the problem is a
lasso for each variable, solved exactly; and variables then move within the order as long as the
objective falls (in the spirit of arXiv 2010.09133). So the answer is always acyclic, and a local
minimum of the problem itself and not only of a relaxation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias, final

import numpy as np

from isthmus.arrays import Floats, Integers, Work, completed, completed_within
from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.kernels.continuous import order_along
from isthmus.objectives import SECOND_MOMENTS
from isthmus.objectives.local import LocalScore
from isthmus.objectives.smooth import LikelihoodLoss, MomentsLoss, SmoothLoss
from isthmus.options import require_boolean, require_instance, require_integer, require_number
from isthmus.results.details import WeightDetails
from isthmus.searches.base import Accepts, Search, SearchResult
from isthmus.searches.notears_penalties import (
    L1,
    TIE,
    Cut,
    EdgePrice,
    EqualNoiseEBIC,
    L1ByParent,
    NotearsCandidate,
    Penalty,
    PenaltyCriterion,
    RefitEBIC,
    best_cut,
    best_of,
    cut_at,
    judged,
    left_by,
    noise_variance,
    penalty_path,
    standardised,
)
from isthmus.searches.relaxation import (
    COARSE,
    Acyclicity,
    LogDet,
    Refinement,
    Relaxation,
    Task,
    kkt_residual,
    lasso_along,
    shaken_order,
    subsets_along,
)
from isthmus.watch import Watch

_MANY = 50
"""Up to this many variables, every penalty is solved in full and orders are perturbed."""
_SHARPENED = 100
"""Up to this many variables, the graph is refined by the criterion itself."""
_SHAKEN = 4
_FRESH = 4
"""Period of the starts, under a likelihood, that begin with a random order."""
_ROUNDS = 3
_EVIDENCE = 10.0
"""Nats by which a refined graph must be better: with few rows, ℓ1 makes fewer errors."""
_PROVISIONAL = 0.3
"""Threshold of a run that was stopped before a criterion could choose one."""
_PATIENCE = 0.05
"""Seconds to choose the threshold of a run that is stopped."""


@final
@dataclass(frozen=True)
class Notears(Search[SmoothLoss]):
    """Learn a weighted graph by continuous optimisation.

    With :class:`~isthmus.LeastSquares` the loss depends on the relative scales of the columns. This
    is right if all noise has the same scale, and misleading if units are arbitrary. With
    :class:`~isthmus.scores.LinearLikelihood` the loss does not depend on scale. The method of Zheng
    et al. 2018 as it was published is :func:`isthmus.published.notears`.

    Parameters
    ----------
    penalty
        Penalty on edges: a number for :class:`L1` with that weight (least squares), or a
        :class:`QuasiMCP` (likelihood). By default, for least squares, several ℓ1 weights are tried
        and the criterion chooses among them; with up to a hundred variables, the order is then
        improved as long as the criterion decreases. For a likelihood the default is ``QuasiMCP()``.
    threshold
        Remove edges with a smaller weight. By default the criterion chooses.
    acyclicity
        Acyclicity constraint of the relaxed problem.
    criterion
        Chooses penalty and threshold. By default :class:`EqualNoiseEBIC` for least squares, and
        :class:`RefitEBIC`, which does not depend on units, for a likelihood.
    refine
        Whether to improve the order by moving variables as long as the objective decreases.
    starts
        Number of starts of the moves under a likelihood, which has many more local minima than
        least squares: first from the order of the relaxed solution, then from the best order so far
        with a tenth of the variables moved at random, every fourth time with all of them.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> solution = ist.learn(numbers, score=ist.LinearLikelihood(), search=ist.Notears())
    >>> ist.shd(solution.cpdag, dag.cpdag())
    0
    """

    penalty: float | Penalty | None = None
    threshold: float | None = None
    acyclicity: Acyclicity = LogDet()
    criterion: PenaltyCriterion | None = None
    refine: bool = True
    starts: int = 20
    accepts: ClassVar[Accepts] = (SECOND_MOMENTS,)

    def __post_init__(self) -> None:
        if not isinstance(self.penalty, Penalty):
            require_number(self, "penalty", least=0, optional=True)
        require_number(self, "threshold", least=0, optional=True)
        require_instance(self, "acyclicity", Acyclicity, "LogDet()")
        require_instance(self, "criterion", PenaltyCriterion, "RefitEBIC()", optional=True)
        require_boolean(self, "refine")
        require_integer(self, "starts", least=1)

    def search(
        self,
        objective: SmoothLoss,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        return _Notears(self, SECOND_MOMENTS.require(objective), knowledge, rng).search(watch)


@final
class _Notears:
    def __init__(
        self,
        options: Notears,
        loss: MomentsLoss,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
    ) -> None:
        self._options = options
        fallback = RefitEBIC() if isinstance(loss, LikelihoodLoss) else EqualNoiseEBIC()
        self._criterion = options.criterion or fallback
        self._unit = np.ones(len(loss.nodes))
        if isinstance(loss, LikelihoodLoss):
            loss, self._unit = standardised(loss)
        closure = _native.reachable(knowledge.required)
        self._task = Task(loss, ~knowledge.forbidden & ~closure.T, knowledge.required, rng)
        starts = max(options.starts, 1) if options.refine else 1
        self._penalties = penalty_path(options.penalty, loss, starts)
        if options.threshold is None and loss.rows is None:
            raise MismatchError(
                "The objective does not know its number of rows, so no criterion can choose: "
                "give a penalty and a threshold."
            )
        self._follows = len(set(self._penalties)) > 1
        self._text, self._done = "start", 0.0
        self._raw: Floats = np.zeros((len(loss.nodes), len(loss.nodes)))
        self._kept: list[NotearsCandidate] = []
        self._relaxing: Relaxation | None = None
        self._refining: Refinement | None = None
        self._best_order = np.empty(0, np.int64)
        self._score: LocalScore | None = None

    def search(self, watch: Watch) -> SearchResult:
        """Return the best graph until the end, or until it is time to stop."""
        with watch.until_stopped():
            watch.complete(self._stages(), self._say)
        return replace(self._best_so_far(), conclusion="" if watch.stopped else self._conclusion())

    def _stages(self) -> Work[None]:
        many = len(self._penalties)
        refined: Refinement | None = None
        k: int | None = 0 if len(self._unit) else None
        while k is not None:
            penalty = self._penalties[k]
            if refined is None:
                yield from self._relax(penalty)
                order = order_along(self._raw, self._task.required)
                yield
            else:
                order = self._order(refined)
            surely = 2 if len(self._unit) <= COARSE else 1
            if k >= surely and self._follows and not (yield from self._matters(penalty, order)):
                break
            refined = self._refining = self._along(penalty, order, refined)
            while not refined.step():
                self._text = f"problem {len(self._kept) + 1}: {refined.describe()}"
                self._done = (len(self._kept) + 0.5) / many
                yield
            candidate = yield from self._candidate(penalty, refined)
            self._kept.append(candidate)
            self._raw = candidate.weights
            k = self._next(k)
            yield
        if self._kept:
            yield from self._sharpen()

    def _along(self, penalty: Penalty, order: Integers, before: Refinement | None) -> Refinement:
        refine = self._options.refine
        if isinstance(penalty, L1):
            return lasso_along(self._task, penalty, order, self._raw, refine=refine)
        if self._score is None:
            flat = float(penalty.value(np.full(1, np.inf))[0])
            self._score = self._task.loss.subset_score(flat)
        return subsets_along(self._task, self._score, order, before, refine=refine)

    def _sharpen(self) -> Work[None]:
        """Improve the best graph by the criterion itself.

        ℓ1 shrinks strong weights: with few rows, several weak edges may replace a strong one.
        Near a graph the criterion is least squares with a price for each edge.
        """
        criterion, loss, d = self._criterion, self._task.loss, len(self._unit)
        if not (self._follows and self._options.refine and 1 < d <= _SHARPENED):
            return
        if self._options.threshold is not None or not isinstance(criterion, EqualNoiseEBIC):
            return
        assert loss.rows is not None
        clearly = best_of(self._kept).rank()[0] - _EVIDENCE / loss.rows
        for _ in range(_ROUNDS):
            best = best_of(self._kept)
            kept = best.cut.kept
            price = criterion.price(left_by(kept, loss.matrix), int(kept.sum()), loss.rows)
            score = loss.subset_score(price.price)
            order = order_along(np.where(kept, best.weights, 0.0), self._task.required)
            refined: Refinement | None = None
            for start in range(1 + _SHAKEN if d <= _MANY else 1):
                if start > 0:
                    order = shaken_order(self._best_order, self._task.required, self._task.rng)
                refined = subsets_along(self._task, score, order, refined, refine=True)
                while not refined.step():
                    self._text = f"sharper: {refined.describe()}"
                    yield
                one = yield from self._candidate(price, refined)
                # With more than one parent per three rows the refit is not reliable.
                trusted = 3 * int(one.cut.kept.sum(axis=0).max()) <= loss.rows
                if trusted and one.rank()[0] < clearly:
                    self._kept.append(one)
                if start == 0 or best_of(self._kept) is one:
                    self._best_order = refined.order()
            if best_of(self._kept) is best:
                return

    def _matters(self, penalty: Penalty, order: Integers) -> Work[bool]:
        """Return whether solving for a smaller penalty is likely to change the graph.

        Where it does not change the graph along the order at hand, it seldom does so after moves.
        For many variables these take most of the time.
        """
        if len(order) <= _MANY:
            return True
        along = lasso_along(self._task, penalty, order, self._raw, refine=False)
        while not along.step():
            yield
        weights = yield from along.weights()
        cut = yield from self._cut(weights, chosen=True)
        return not np.array_equal(cut.kept, self._kept[-1].cut.kept)

    def _order(self, last: Refinement) -> Integers:
        """Return the order to continue from.

        The solution for one ℓ1 weight is a good start for the next. A likelihood has many local
        minima close to each other: the search is faster from near the best than from afar.
        But not always, so some orders are random.
        """
        if self._follows:
            return last.order()
        if best_of(self._kept) is self._kept[-1]:
            self._best_order = last.order()
        share = 1.0 if len(self._kept) % _FRESH == 0 else 0.1
        return shaken_order(self._best_order, self._task.required, self._task.rng, share)

    def _next(self, k: int) -> int | None:
        """Return the index of the next penalty; None if a smaller one is unlikely to help."""
        if k + 1 == len(self._penalties):
            return None
        if not self._follows or k == 0:
            return k + 1
        return k + 1 if self._kept[-1].rank()[0] <= self._kept[-2].rank()[0] + TIE else None

    def _relax(self, penalty: Penalty) -> Work[None]:
        if (
            isinstance(penalty, L1)
            and len(self._unit) > COARSE
            and self._task.loss.rows is not None
        ):
            penalty = self._by_spread(self._task.loss.rows)
        relaxing = self._relaxing = self._options.acyclicity.begin(self._task, penalty)
        while not relaxing.step():
            self._text = relaxing.describe()
            yield
        self._raw = relaxing.weights()

    def _by_spread(self, rows: int) -> Penalty:
        """Return the penalty for finding an order of many variables.

        Noise alone reaches slopes in proportion to the spread of the parent: under one weight for
        all parents the columns fill with weights of no meaning. Of the relaxed solution only the
        order is kept, so its penalty need not be that of the problem.
        """
        variances = np.diagonal(self._task.loss.matrix)
        weight = 2.0 * np.sqrt(noise_variance(variances) * np.log(len(variances)) / rows)
        return L1ByParent(weight * np.sqrt(variances))

    def _candidate(self, penalty: Penalty, refined: Refinement) -> Work[NotearsCandidate]:
        task = self._task
        weights = yield from refined.weights()
        cut = yield from self._cut(weights, chosen=isinstance(penalty, L1 | EdgePrice))
        value, gradient = yield from task.objective_and_gradient(penalty, weights)
        residual = kkt_residual(task, penalty, weights, gradient)
        return NotearsCandidate(penalty, weights, cut, value, residual)

    def _cut(self, weights: Floats, *, chosen: bool) -> Work[Cut]:
        required, loss = self._task.required, self._task.loss
        if self._options.threshold is not None:
            cut = cut_at(weights * self._units(), self._options.threshold, required)
            if loss.rows is None:
                return cut
            return (yield from judged(cut, loss.matrix, loss.rows, self._criterion))
        assert loss.rows is not None
        if not chosen:
            return cut_at(weights, 0.0, required)
        return (yield from best_cut(weights, loss.matrix, loss.rows, required, self._criterion))

    def _units(self) -> Floats:
        """Return the factors from weights of standardised columns to those of the data."""
        factors: Floats = self._unit[None, :] / self._unit[:, None]
        return factors

    def _best_so_far(self) -> SearchResult:
        """Return the graph that the criterion prefers; at first the one that the weights show."""
        best = best_of(self._kept) if self._kept else self._provisional()
        kept = best.cut.kept
        parents = tuple(tuple(np.flatnonzero(kept[:, j]).tolist()) for j in range(len(kept)))
        return SearchResult(parents, best.objective, self._details(best))

    def _provisional(self) -> NotearsCandidate:
        """Return the current weights, before the first problem is solved."""
        task, penalty = self._task, self._penalties[0]
        threshold = self._options.threshold
        weights, cut, value = self._solved_weights(), None, None
        if weights is not None:
            assert self._refining is not None
            value = self._refining.objective()
            cut = completed_within(self._cut(weights, chosen=isinstance(penalty, L1)), _PATIENCE)
        else:
            raw = self._raw if self._relaxing is None else self._relaxing.weights()
            place = np.argsort(order_along(raw, task.required))
            weights = np.where(place[:, None] < place[None, :], raw, 0.0)
        if cut is None and threshold is not None:
            cut = cut_at(weights * self._units(), threshold, task.required)
        elif cut is None:
            cut = cut_at(weights, _PROVISIONAL, task.required)
        if value is None:
            value, _ = completed(task.objective_and_gradient(penalty, weights))
        return NotearsCandidate(penalty, weights, cut, value, np.nan)

    def _solved_weights(self) -> Floats | None:
        """Return the weights along the current order; None if they are not solved yet."""
        if self._refining is None or not self._refining.settled:
            return None
        return completed_within(self._refining.weights(), _PATIENCE)

    def _details(self, best: NotearsCandidate) -> WeightDetails:
        whole = best.weights * self._units()
        return WeightDetails(
            weights=np.where(best.cut.kept, whole, 0.0),
            weights_before_threshold=whole,
            penalty=best.penalty,
            threshold=best.cut.threshold,
            objective=best.objective,
            kkt_residual=best.residual,
            criterion=best.cut.criterion,
            path=tuple(one.row() for one in self._kept),
        )

    def _say(self) -> tuple[str, float, float | None]:
        best = min((one.objective for one in self._kept), default=np.inf)
        return self._text, best, self._done

    def _conclusion(self) -> str:
        if not self._options.refine:
            return "the weights are optimal for the order of the relaxed solution."
        if len(self._unit) > COARSE:
            return "no move of a variable within the order promises a relevant gain."
        return "no move of a variable within the order lowers the objective."


# --- Limited-memory BFGS that can be interrupted at any time and resumed ------------------------
#
# SciPy's runs to its end in one call, and one evaluation of a large problem takes seconds. Here
# both the iterations and the evaluations are done in pieces. The line search is a bisection for
# the weak Wolfe conditions (Lewis and Overton 2013): it needs no third derivative, and a value of
# infinity just shortens the step.

Function: TypeAlias = Callable[[Floats], Work[tuple[float, Floats]]]

LARGE = 2**15
"""Number of parameters from which there is a pause between two passes over them."""
_DECREASE = 1e-4
_CURVATURE = 0.9


@final
class LBFGS:
    """A minimisation in progress.

    Parameters
    ----------
    function
        Computes value and gradient; the value may be infinite outside its domain.
    start
        Initial point, at which the value must be finite.
    memory
        Number of pairs kept.
    """

    def __init__(self, function: Function, start: Floats, memory: int = 12) -> None:
        self._function = function
        self.x = start.copy()
        self.value, self.gradient = np.inf, np.zeros_like(start)
        self.iterations = 0
        self._large = len(start) >= LARGE
        self._pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)

    def begin(self) -> Work[None]:
        """Evaluate the function at the start, before the first iteration."""
        self.value, self.gradient = yield from self._function(self.x)

    def iterate(self) -> Work[float]:
        """Do one iteration; return by how much the value fell, zero where it cannot fall.

        Until the iteration is finished, ``x``, ``value`` and ``gradient`` are those before it.
        """
        point = None
        while point is None:
            direction = yield from self._direction()
            slope = float(self.gradient @ direction)
            if not slope < 0.0:
                self._pairs.clear()
                direction = -self.gradient
                slope = -float(self.gradient @ self.gradient)
                if not slope < 0.0:
                    return 0.0
            # Without curvature the first step has the length of a small gradient at most.
            first = 1.0 if self._pairs else min(1.0, 1.0 / float(np.abs(self.gradient).sum()))
            point = yield from self._search(direction, slope, first)
            if point is None:
                if not self._pairs:
                    return 0.0
                self._pairs.clear()  # the model misled: try once more down the gradient
        x, value, gradient = point
        step, change = x - self.x, gradient - self.gradient
        if self._large:
            yield
        product = float(step @ change)
        if product > 1e-14 * float(change @ change):
            self._pairs.append((step, change, 1.0 / product))
        fell = self.value - value
        self.x, self.value, self.gradient = x, value, gradient
        self.iterations += 1
        return fell

    def _direction(self) -> Work[Floats]:
        direction = -self.gradient
        if not self._pairs:
            return direction
        weights = []
        for step, change, inverse in reversed(self._pairs):
            weight = inverse * float(step @ direction)
            weights.append(weight)
            direction -= weight * change
            if self._large:
                yield
        step, change, inverse = self._pairs[-1]
        direction *= 1.0 / (inverse * float(change @ change))
        for (step, change, inverse), weight in zip(self._pairs, reversed(weights), strict=True):
            direction += (weight - inverse * float(change @ direction)) * step
            if self._large:
                yield
        return direction

    def _search(
        self, direction: Floats, slope: float, first: float
    ) -> Work[tuple[Floats, float, Floats] | None]:
        low, high, length = 0.0, np.inf, first
        best: tuple[Floats, float, Floats] | None = None
        for _ in range(30):
            x = self.x + length * direction
            if self._large:
                yield
            value, gradient = yield from self._function(x)
            if not value <= self.value + _DECREASE * length * slope:
                high = length
            elif float(gradient @ direction) < _CURVATURE * slope:
                low = length
                best = x, value, gradient
            else:
                return x, value, gradient
            length = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
        return best
