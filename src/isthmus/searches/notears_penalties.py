"""Penalties on edges in NOTEARS, and criteria that choose among graphs."""

from __future__ import annotations

import math
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, final

import numpy as np

from isthmus.arrays import Bools, Floats, Integers, Work
from isthmus.errors import MismatchError
from isthmus.kernels import _native
from isthmus.kernels.continuous import ShrinkingRegression, ascending
from isthmus.objectives.smooth import LikelihoodLoss, MomentsLoss
from isthmus.options import require_number


class Penalty(ABC):
    """A penalty on the weights of edges."""

    @abstractmethod
    def value(self, weights: Floats) -> Floats:
        """Cost of each weight."""

    @abstractmethod
    def slope(self, weights: Floats) -> Floats:
        """Derivative of the cost in the size of the weight; at zero, from the right."""


@final
@dataclass(frozen=True)
class L1(Penalty):
    """``weight * |w|``.

    Parameters
    ----------
    weight
        Penalty per unit of an edge weight. For least squares it depends on the units of the data.
    """

    weight: float = 0.1

    def __post_init__(self) -> None:
        require_number(self, "weight", least=0)

    def value(self, weights: Floats) -> Floats:
        costs: Floats = self.weight * np.abs(weights)
        return costs

    def slope(self, weights: Floats) -> Floats:
        return np.full_like(weights, self.weight)


@final
@dataclass(frozen=True, eq=False)
class L1ByParent(Penalty):
    """``weight * |w|`` with a weight of its own for each parent."""

    weights: Floats

    def value(self, weights: Floats) -> Floats:
        costs: Floats = self.weights[:, None] * np.abs(weights)
        return costs

    def slope(self, weights: Floats) -> Floats:
        return np.broadcast_to(self.weights[:, None], weights.shape)


@final
@dataclass(frozen=True)
class QuasiMCP(Penalty):
    """A concave penalty: every edge with a weight beyond ``width`` costs the same ``price``.

    Below ``width`` it is ``(2 price / width) (|w| - w² / (2 width))``. It does not shrink strong
    edges as ℓ1 does, and so does not take several weak edges for a strong one (arXiv 2410.06163).

    Parameters
    ----------
    price
        Cost of an edge in the unit of the loss: nats per row for a likelihood. With None, that of
        the extended BIC, ``(log(n) / 2 + log(d)) / n``.
    width
        Weight from which the penalty is constant, for standardised columns.
    """

    price: float | None = None
    width: float = 0.2

    def __post_init__(self) -> None:
        require_number(self, "price", least=0, optional=True)
        require_number(self, "width", above=0)

    def priced(self, rows: int | None, d: int) -> QuasiMCP:
        """Fill in the price."""
        if self.price is not None:
            return self
        if rows is None:
            raise MismatchError("The objective does not know its number of rows: give a price.")
        return QuasiMCP(RefitEBIC().price(rows, d), self.width)

    def value(self, weights: Floats) -> Floats:
        size = np.minimum(np.abs(weights), self.width)
        costs: Floats = self._first() * (size - size * size / (2.0 * self.width))
        return costs

    def slope(self, weights: Floats) -> Floats:
        slopes: Floats = self._first() * np.maximum(1.0 - np.abs(weights) / self.width, 0.0)
        return slopes

    def _first(self) -> float:
        if self.price is None:
            raise MismatchError("QuasiMCP has no price yet: give one, or bind it to an objective.")
        return 2.0 * self.price / self.width


@final
@dataclass(frozen=True)
class EdgePrice(Penalty):
    """``price`` for each edge, whatever its weight: what a quasi-MCP of no width is.

    Parameters
    ----------
    price
        Penalty of an edge in the unit of the loss.
    """

    price: float

    def value(self, weights: Floats) -> Floats:
        costs: Floats = np.where(weights != 0.0, self.price, 0.0)
        return costs

    def slope(self, weights: Floats) -> Floats:
        return np.zeros_like(weights)


class PenaltyCriterion(ABC):
    """Compares graphs whose weights are refitted by least squares; lower is better."""

    @abstractmethod
    def edges(self, weights: Floats, rows: int, d: int) -> float:
        """Cost in nats of the edges into one variable, which have these weights."""

    @abstractmethod
    def total(self, left: Floats, edges: float, count: int, rows: int) -> float:
        """Criterion of a graph in nats per row.

        Parameters
        ----------
        left
            Residual variance of each variable given its parents.
        edges
            Cost of all edges.
        count
            Number of edges.
        rows
            Number of rows.
        """


@final
@dataclass(frozen=True)
class RefitEBIC(PenaltyCriterion):
    """Extended BIC with a separate noise variance for each variable.

    The criterion is ``Σ_j log(v_j) / 2 + |edges| (log(n) / 2 + 2 gamma log(d)) / n`` nats per row,
    where ``v_j`` is the residual variance of j given its parents. It does not depend on units.

    Parameters
    ----------
    gamma
        Weight of the extra penalty. 0 is BIC; 0.5 limits the number of false edges if there are
        many variables or few rows.
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        require_number(self, "gamma", least=0)

    def price(self, rows: int, d: int) -> float:
        """Cost of an edge in nats per row."""
        return float((0.5 * np.log(rows) + 2.0 * self.gamma * np.log(max(d, 2))) / rows)

    def edges(self, weights: Floats, rows: int, d: int) -> float:
        return len(weights) * rows * self.price(rows, d)

    def total(self, left: Floats, edges: float, count: int, rows: int) -> float:
        return 0.5 * float(np.log(left).sum()) + edges / rows


@final
@dataclass(frozen=True)
class EqualNoiseEBIC(PenaltyCriterion):
    """Extended BIC for noise with equal variances, which is what least squares assumes.

    ``d/2 log(Σ_j v_j / d) + (Σ_edges c(w) + gamma log C(d(d-1)/2, |edges|)) / n`` with
    ``c(w) = log(nd)/2 - 2 log(min(|w|, 2 typical) / typical)``. All d n residuals estimate one
    variance, which is more precise for few rows than d variances. The binomial coefficient is the
    number of ways to choose the adjacent pairs (Chen and Chen 2008). The last term of c is that of
    a moment prior (Johnson and Rossell 2010): relevant edges do not have weights near zero, so weak
    edges need more evidence, also with many rows.

    Parameters
    ----------
    gamma
        Weight of the number of graphs.
    typical
        Weight at which an edge has the penalty of BIC; edges of up to twice this weight have a
        smaller penalty.
    """

    gamma: float = 1.0
    typical: float = 0.7

    def __post_init__(self) -> None:
        require_number(self, "gamma", least=0)
        require_number(self, "typical", above=0)

    def edges(self, weights: Floats, rows: int, d: int) -> float:
        strength = np.minimum(np.maximum(np.abs(weights) / self.typical, 1e-6), 2.0)
        return len(weights) * 0.5 * math.log(rows * d) - 2.0 * float(np.log(strength).sum())

    def total(self, left: Floats, edges: float, count: int, rows: int) -> float:
        d = len(left)
        if d == 0:
            return 0.0
        pairs = d * (d - 1) // 2
        graphs = math.lgamma(pairs + 1) - math.lgamma(count + 1) - math.lgamma(pairs - count + 1)
        return 0.5 * d * math.log(float(left.sum()) / d) + (edges + self.gamma * graphs) / rows

    def price(self, left: Floats, count: int, rows: int) -> EdgePrice:
        """Return the price of an edge of typical weight near a graph, in the unit of least squares.

        Logarithms lie below their tangents: where least squares with this price is lower than for
        the graph, the criterion is lower, too, but for the weights of the edges.

        Parameters
        ----------
        left, count, rows
            Residual variances, number of edges and number of rows, as in `total`.
        """
        d = len(left)
        pairs = d * (d - 1) // 2
        choice = math.log((pairs - count + 0.5) / (count + 0.5))
        nats = 0.5 * math.log(rows * d) + self.gamma * choice
        return EdgePrice(max(nats, 0.0) * float(left.mean()) / rows)


# --- A smooth measure of how far a weighted graph is from acyclic, with its gradient ------------
#
# It takes a square matrix of weights ``[from, to]`` and is zero exactly where the graph of the
# non-zero weights has no cycle, and positive elsewhere: a sum over the closed walks of the graph
# with the weights squared, in which a walk of length k counts 1 / k!. It therefore loses long
# cycles to rounding: one of 20 edges of weight 0.9 counts 1e-20. `central_path.log_determinant`,
# in which the walk counts 1 / k, does not, but is finite only where the spectral radius is small
# enough.


def exponential(weights: Floats) -> tuple[float, Floats]:
    """Return ``tr exp(W ∘ W) - d`` and its gradient (Zheng et al. 2018, arXiv 1803.01422)."""
    from scipy.linalg import expm

    power: Floats = expm(weights * weights)
    gradient: Floats = power.T * (2.0 * weights)
    return float(np.trace(power)) - len(weights), gradient


# --- Graphs cut out of weights by a threshold, which a criterion chooses ------------------------

_DETERMINED = 1e-10
"""Share of the variance below which a variable counts as determined by its parents."""
_SLICE = 0.02
"""Seconds per step of the regressions."""
_THRESHOLDS = 500
"""Number of thresholds compared in one step."""


@final
@dataclass(frozen=True, eq=False)
class Cut:
    """A graph cut out of weights: those of at least ``threshold`` and the required ones."""

    threshold: float
    criterion: float | None
    kept: Bools


def cut_at(weights: Floats, threshold: float, required: Bools) -> Cut:
    """Keep the weights of at least the threshold that are not zero."""
    kept = ((np.abs(weights) >= threshold) & (weights != 0.0)) | required
    return Cut(threshold, None, kept)


def judged(cut: Cut, moments: Floats, rows: int, by: PenaltyCriterion) -> Work[Cut]:
    """Add the criterion; None where a column has nearly as many parents as rows."""
    weights = np.where(cut.kept, 1.0, 0.0)
    same = yield from best_cut(weights, moments, rows, cut.kept, by)
    return Cut(cut.threshold, same.criterion, cut.kept)


def best_cut(
    weights: Floats, moments: Floats, rows: int, required: Bools, by: PenaltyCriterion
) -> Work[Cut]:
    """Choose the threshold that the criterion prefers.

    Each removed edge changes one column, so all thresholds together cost one update of a
    regression per edge. Columns with nearly as many parents as rows fit anything: no threshold
    that leaves one is considered.
    """
    kept = (weights != 0.0) | required
    sources, targets = np.nonzero(kept & ~required)
    yield
    rank = ascending(np.abs(weights[sources, targets]))
    sources, targets = sources[rank], targets[rank]
    yield
    removals = _by_variable(targets, len(kept))
    first = _first_trusted(kept, removals, max(rows - 2, 1))
    if first is None:
        return Cut(np.inf, None, required.copy())
    yield
    kept[sources[:first], targets[:first]] = False
    removed = [sources[own[own >= first]] for own in removals]
    left, edges = yield from _refits(kept, moments, removed, rows, by)
    best, best_at = np.inf, len(rank)
    stage = np.zeros(len(kept), np.int64)
    residual = np.array([column[0] for column in left])
    costs = np.array([column[0] for column in edges])
    count = int(kept.sum())
    for at in range(first, len(rank) + 1):
        total = by.total(residual, float(costs.sum()), count, rows)
        if total < best:
            best, best_at = total, at
        if at < len(rank):
            j = targets[at]
            stage[j] += 1
            residual[j], costs[j] = left[j][stage[j]], edges[j][stage[j]]
            count -= 1
        if at % _THRESHOLDS == 0:
            yield
    kept[sources[first:best_at], targets[first:best_at]] = False
    threshold = np.inf
    if best_at < len(rank):
        threshold = float(np.abs(weights[sources[best_at], targets[best_at]]))
    return Cut(threshold, best if np.isfinite(best) else None, kept)


def _by_variable(targets: Integers, d: int) -> list[Integers]:
    """Return for each variable the positions at which it is a target, in ascending order."""
    # NumPy sorts short integers much faster than long ones.
    order = np.argsort(targets.astype(np.min_scalar_type(d)), kind="stable")
    return np.split(order, np.cumsum(np.bincount(targets, minlength=d))[:-1])


def _first_trusted(kept: Bools, removals: list[Integers], most: int) -> int | None:
    """Return how many edges must go until each variable has fewer than ``most`` parents.

    ``removals`` says of each variable when it loses a parent. Returns None if some variable never
    has fewer.
    """
    first = 0
    counts = kept.sum(axis=0)
    for j in np.flatnonzero(counts >= most).tolist():
        surplus = int(counts[j]) - most + 1
        if surplus > len(removals[j]):
            return None
        first = max(first, int(removals[j][surplus - 1]) + 1)
    return first


def _refits(
    kept: Bools, moments: Floats, removed: list[Integers], rows: int, by: PenaltyCriterion
) -> Work[tuple[list[Floats], list[list[float]]]]:
    """Refit each variable, before and after each removal of one of its parents.

    ``removed`` are the parents to remove, of each variable. Returns for each variable the residual
    variances and the costs of its edges.
    """
    d = len(kept)
    moments = np.ascontiguousarray(moments)
    variances = np.diagonal(moments)
    left: list[Floats] = []
    edges: list[list[float]] = []
    for j in range(d):
        fits = ShrinkingRegression(moments, j, np.flatnonzero(kept[:, j]), removed[j], _DETERMINED)
        while not fits.step(_SLICE):
            yield
        left.append(fits.shares() * (variances[j] if variances[j] > 0.0 else 1.0))
        edges.append([by.edges(weights, rows, d) for weights in fits.weights()])
        yield
    return left, edges


def left_by(kept: Bools, moments: Floats) -> Floats:
    """Return the residual variance of each variable given its parents."""
    moments = np.ascontiguousarray(moments)
    shares = [
        _native.regression(moments, j, np.flatnonzero(kept[:, j]), _DETERMINED)[0]
        for j in range(len(kept))
    ]
    variances: Floats = np.array(shares) * np.diagonal(moments)
    return variances


# --- The penalties that NOTEARS tries, and the units in which they are measured -----------------

_PATH = (1.0, 0.5, 0.25, 0.125)
"""Default penalties, as shares of the largest gradient that noise alone reaches.

They are tried in turn until the criterion rises.
"""


def standardised(loss: LikelihoodLoss) -> tuple[LikelihoodLoss, Floats]:
    """Return the same problem for columns of variance one, and their standard deviations."""
    variance = np.diagonal(loss.matrix)
    spread = np.sqrt(np.where(variance > 0.0, variance, 1.0))
    matrix = loss.matrix / spread[:, None] / spread[None, :]
    np.fill_diagonal(matrix, 1.0)
    return LikelihoodLoss(loss.nodes, matrix, loss.rows), spread


def penalty_path(
    penalty: float | Penalty | None, loss: MomentsLoss, starts: int
) -> tuple[Penalty, ...]:
    """Return the penalties to try.

    Parameters
    ----------
    penalty
        The one that the user gave, if any.
    loss
        The loss that is penalised.
    starts
        How often a likelihood is solved under the same penalty.
    """
    d = len(loss.nodes)
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
        return (concave,) * starts
    if isinstance(penalty, QuasiMCP):
        raise MismatchError(
            "QuasiMCP has a price in nats, and least squares has the units of the data. "
            "Use it with LinearLikelihood, or give LeastSquares a number."
        )
    if penalty is not None:
        return (penalty,)
    if loss.rows is None:
        raise MismatchError("The objective does not know its number of rows: give a penalty.")
    noise = noise_variance(np.diagonal(loss.matrix))
    unit = noise * np.sqrt(np.log(max(d, 2)) / loss.rows)
    return tuple(L1(float(unit * share)) for share in _PATH)


def noise_variance(variances: Floats) -> float:
    """Return the smallest variance: an upper bound on that of the noise if it has one scale."""
    positive = variances[variances > 0.0]
    return float(positive.min()) if len(positive) else 1.0


TIE = 1e-9
"""In nats per row: smaller differences may be rounding error between equivalent graphs."""


@final
@dataclass(frozen=True, eq=False)
class NotearsCandidate:
    """A solution for one penalty, and the graph cut out of it."""

    penalty: Penalty
    weights: Floats
    cut: Cut
    objective: float
    residual: float

    def rank(self) -> tuple[float, float]:
        """Return the sort key: the criterion, then the objective."""
        return (np.inf if self.cut.criterion is None else self.cut.criterion, self.objective)

    def row(self) -> dict[str, object]:
        """Return the row of this candidate in the path table."""
        return {
            "penalty": self.penalty,
            "objective": self.objective,
            "kkt_residual": self.residual,
            "threshold": self.cut.threshold,
            "edges": int(self.cut.kept.sum()),
            "criterion": self.cut.criterion,
        }


def best_of(candidates: Sequence[NotearsCandidate]) -> NotearsCandidate:
    """Return the best candidate; among ties up to rounding, the first."""
    best = candidates[0]
    for one in candidates[1:]:
        (criterion, objective), (best_criterion, best_objective) = one.rank(), best.rank()
        # Objectives with different penalties cannot be compared.
        level = criterion <= best_criterion + TIE and one.penalty == best.penalty
        better = level and objective < best_objective - TIE
        if criterion < best_criterion - TIE or better:
            best = one
    return best


# --- A library call that cannot be cut into steps, in a thread of its own -----------------------

T = TypeVar("T")


class _AbandonedError(Exception):
    """Nobody waits for the call any more."""


@final
class _ThreadGate:
    """State shared by the caller and the thread, without a reference to the caller."""

    def __init__(self) -> None:
        self._wanted, self.finished = threading.Event(), threading.Event()
        self._abandoned = False

    def want(self) -> None:
        self._wanted.set()

    def rest(self) -> None:
        self._wanted.clear()

    def abandon(self) -> None:
        self._abandoned = True
        self._wanted.set()

    def check(self) -> None:
        """Pause the thread unless the caller waits for it."""
        self._wanted.wait()
        if self._abandoned:
            raise _AbandonedError


@final
class BackgroundCall(Generic[T]):
    """A call that works only while somebody waits for it.

    Parameters
    ----------
    call
        Function of one argument: a function that it must call often, which pauses the call while
        nobody waits, and ends it by an exception when this object is no longer used. It must not
        refer to this object.
    """

    def __init__(self, call: Callable[[Callable[[], None]], T]) -> None:
        self._baton = _ThreadGate()
        self._value: list[T] = []
        self._error: list[BaseException] = []
        # When the interpreter exits, a thread that waits is best left alone.
        weakref.finalize(self, self._baton.abandon).atexit = False
        threading.Thread(
            target=_work, args=(call, self._baton, self._value, self._error), daemon=True
        ).start()

    def wait(self, seconds: float) -> bool:
        """Wait for at most this long; return whether the call has returned."""
        self._baton.want()
        try:
            return self._baton.finished.wait(seconds)
        finally:
            self._baton.rest()

    def value(self) -> T:
        """Return the value of a call that has returned, or raise its exception."""
        if self._error:
            raise self._error[0]
        return self._value[0]


def _work(
    call: Callable[[Callable[[], None]], T],
    baton: _ThreadGate,
    value: list[T],
    error: list[BaseException],
) -> None:
    try:
        baton.check()
        value.append(call(baton.check))
    except _AbandonedError:
        return
    except BaseException as problem:  # noqa: BLE001 - raised again where the value is asked for
        error.append(problem)
    baton.finished.set()


# --- The criterion that chooses parents where each edge may have several coefficients -----------

_SATURATED = 3.0
"""A fit with fewer observations per coefficient is not trusted."""


@final
@dataclass(frozen=True)
class FamilyEBIC:
    """Extended BIC of a target and its parents, in nats.

    ``n' l + k log(n) / 2 + 2 gamma |parents| log(p)`` with l the mean loss of the refitted model
    in nats, k its degrees of freedom, p the number of possible parents (Chen and Chen 2008). For
    least squares each target has its own noise variance, and ``n' = n - k - 1`` replaces n, which
    keeps the rate of false edges constant for few observations. An edge must also have a minimum
    strength: no model holds exactly, and with many observations any two columns with an unmeasured
    common cause show evidence for an edge.

    Parameters
    ----------
    gamma
        Weight of the number of possible parents: 0 is BIC; 0.5 limits the number of false edges if
        there are many variables.
    strength
        Minimum standard deviation of the contribution of an edge to its target, in units of the
        noise of the target.
    """

    gamma: float = 0.5
    strength: float = 0.2

    def __post_init__(self) -> None:
        require_number(self, "gamma", least=0)
        require_number(self, "strength", least=0)

    def edges(self, freedom: float, parents: int, observations: int, possible: int) -> float:
        """Return the cost of the edges into one target.

        Parameters
        ----------
        freedom
            Degrees of freedom of the edges.
        parents
            Number of edges.
        observations
            Sample size.
        possible
            Number of possible parents.
        """
        choice = 2.0 * self.gamma * math.log(max(possible, 2))
        return 0.5 * freedom * math.log(observations) + parents * choice

    @staticmethod
    def trusts(freedom: float, observations: int) -> bool:
        """Return whether there are enough observations for this number of degrees of freedom."""
        return _SATURATED * freedom <= observations
