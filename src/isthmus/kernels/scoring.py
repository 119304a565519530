"""Local scores of the compiled core: Gaussian, discrete, Python functions, foreign C functions.

A score gives ``score(child | parents)`` for many parent sets at a time: ``extensions`` adds each
of several candidates to a set, ``reductions`` removes each of its members. Variables are indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import EllipsisType
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools
from isthmus.errors import DataError
from isthmus.kernels import _native

ChildScores = _native.ChildScores
CurveScore = _native.CurveScore
DiscreteForm = _native.DiscreteForm
DiscreteScore = _native.DiscreteScore
ForeignScore = _native.ForeignScore
GaussianBlockScore = _native.GaussianBlockScore
GaussianScore = _native.GaussianScore
IncompleteScore = _native.IncompleteScore
LocalScore = _native.LocalScore
PenalisedScore = _native.PenalisedScore
PriorScore = _native.PriorScore
PythonScore = _native.PythonScore
ScoreFailed = _native.ScoreFailed

UNFINISHED = ...
"""What a Python score returns if there is more work to do."""

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


def gaussian_score(
    correlation: Floats,
    log_scale: Floats,
    *,
    constant: Floats,
    log_variance: Floats,
    log_determinant: Floats,
    tolerance: float,
    squares: Floats | None = None,
) -> LocalScore:
    """Score variables of one column each by their correlation matrix.

    The score of a child with k parents is ``constant[k] - log_variance[k] * log v -
    log_determinant[k] * log det - squares[child] * v``, where ``v`` is the variance of the child
    given its parents and ``det`` the determinant of the parents' covariance.

    Parameters
    ----------
    correlation, log_scale
        Correlation matrix and logarithms of the variances.
    constant, log_variance, log_determinant
        Weights for 0 to d parents.
    tolerance
        Share of its variance below which the rest of a column counts as determined by others.
    squares
        Weight of the variance itself, per child and in units of the child's variance; by default 0.
    """
    return GaussianScore(
        correlation=correlation,
        log_scale=log_scale,
        constant=constant,
        log_variance=log_variance,
        log_determinant=log_determinant,
        squares=np.zeros(len(correlation)) if squares is None else squares,
        tolerance=tolerance,
    )


def gaussian_score_of_part(
    whole: Floats,
    removed: Floats,
    spread: Floats,
    log_scale: Floats,
    *,
    constant: Floats,
    log_variance: Floats,
    log_determinant: Floats,
    tolerance: float,
) -> LocalScore:
    """Score variables by the correlations of some of the rows of a table.

    Parameters
    ----------
    whole
        Correlations of all rows, which many scores can share.
    removed
        Rows whose products are subtracted.
    spread
        Standard deviations of what is left, in units of those of all rows.
    log_scale, constant, log_variance, log_determinant, tolerance
        As for `gaussian_score`.
    """
    return GaussianScore(
        whole=whole,
        removed=removed,
        spread=spread,
        log_scale=log_scale,
        constant=constant,
        log_variance=log_variance,
        log_determinant=log_determinant,
        squares=np.zeros(len(spread)),
        tolerance=tolerance,
    )


def gaussian_block_score(
    correlation: Floats,
    starts: Integers,
    base: Floats,
    *,
    half_n: float,
    penalty: float,
    tolerance: float,
) -> LocalScore:
    """Score variables that are blocks of columns, such as the indicators of a discrete variable.

    The score of a child is ``base[child] - penalty * (columns of the parents) * (columns of the
    child) - half_n * log det cov(child | parents)``.

    Parameters
    ----------
    correlation
        Correlation matrix of all columns.
    starts
        Columns ``starts[v]`` to ``starts[v + 1]`` belong to variable ``v``.
    base
        Score of each variable before its parents are considered.
    half_n
        Half the number of rows.
    penalty
        Price of one regression coefficient.
    tolerance
        Share of its variance below which the rest of a column counts as determined by others.
    """
    return GaussianBlockScore(
        correlation=correlation,
        starts=starts,
        base=base,
        half_n=half_n,
        penalty=penalty,
        tolerance=tolerance,
    )


def curve_score(
    correlation: Floats,
    starts: Integers,
    own: Integers,
    degrees: Integers,
    base: Floats,
    *,
    coefficient_price: float,
    parent_prices: Floats,
    column_prices: Floats,
    allowed: Bools,
    half_n: float,
    tolerance: float,
) -> CurveScore:
    """Score regressions on lines or curves of the parents, with as many terms as pay.

    Parameters
    ----------
    correlation
        Correlation matrix of all columns.
    starts
        Columns ``starts[v]`` to ``starts[v + 1]`` belong to variable ``v``.
    own
        How many of them are the variable itself; functions of it follow.
    degrees
        How many functions each further degree has, ascending; shape (variables, degrees), padded
        by zeros.
    base
        Score of each variable before its parents are considered.
    coefficient_price
        Price of one coefficient in the regression of one column.
    parent_prices
        Prices of 0, 1, … d parents of one column each.
    column_prices
        Prices of 0, 1, … columns, without the part that depends on the number of candidates.
    allowed
        Whether the effect of a row on a column may be curved.
    half_n
        Half the number of rows.
    tolerance
        Share of its variance below which the rest of a column counts as determined by others.
    """
    return CurveScore(
        correlation=correlation,
        starts=starts,
        own=own,
        degrees=degrees,
        base=base,
        coefficient_price=coefficient_price,
        parent_prices=parent_prices,
        column_prices=column_prices,
        allowed=allowed,
        half_n=half_n,
        tolerance=tolerance,
    )


def discrete_score(
    codes: NDArray[np.uint8] | NDArray[np.uint16],
    weights: Integers | None,
    cardinalities: Integers,
    form: DiscreteForm,
    parameter: float = 0.0,
) -> LocalScore:
    """Score discrete variables by the counts of their levels.

    Parameters
    ----------
    codes, weights, cardinalities
        As for ``isthmus.kernels.counting.tally``.
    form, parameter
        ``LIKELIHOOD`` and the penalty per free parameter (half the logarithm of the number of
        rows: BIC; 1: AIC); ``BDEU`` and the equivalent sample size; ``K2`` and the pseudo-count of
        a cell; ``SUPPORT``, the number of combinations of levels in the data.
    """
    given = None if weights is None else np.ascontiguousarray(weights, np.int64)
    cards = np.ascontiguousarray(cardinalities, np.int64)
    try:
        return DiscreteScore(np.ascontiguousarray(codes), given, cards, form, parameter)
    except ValueError as error:
        raise DataError(str(error)) from None


def incomplete_score(
    codes: NDArray[np.uint16],
    weights: Integers | None,
    cardinalities: Integers,
    penalty: float,
    prices: Floats,
) -> LocalScore:
    """Score discrete variables by the rows that are complete for each set of variables.

    Parameters
    ----------
    codes, cardinalities
        One row of codes per variable, in which its cardinality stands for a missing value.
    weights
        How often each row occurs; None if every row counts once.
    penalty
        Price of a free parameter.
    prices
        Penalty of each edge; symmetric if equivalent graphs are to have the same score.
    """
    try:
        return IncompleteScore(
            np.ascontiguousarray(codes, np.uint16),
            None if weights is None else np.ascontiguousarray(weights, np.int64),
            np.ascontiguousarray(cardinalities, np.int64),
            penalty,
            np.ascontiguousarray(prices, np.float64),
        )
    except ValueError as error:
        raise DataError(str(error)) from None


def child_scores(scores: Sequence[LocalScore]) -> LocalScore:
    """Score each child by a score of its own; all are scores of the same variables."""
    return ChildScores(tuple(scores))


def penalised_score(score: LocalScore, prices: Floats, factor: float = 1.0) -> LocalScore:
    """Subtract ``prices[k]`` from ``factor`` times the score of each set of k parents."""
    return PenalisedScore(score, np.ascontiguousarray(prices, np.float64), factor)


def prior_score(score: LocalScore, weights: Floats) -> LocalScore:
    """Add ``weights[child, parent]`` for each parent."""
    return PriorScore(score, np.ascontiguousarray(weights, np.float64).ravel())


def python_score(
    size: int, function: Callable[[int, tuple[int, ...]], float | EllipsisType]
) -> LocalScore:
    """Score by a Python function of a child and its parents in ascending order.

    Each value is computed once and kept. A function that returns `UNFINISHED` is called again,
    at once or in the next slice of time.
    """
    return PythonScore(size, function)


def foreign_score(size: int, handle: tuple[int, int], keep: object = None) -> LocalScore:
    """Score by a C function that was compiled elsewhere.

    The function receives seven 64-bit integers and returns another, 0 for success:
    ``status = function(data, child, parents, k, candidates, m, out)``. ``parents`` is the address
    of k indices (int64), ``candidates`` that of m, and ``out`` that of m + 1 numbers (float64) to
    be written: ``score(child | parents)``, then ``score(child | parents + one candidate)``. It may
    be called from several threads at once. ``LocalScore.handle`` offers a score in the same form.

    Parameters
    ----------
    size
        Number of variables.
    handle
        Address of the function, and an integer that is passed to it as ``data``, usually the
        address of what it needs.
    keep
        An object that must live as long as the score.
    """
    return ForeignScore(size, *handle, keep)


def row_score(
    size: int, function: Callable[[int, tuple[int, ...], Integers], Floats]
) -> LocalScore:
    """Score by a Python function that is called once for all candidates of a parent set.

    ``function(child, parents, candidates)``, with parents in ascending order, returns the score of
    the parents, then those with each candidate. What it returns is not kept. An exception is kept
    as ``function.__self__.error`` if it is a method, and the search raises `ScoreFailed`.
    """
    import ctypes

    def called(*given: int) -> int:
        _, child, parents, k, candidates, m, out = given
        try:
            above = (ctypes.c_int64 * k).from_address(parents) if k else ()
            some = (ctypes.c_int64 * m).from_address(candidates) if m else ()
            values = function(child, tuple(sorted(above)), np.array(some, dtype=np.int64))
            np.ctypeslib.as_array((ctypes.c_double * (m + 1)).from_address(out))[:] = values
        except BaseException as error:  # noqa: BLE001 - no exception may cross a C frame
            owner = getattr(function, "__self__", None)
            if owner is not None:
                owner.error = error
            return 1
        return 0

    integer = ctypes.c_int64
    callback = ctypes.CFUNCTYPE(integer, *[integer] * 7)(called)
    address = ctypes.cast(callback, ctypes.c_void_p).value
    assert address is not None
    return foreign_score(size, (address, 0), callback)


def local(score: LocalScore, child: int, parents: Sequence[int]) -> float:
    """Score one child with its parents."""
    none = np.empty(0, np.int64)
    return float(score.extensions(child, np.asarray(parents, np.int64), none)[0])


def edge_flags(edges: Bools | None, size: int) -> Bools:
    """Return a contiguous matrix [from, to]; None means no edges."""
    if edges is None:
        return np.zeros((size, size), np.bool_)
    return np.ascontiguousarray(edges, dtype=np.bool_)


__all__ = [
    "CurveScore",
    "DiscreteForm",
    "LocalScore",
    "ScoreFailed",
    "child_scores",
    "curve_score",
    "discrete_score",
    "foreign_score",
    "gaussian_block_score",
    "gaussian_score",
    "gaussian_score_of_part",
    "incomplete_score",
    "local",
    "penalised_score",
    "prior_score",
    "python_score",
    "row_score",
]
