"""NOTEARS for linear models: continuous optimisation over weights, then exact moves.

Zheng, Aragam, Ravikumar and Xing 2018 (arXiv 1803.01422) turn acyclicity into a smooth constraint.
Here the relaxed problem gives a first order of the variables; along an order the problem is a
lasso for each variable, solved exactly; and variables then move within the order as long as the
objective falls (in the spirit of arXiv 2010.09133). So the answer is always acyclic, and a local
minimum of the problem itself and not only of a relaxation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.graphs.adjacency import transitive_closure
from isthmus.objectives import SECOND_MOMENTS
from isthmus.objectives.local import CompiledLocalScore
from isthmus.objectives.smooth import LikelihoodLoss, MomentsLoss, SmoothLoss
from isthmus.results.details import WeightDetails
from isthmus.searches.base import Accepts, Run, Search, SearchResult
from isthmus.searches.continuous.notears_candidates import TIE, Candidate, best_of
from isthmus.searches.continuous.notears_penalties import (
    L1,
    Criterion,
    Cut,
    EdgePrice,
    EqualNoiseEBIC,
    L1ByParent,
    Penalty,
    QuasiMCP,
    RefitEBIC,
    best_cut,
    cut_at,
    judged,
    left_by,
)
from isthmus.searches.continuous.refinement import (
    COARSE,
    Refinement,
    kkt_residual,
    lasso_along,
    shaken_order,
    strongest_order,
    subsets_along,
)
from isthmus.searches.continuous.relaxation import Acyclicity, LogDet, Task
from isthmus.types import Floats, Integers

_PATH = (1.0, 0.5, 0.25, 0.125)
"""Penalties where none is given, in units of what noise alone would reach.

They are tried one after the other until the criterion rises.
"""
_MANY = 50
"""Up to so many variables all penalties are solved for in full, and orders are shaken."""
_SHARPENED = 100
"""Up to so many variables the answer is sharpened."""
_SHAKEN = 4
_FRESH = 4
"""Every so many starts under a likelihood the order is a random one."""
_ROUNDS = 3
_EVIDENCE = 10.0
"""By so many nats a sharper graph must be better: where little is known, ℓ1 errs less."""


@final
@dataclass(frozen=True)
class Notears(Search[SmoothLoss]):
    """Learn a weighted graph by continuous optimisation.

    With :class:`~isthmus.LeastSquares` the loss reads the variances of the columns: good where all
    noise has the same scale, misleading where scales are a matter of units. With
    :class:`~isthmus.scores.LinearLikelihood` it does not.

    Parameters
    ----------
    penalty
        What edges cost: a number for :class:`L1` of that weight (least squares), a
        :class:`QuasiMCP` (likelihood), or None: then ℓ1 weights along a path are tried, the
        criterion chooses, and variables move on while the criterion falls (up to a hundred
        variables); for a likelihood it is ``QuasiMCP()``.
    threshold
        Weights below are dropped; None lets the criterion choose.
    acyclicity
        How cycles are driven out of the relaxed problem.
    criterion
        Chooses among penalties and thresholds. With None it is :class:`EqualNoiseEBIC` for least
        squares and :class:`RefitEBIC`, which does not see units, for a likelihood.
    refine
        Whether variables then move in the order while the objective falls.
    starts
        How often the moves start anew under a likelihood, which has many more local minima than
        least squares has: first from the order of the relaxed solution, then from the best order
        so far with a tenth of the variables put elsewhere, and every fourth time with all of them.
    """

    penalty: float | Penalty | None = None
    threshold: float | None = None
    acyclicity: Acyclicity = LogDet()
    criterion: Criterion | None = None
    refine: bool = True
    starts: int = 20
    accepts: ClassVar[Accepts] = (SECOND_MOMENTS,)

    def begin(
        self, objective: SmoothLoss, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[SearchResult]:
        """Start a run."""
        if self.threshold is not None and not self.threshold >= 0.0:
            raise MismatchError(f"A threshold must not be negative; {self.threshold} was given.")
        return _NotearsRun(self, SECOND_MOMENTS.require(objective), knowledge, rng)


@final
class _NotearsRun(Run[SearchResult]):
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
            loss, self._unit = _standardised(loss)
        closure = transitive_closure(knowledge.required)
        self._task = Task(loss, ~knowledge.forbidden & ~closure.T, knowledge.required, rng)
        self._penalties = _path(options, loss)
        if options.threshold is None and loss.rows is None:
            raise MismatchError(
                "The objective does not know its number of rows, so no criterion can choose: "
                "give a penalty and a threshold."
            )
        self._follows = len(set(self._penalties)) > 1
        self._text, self._done = "start", 0.0
        self._raw: Floats = np.zeros((len(loss.nodes), len(loss.nodes)))
        self._kept: list[Candidate] = []
        self._refining: Refinement | None = None
        self._best_order = np.empty(0, np.int64)
        self._score: CompiledLocalScore | None = None
        self._work = self._stages()

    def step(self) -> bool:
        """Go on to the next place where the run can be stopped."""
        return next(self._work, None) is None

    def _stages(self) -> Iterator[bool]:
        many = len(self._penalties)
        refined: Refinement | None = None
        k: int | None = 0
        while k is not None:
            penalty = self._penalties[k]
            if refined is None:
                yield from self._relax(penalty)
                order = strongest_order(self._raw, self._task.required)
            else:
                order = self._order(refined)
            surely = 2 if len(self._unit) <= COARSE else 1
            if k >= surely and self._follows and not self._matters(penalty, order):
                break
            refined = self._refining = self._along(penalty, order, refined)
            while not refined.step():
                self._text = f"problem {len(self._kept) + 1}: {refined.describe()}"
                self._done = (len(self._kept) + 0.5) / many
                yield True
            self._kept.append(self._candidate(penalty, refined))
            self._raw = refined.weights()
            k = self._next(k)
            yield True
        yield from self._sharpen()

    def _along(self, penalty: Penalty, order: Integers, before: Refinement | None) -> Refinement:
        refine = self._options.refine
        if isinstance(penalty, L1):
            return lasso_along(self._task, penalty, order, self._raw, refine=refine)
        if self._score is None:
            flat = float(penalty.value(np.full(1, np.inf))[0])
            self._score = self._task.loss.subset_score(flat)
        return subsets_along(self._task, self._score, order, before, refine=refine)

    def _sharpen(self) -> Iterator[bool]:
        """Go from the best graph to better ones by the criterion itself.

        What ℓ1 shrinks it also confuses: where rows are few, several weak edges may stand for a
        strong one. Near a graph the criterion is least squares with a price for each edge.
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
            order = strongest_order(np.where(kept, best.weights, 0.0), self._task.required)
            refined: Refinement | None = None
            for start in range(1 + _SHAKEN if d <= _MANY else 1):
                if start > 0:
                    order = shaken_order(self._best_order, self._task.required, self._task.rng)
                refined = subsets_along(self._task, score, order, refined, refine=True)
                while not refined.step():
                    self._text = f"sharper: {refined.describe()}"
                    yield True
                one = self._candidate(price, refined)
                # With more than a parent for three rows a fit anew is not to be trusted.
                trusted = 3 * int(one.cut.kept.sum(axis=0).max()) <= loss.rows
                if trusted and one.rank()[0] < clearly:
                    self._kept.append(one)
                if start == 0 or best_of(self._kept) is one:
                    self._best_order = refined.order()
            if best_of(self._kept) is best:
                return

    def _matters(self, penalty: Penalty, order: Integers) -> bool:
        """Look whether it is worth while to solve for a smaller penalty.

        Where it does not change the graph along the order at hand, it seldom does so after moves.
        For many variables these take most of the time.
        """
        if len(order) <= _MANY:
            return True
        along = lasso_along(self._task, penalty, order, self._raw, refine=False)
        while not along.step():
            pass
        kept = self._cut(along.weights(), chosen=True).kept
        return not np.array_equal(kept, self._kept[-1].cut.kept)

    def _order(self, last: Refinement) -> Integers:
        """Give the order to go on from.

        What was found for one ℓ1 weight is a good start for the next. A likelihood has many local
        minima close to each other: a better one is found sooner from near the best than from afar.
        But not always, so some orders are random.
        """
        if self._follows:
            return last.order()
        if best_of(self._kept) is self._kept[-1]:
            self._best_order = last.order()
        share = 1.0 if len(self._kept) % _FRESH == 0 else 0.1
        return shaken_order(self._best_order, self._task.required, self._task.rng, share)

    def _next(self, k: int) -> int | None:
        """Give the next penalty: the next start, or the next on the path if that seems to help."""
        if k + 1 == len(self._penalties):
            return None
        if not self._follows or k == 0:
            return k + 1
        return k + 1 if self._kept[-1].rank()[0] <= self._kept[-2].rank()[0] + TIE else None

    def _relax(self, penalty: Penalty) -> Iterator[bool]:
        if (
            isinstance(penalty, L1)
            and len(self._unit) > COARSE
            and self._task.loss.rows is not None
        ):
            penalty = self._by_spread(self._task.loss.rows)
        relaxation = self._options.acyclicity.begin(self._task, penalty)
        while not relaxation.step():
            self._text, self._raw = relaxation.describe(), relaxation.weights()
            yield True
        self._raw = relaxation.weights()

    def _by_spread(self, rows: int) -> Penalty:
        """Give what edges cost while an order of many variables is looked for.

        Noise alone reaches slopes in proportion to the spread of the parent: under one weight for
        all parents the columns fill with weights of no meaning. Of the relaxed solution only the
        order is kept, so its penalty need not be that of the problem.
        """
        variances = np.diagonal(self._task.loss.matrix)
        weight = 2.0 * np.sqrt(_noise(variances) * np.log(len(variances)) / rows)
        return L1ByParent(weight * np.sqrt(variances))

    def _candidate(self, penalty: Penalty, refined: Refinement) -> Candidate:
        task, weights = self._task, refined.weights()
        return Candidate(
            penalty,
            weights,
            self._cut(weights, chosen=isinstance(penalty, L1 | EdgePrice)),
            task.objective(penalty, weights),
            kkt_residual(task, penalty, weights),
        )

    def _cut(self, weights: Floats, *, chosen: bool) -> Cut:
        required, loss = self._task.required, self._task.loss
        if self._options.threshold is not None:
            cut = cut_at(weights * self._units(), self._options.threshold, required)
            if loss.rows is None:
                return cut
            return judged(cut, loss.matrix, loss.rows, self._criterion)
        assert loss.rows is not None
        if not chosen:
            return cut_at(weights, 0.0, required)
        return best_cut(weights, loss.matrix, loss.rows, required, self._criterion)

    def _units(self) -> Floats:
        """Factors from the weights of standardised columns to those of the data."""
        found: Floats = self._unit[None, :] / self._unit[:, None]
        return found

    def best(self) -> SearchResult:
        """Return the graph the criterion likes best; before there is one, what the weights say."""
        if self._kept:
            best = best_of(self._kept)
        elif self._refining is not None and self._refining.settled:
            best = self._candidate(self._penalties[0], self._refining)
        else:
            task, penalty = self._task, self._penalties[0]
            order = strongest_order(self._raw, task.required)
            place = np.argsort(order)
            weights = np.where(place[:, None] < place[None, :], self._raw, 0.0)
            cut = cut_at(weights, self._options.threshold or 0.3, task.required)
            value = task.objective(penalty, weights)
            best = Candidate(penalty, weights, cut, value, kkt_residual(task, penalty, weights))
        kept = best.cut.kept
        parents = tuple(tuple(np.flatnonzero(kept[:, j]).tolist()) for j in range(len(kept)))
        return SearchResult(parents, best.objective, self._details(best))

    def _details(self, best: Candidate) -> WeightDetails:
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

    def describe(self) -> tuple[str, float, float | None]:
        """Say where the run stands."""
        best = min((one.objective for one in self._kept), default=np.inf)
        return self._text, best, self._done

    def conclusion(self) -> str:
        """Say what the end means."""
        if not self._options.refine:
            return "the weights are at a minimum along the order of the relaxed solution."
        if len(self._unit) > COARSE:
            return "no variable promises enough by a move in the order."
        return "no variable can be moved in the order so that the objective falls."


def _standardised(loss: LikelihoodLoss) -> tuple[LikelihoodLoss, Floats]:
    """Give the same problem for columns of variance one, and their standard deviations."""
    variance = np.diagonal(loss.matrix)
    spread = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    matrix = loss.matrix / spread[:, None] / spread[None, :]
    np.fill_diagonal(matrix, 1.0)
    return LikelihoodLoss(loss.nodes, matrix, loss.rows), spread


def _path(options: Notears, loss: MomentsLoss) -> tuple[Penalty, ...]:
    """Give the penalties to try."""
    penalty, d = options.penalty, len(loss.nodes)
    if isinstance(penalty, int | float):
        penalty = L1(float(penalty))
    if isinstance(loss, LikelihoodLoss):
        if isinstance(penalty, L1):
            raise MismatchError(
                "An ℓ1 penalty shrinks strong weights, and a likelihood then prefers other graphs. "
                "Use QuasiMCP with LinearLikelihood, or LeastSquares with a number."
            )
        concave = QuasiMCP() if penalty is None else penalty
        if isinstance(concave, QuasiMCP):
            concave = concave.priced(loss.rows, d)
        return (concave,) * (max(options.starts, 1) if options.refine else 1)
    if isinstance(penalty, QuasiMCP):
        raise MismatchError(
            "QuasiMCP has a price in nats, and least squares has the units of the data. "
            "Use it with LinearLikelihood, or give LeastSquares a number."
        )
    if penalty is not None:
        return (penalty,)
    if loss.rows is None:
        raise MismatchError("The objective does not know its number of rows: give a penalty.")
    noise = _noise(np.diagonal(loss.matrix))
    unit = noise * np.sqrt(np.log(max(d, 2)) / loss.rows)
    return tuple(L1(float(unit * share)) for share in _PATH)


def _noise(variances: Floats) -> float:
    """Give the smallest variance: if all noise has one scale it bounds that of the noise."""
    positive = variances[variances > 0.0]
    return float(positive.min()) if len(positive) else 1.0
