"""Solvers of the continuous searches: columns of weights from second moments.

All objects work in slices of time: ``step(seconds)`` returns whether the work is finished, raises
`KeyboardInterrupt` on Ctrl-C, and continues where it was when it is called again. With any length
of the slices the results are the same.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels import _native

Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


def _integers(values: Integers) -> Integers:
    # Numbers with a fraction are refused, not truncated.
    return np.asarray(values).astype(np.int64, casting="safe", copy=False)


@final
class BarrierSweeps:
    """Weights under a barrier ``-t log det(radius I - W ∘ W)``, one column after the other.

    A column is set to the exact minimum over its weights, all others held fixed. The weights start
    at zero. The penalties, the barrier weight t and the turns of the columns are given per sweep.

    Parameters
    ----------
    moments
        Second moments of the variables, S.
    allowed
        Edges that may be there, [from, to].
    radius
        Upper bound on the spectral radius of the squared weights.
    """

    def __init__(self, moments: Floats, *, allowed: Flags, radius: float = 1.0) -> None:
        self._native = _native.BarrierSweeps(
            moments, open=np.ascontiguousarray(allowed.T), radius=radius
        )

    def begin(
        self,
        turns: Integers,
        *,
        scale: Floats,
        penalties: Floats,
        barrier: float,
        tolerance: float,
    ) -> None:
        """Begin a sweep.

        Parameters
        ----------
        turns
            Columns to solve, in this order.
        scale
            Factor of the squared loss of each column.
        penalties
            Cost of one unit of the absolute weight of each edge, [from, to].
        barrier
            Weight t of the barrier.
        tolerance
            Largest slope at which a column counts as solved.
        """
        self._native.begin(
            _integers(turns),
            scale=scale,
            penalty=np.ascontiguousarray(penalties.T),
            barrier=barrier,
            tolerance=tolerance,
        )

    def step(self, seconds: float = 0.01) -> bool:
        """Work for at most this long; return whether the sweep is finished."""
        return self._native.step(seconds)

    @property
    def done(self) -> int:
        """Number of columns solved in this sweep."""
        return self._native.done

    @property
    def moved(self) -> float:
        """Largest change of a weight in this sweep."""
        return self._native.moved

    def weights(self) -> Floats:
        """Return the weights, [from, to]."""
        return self._native.incoming().T

    def inverse_error(self) -> float:
        """Return how far the inverse that is kept of ``radius I - W ∘ W`` is from exact.

        It is updated with each column, and rounding errors add up over the sweeps.
        """
        return self._native.inverse_error()

    def set_inverse(self, inverse: Floats) -> None:
        """Replace the inverse of ``radius I - W ∘ W``; only between two sweeps."""
        self._native.set_inverse(inverse)


def ascending(values: Floats) -> Integers:
    """Return the indices that sort values in ascending order; of equal ones the first comes first.

    NumPy's stable sort takes several times as long as its default, and equal values are rare.
    """
    rank = np.argsort(values)
    ordered = values[rank]
    if (ordered[1:] == ordered[:-1]).any():
        rank = np.argsort(values, kind="stable")
    return rank


def order_along(weights: Floats, required: Flags) -> Integers:
    """Order variables along the strongest edges that close no cycle, required ones first.

    Both matrices are [from, to]. Of equally strong edges the first in the matrix comes first.
    """
    sources, targets = np.nonzero(weights)
    rank = ascending(-np.abs(weights[sources, targets]))
    _, order = _native.acyclic_edges(
        required=required, sources=sources[rank], targets=targets[rank]
    )
    return np.array(order, dtype=np.int64)


def acyclic_part(weights: Floats, required: Flags, least: float) -> Flags:
    """Take edges from the heaviest down to ``least``, except where one would close a cycle.

    Both matrices are [from, to]. Required edges come first; of equally heavy edges the first in the
    matrix does.
    """
    sources, targets = np.nonzero((weights > least) & ~required)
    rank = ascending(-weights[sources, targets])
    sources, targets = sources[rank], targets[rank]
    kept, _ = _native.acyclic_edges(required=required, sources=sources, targets=targets)
    graph = required.copy()
    chosen = np.array(kept, dtype=np.bool_)
    graph[sources[chosen], targets[chosen]] = True
    return graph


@final
class ShrinkingRegression:
    """Regressions of one variable on its parents, which are removed one after the other.

    Parameters
    ----------
    moments
        Second moments of the variables, contiguous; they are not copied.
    child
        The variable explained.
    parents
        Parents at first.
    removals
        Parents to remove, in this order.
    tolerance
        As for ``_native.regression``: a parent of whose variance those before it leave no more
        than this has the weight zero.
    """

    def __init__(
        self,
        moments: Floats,
        child: int,
        parents: Integers,
        removals: Integers,
        tolerance: float,
    ) -> None:
        self._native = _native.ShrinkingRegression(
            moments, child, _integers(parents), _integers(removals), tolerance
        )
        self._count = len(parents)

    def step(self, seconds: float = 0.01) -> bool:
        """Work for at most this long; return whether all removals are done."""
        return self._native.step(seconds)

    def shares(self) -> Floats:
        """Return the share of the variance that the parents leave, before and after removals."""
        return self._native.shares()

    def weights(self) -> list[Floats]:
        """Return the weights of the parents that are left, before and after each removal.

        The parents keep the order in which they were given.
        """
        weights = self._native.weights()
        lengths = self._count - np.arange(len(self._native.shares()))
        ends = np.cumsum(lengths).tolist()
        return [weights[start:end] for start, end in pairwise([0, *ends])]


@final
class OrderedLassos:
    """A lasso for each column along an order of the variables, which then move in the order.

    Column j minimises ``scale[j] / 2 (w'Sw - 2 S_j'w) + Σ penalties[i, j] |w_i|`` over the weights
    from its predecessors. A variable moves to where the sum of all minima is least.

    Parameters
    ----------
    moments
        Second moments of the variables, S.
    scale
        Factor of the squared loss of each column.
    penalties
        Cost of one unit of the absolute weight of each edge, [from, to].
    allowed
        Edges that may be there, [from, to].
    required
        Edges whose ends must keep their order, [from, to].
    tolerance
        Largest slope at which a column counts as solved.
    """

    def __init__(
        self,
        moments: Floats,
        *,
        scale: Floats,
        penalties: Floats,
        allowed: Flags,
        required: Flags,
        tolerance: float,
    ) -> None:
        self._native = _native.OrderedLassos(
            moments,
            scale=scale,
            penalty=np.ascontiguousarray(penalties.T),
            open=np.ascontiguousarray(allowed.T),
            required=np.ascontiguousarray(required.T),
            tolerance=tolerance,
        )

    def start(self, order: Integers, weights: Floats) -> None:
        """Start from an order and any weights, [from, to]; `step` then solves all columns."""
        self._native.start(_integers(order), np.ascontiguousarray(weights.T))

    def sweep(self, turns: Integers, *, least: float, worth: float) -> None:
        """Prepare to move variables in this order; `step` then moves them.

        Parameters
        ----------
        turns
            Variables, in the order in which they move.
        least
            A variable moves if the sum of minima falls by more than this.
        worth
            Smallest gain in one column that is searched for; losses of less than a tenth of it are
            estimated. With 0 all columns are solved exactly.
        """
        self._native.sweep(_integers(turns), least=least, worth=worth)

    def step(self, seconds: float = 0.01) -> bool:
        """Work for at most this long; return whether all columns are solved and turns taken."""
        return self._native.step(seconds)

    @property
    def settled(self) -> int:
        """Number of columns solved since the start."""
        return self._native.settled

    @property
    def moved(self) -> int:
        """Number of turns taken in this sweep."""
        return self._native.moved

    @property
    def fell(self) -> float:
        """By how much the sum of minima fell in this sweep."""
        return self._native.fell

    def stirred(self) -> Integers:
        """Return the variables next to one that moved, if their own turn came before.

        Next to each other are variables with an edge that explains more than ``worth``, before or
        after the move.
        """
        return np.array(self._native.stirred(), dtype=np.int64)

    def order(self) -> Integers:
        """Return the order reached. A move that is not finished leaves it as it was."""
        return np.array(self._native.order(), dtype=np.int64)

    def weights(self) -> Floats:
        """Return the weights, [from, to]; acyclic once all columns are solved."""
        return self._native.incoming().T

    def values(self) -> Floats:
        """Return the minimum of each column, less ``scale[j] S_jj / 2``."""
        return self._native.values()
