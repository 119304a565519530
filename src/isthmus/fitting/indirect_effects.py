"""Effects under hidden common causes: by mediators (front-door) and by instruments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import DataError
from isthmus.fitting.effects import Estimate
from isthmus.graphs.names import listed
from isthmus.networks.conditionals import regress
from isthmus.statistics import Moments, Schema

_LEFT = 1e-6
"""What at least is left of the leverage of a row; the residual of such a row is zero."""

RowsOf = Callable[[Sequence[str]], Floats]
"""Returns the columns with some names, as an array of shape (rows, names)."""


def front_door_effect(
    moments: Moments, cause: str, effect: str, mediators: tuple[str, ...], rows: RowsOf | None
) -> Estimate:
    """Return the product of the effects of the cause on mediators and of these on the effect.

    The standard error is that of the delta method. With rows it is valid for noise of any variance.

    Parameters
    ----------
    moments
        Moments of continuous variables.
    rows
        Returns columns; None if only moments are known.
    """
    names = (cause, *mediators, effect)
    scatter, k = _scatter(moments, names), len(mediators)
    inner = slice(1, 1 + k)
    first = scatter[inner, 0] / scatter[0, 0]
    second = _coefficients(scatter, moments.n, names)
    onward = second[1:]
    value = float(first @ onward)
    # Influence of the noise of the mediators, and of that of the effect.
    near = 1.0 / scatter[0, 0]
    far = np.linalg.solve(scatter[: k + 1, : k + 1], np.concatenate([[0.0], first]))
    degrees = float(moments.n - k - 2)
    if rows is not None:
        centred = rows(names) - moments.mean()[list(moments.schema.indices(names))]
        noise = (centred[:, inner] - np.outer(centred[:, 0], first)) @ onward
        rest = centred[:, -1] - centred[:, :-1] @ second
        # Residuals of rows with much leverage are too small (HC3).
        solved = np.linalg.solve(scatter[:-1, :-1], centred[:, :-1].T)
        leverage = centred[:, 0] ** 2 * near, np.einsum("ij,ji->i", centred[:, :-1], solved)
        noise /= np.maximum(1.0 - leverage[0] - 1.0 / moments.n, _LEFT)
        rest /= np.maximum(1.0 - leverage[1] - 1.0 / moments.n, _LEFT)
        influence = noise * centred[:, 0] * near + rest * (centred[:, :-1] @ far)
        error = float(np.sqrt(influence @ influence))
        return Estimate(value, error, degrees, challenged=False)
    within = scatter[inner, inner] - np.outer(first, scatter[0, inner])
    noises = float(onward @ within @ onward) / (moments.n - 2)
    rests = float(scatter[-1, -1] - second @ scatter[:-1, -1]) / degrees
    variance = noises * near + rests * float(far @ scatter[: k + 1, : k + 1] @ far)
    return Estimate(value, float(np.sqrt(variance)), degrees, robust=False, challenged=False)


def instrument_effect(
    moments: Moments,
    cause: str,
    effect: str,
    instruments: tuple[str, ...],
    given: tuple[str, ...],
    rows: RowsOf | None,
) -> Estimate:
    """Return the coefficient of the cause by two-stage least squares.

    Parameters
    ----------
    moments
        Moments of continuous variables.
    given
        Variables that both stages adjust for.
    rows
        Returns columns; None if only moments are known.
    """
    names = (*given, *instruments, cause, effect)
    scatter, g, k = _scatter(moments, names), len(given), len(given) + len(instruments)
    stage = _coefficients(scatter[:-1, :-1], moments.n, names[:-1])
    # The expected cause given the instruments, of which the adjusted variables explain a part.
    fitted = np.concatenate([stage, [0.0, 0.0]])
    if g:
        explained = np.linalg.solve(scatter[:g, :g], scatter[:g] @ fitted)
        fitted[:g] -= explained
    strength = float(fitted @ scatter @ fitted)
    value = float(fitted @ scatter[:, -1]) / strength
    structural = np.concatenate([np.zeros(k), [-value, 1.0]])  # effect - value * cause
    if g:
        structural[:g] -= np.linalg.solve(scatter[:g, :g], scatter[:g] @ structural)
    residual = np.concatenate([-stage, [1.0, 0.0]])
    degrees = float(moments.n - g - 2)
    noise = float(residual @ scatter @ residual) / (moments.n - k - 1)
    f = strength / len(instruments) / noise if noise > 0.0 else np.inf
    if rows is not None:
        centred = rows(names) - moments.mean()[list(moments.schema.indices(names))]
        influence = (centred @ fitted) * (centred @ structural) / strength
        error = float(np.sqrt(influence @ influence * moments.n / degrees))
        return Estimate(value, error, degrees, first_stage=f, challenged=False)
    variance = float(structural @ scatter @ structural) / degrees / strength
    return Estimate(
        value, float(np.sqrt(variance)), degrees, robust=False, first_stage=f, challenged=False
    )


def _scatter(moments: Moments, names: Sequence[str]) -> Floats:
    place = list(moments.schema.indices(names))
    if set(names) & set(moments.constants()):
        raise DataError(f"One of {list(names)} is constant: no effect to see.")
    scatter: Floats = moments.scatter()[np.ix_(place, place)]
    return scatter


def _coefficients(scatter: Floats, n: int, names: Sequence[str]) -> Floats:
    """Return the coefficients of the last variable on all others; raise if there are none."""
    if n < len(scatter) + 2:
        raise DataError(f"The effect needs at least {len(scatter) + 2} rows; there are {n}.")
    found = regress(scatter)
    if found.rank < len(scatter) - 1:
        raise DataError(
            f"{listed(names[:-1])} are linearly dependent: one of them follows exactly from the "
            "others, so their effects cannot be told apart. Leave one of them out."
        )
    return found.coefficients


def discrete_front_door(
    schema: Schema, rows: Floats, change: tuple[int, int], outcome: int | None
) -> Estimate:
    """Return the effect of a change of a discrete cause through discrete mediators.

    It is the sum over the mediators of the change of their probability, times the mean of the
    effect given them, standardised over the cause. The standard error is that of the influence
    function.

    Parameters
    ----------
    schema
        The variables: cause, effect, and mediators.
    rows
        Their columns, with levels as codes.
    change
        Codes of the two levels of the cause.
    outcome
        Code of the level of the effect whose probability changes; None for a continuous effect.
    """
    n, cause = len(rows), rows[:, 0].astype(np.intp)
    values = rows[:, 1] if outcome is None else (rows[:, 1] == outcome).astype(np.float64)
    _, inside = np.unique(rows[:, 2:], axis=0, return_inverse=True)
    inside = inside.ravel()
    shape = (int(inside.max()) + 1, len(schema[schema.names[0]].levels))
    cell = inside * shape[1] + cause
    count = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)
    total = np.bincount(cell, values, shape[0] * shape[1]).reshape(shape)
    own = count.sum(axis=0)
    seen = np.flatnonzero(own)
    if not own[list(change)].all() or not count[:, seen].all():
        raise DataError(
            f"Some levels of {list(schema.names[2:])} never occur with a level of "
            f"{schema.names[0]!r}, so the effect cannot be standardised. Merge rare levels."
        )
    mean = np.divide(total, count, out=np.zeros(shape), where=count > 0)
    share = own / n
    within = count / np.maximum(own, 1)
    standard = mean @ share  # of each combination of mediators
    averages = [float(within[:, code] @ standard) for code in change]
    moved = within[:, change[1]] - within[:, change[0]]
    value = averages[1] - averages[0]
    influence = (moved @ mean)[cause] - value
    influence += moved[inside] / within[inside, cause] * (values - mean[inside, cause])
    for code, average, sign in zip(change, averages, (-1.0, 1.0), strict=True):
        influence += sign * (cause == code) / share[code] * (standard[inside] - average)
    degrees = float(min(own[list(change)]) - 1)
    error = float(np.sqrt(influence @ influence / (n - 1) / n))
    largest = 1.0 if outcome is not None else np.inf
    both = averages[0], averages[1]
    return Estimate(value, error, max(degrees, 1.0), averages=both, largest=largest)
