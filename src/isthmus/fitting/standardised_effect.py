"""Effects of discrete causes by standardisation over the variables to adjust for.

Outcomes under both levels of the cause are predicted for every row and averaged, and corrected by
the weighted residuals of the rows that have these levels (augmented inverse probability weighting,
Robins et al. 1994): the estimate is right if the model of the outcome or that of the cause is.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.fitting.logit import fit_logit
from isthmus.fitting.total_effect import adjusted_effect
from isthmus.plurals import counted
from isthmus.statistics import Kind, Moments, Schema
from isthmus.types import Bools, Floats

_FEWEST = 5
"""Rows of each level of the cause that every combination of discrete variables must have for a mean
of its own; with fewer, regressions without interactions are used
(`benchmarks/results/effects-discrete.md`)."""
_PER_SLOPE = 4
"""Rows per coefficient that a level needs for a regression of its own."""
_PRIOR = 1.0
"""Weight of the prior of a probability, in rows, as in `Solution.fit`."""
_CLOSEST = 0.01
"""Smallest probability of a level of the cause: rows with less would count a hundredfold."""


@final
class _Variables(NamedTuple):
    """The variables of an effect: values or codes, and the number of levels (0: continuous)."""

    cause: NDArray[np.intp]
    levels: int
    effect: Floats
    given: Floats
    sizes: tuple[int, ...]


Estimate = tuple[float, float, float, bool, tuple[float, float] | None, float]
"""Value, standard error, degrees of freedom, robustness, averages of both levels of the cause, and
partial correlation of cause and effect."""


def standardised_effect(
    schema: Schema,
    rows: Floats,
    change: tuple[int, int],
    outcome: int | None,
) -> Estimate:
    """Return the effect of a change of a discrete cause, with its standard error.

    The standard error is that of the influence function, valid for noise of any variance.

    Parameters
    ----------
    schema
        The variables: cause, effect, and those to adjust for.
    rows
        Their columns, with levels as codes.
    change
        Codes of the two levels of the cause that are compared.
    outcome
        Code of the level of the effect whose probability changes; None for a continuous effect.
    """
    cause, effect, *given = schema.names
    sizes = tuple(
        len(schema[v].levels) if schema[v].kind is Kind.DISCRETE else 0 for v in schema.names
    )
    own = rows[:, 0].astype(np.intp)
    values = rows[:, 1] if outcome is None else (rows[:, 1] == outcome).astype(np.float64)
    data = _Variables(own, sizes[0], values, rows[:, 2:], sizes[2:])
    needed = 3 + sum(max(size - 1, 1) for size in data.sizes)
    for code in change:
        number = int((own == code).sum())
        if number < needed:
            raise DataError(
                f"Only {counted(number, 'row')} have {cause} = {schema[cause].levels[code]!r}; at "
                f"least {needed} are needed to adjust the effect on {effect!r} for {given}."
            )
    place = _strata(data)
    if _fewest(data, change, place) < _FEWEST:
        if outcome is not None and 0 not in data.sizes:
            return _smoothed(data, change, place)
        return _regressed(data, change, binary=outcome is not None)
    if 0 not in data.sizes:
        return _stratified(data, change, place, binary=outcome is not None)
    # One variable for all discrete ones, so that the regressions have all of their interactions.
    numbers = [j for j, size in enumerate(data.sizes) if not size]
    merged = np.column_stack([place, data.given[:, numbers]])
    data = data._replace(given=merged, sizes=(int(place.max()) + 1, *[0] * len(numbers)))
    return _regressed(data, change, binary=outcome is not None)


def _strata(data: _Variables) -> NDArray[np.intp]:
    """Return the combination of discrete variables of each row."""
    place = np.zeros(len(data.cause), np.intp)
    for j in (j for j, size in enumerate(data.sizes) if size):
        place = place * data.sizes[j] + data.given[:, j].astype(np.intp)
    return np.unique(place, return_inverse=True)[1].ravel()


def _fewest(data: _Variables, change: tuple[int, int], place: NDArray[np.intp]) -> int:
    """Return the smallest number of rows of a combination with one of the levels of the cause."""
    cells = int(place.max()) + 1
    return min(int(np.bincount(place[data.cause == c], minlength=cells).min()) for c in change)


def _stratified(
    data: _Variables, change: tuple[int, int], place: NDArray[np.intp], *, binary: bool
) -> Estimate:
    """Average the differences of means within combinations, weighted by their numbers of rows."""
    n, cells = len(place), int(place.max()) + 1
    share = np.bincount(place, minlength=cells) / n
    means, variances, degrees = [], [], []
    for code in change:
        rows = data.cause == code
        count = np.bincount(place[rows], minlength=cells)
        total = np.bincount(place[rows], data.effect[rows], cells)
        mean = total / count
        if binary:
            # Agresti and Caffo (2000): a share of zero or one has a variance, too.
            smooth = (total + 1.0) / (count + 2.0)
            variance = smooth * (1.0 - smooth)
        else:
            away = (data.effect[rows] - mean[place[rows]]) ** 2
            variance = np.bincount(place[rows], away, cells) / (count - 1)
        means.append(mean)
        variances.append(variance / count)
        degrees.append(count - 1)
    difference = means[1] - means[0]
    value = float(share @ difference)
    # Variance within combinations, and of their shares.
    within = share**2 * np.array(variances)
    between = float(share @ (difference - value) ** 2) / n
    spread = float(within.sum()) + between
    # Welch and Satterthwaite: few degrees of freedom if the error comes from few rows.
    terms = float((within**2 / np.array(degrees)).sum()) + between**2 / max(n - 1, 1)
    freedom = spread**2 / terms if terms > 0.0 else float(n - 2 * cells)
    averages = (float(share @ means[0]), float(share @ means[1]))
    return value, float(np.sqrt(spread)), freedom, True, averages, np.nan


def _smoothed(data: _Variables, change: tuple[int, int], place: NDArray[np.intp]) -> Estimate:
    """Average posterior means of probabilities within combinations, some of which have few rows.

    The prior of a probability is worth `_PRIOR` rows and has the mean of a logistic regression
    without interactions, whose own uncertainty is added: combinations without rows are as uncertain
    as their prior.
    """
    n, cells = len(place), int(place.max()) + 1
    share = np.bincount(place, minlength=cells) / n
    first = np.unique(place, return_index=True)[1]
    design = np.column_stack([np.ones(cells), _dummies(data.given[first], data.sizes)])
    means, parts = [], []  # parts: variances and their degrees of freedom
    for code in change:
        rows = data.cause == code
        count = np.bincount(place[rows], minlength=cells)
        total = np.bincount(place[rows], data.effect[rows], cells)
        prior = _shares(data.effect.astype(np.intp), 2, data, rows)[first, 1]
        mean = (total + _PRIOR * prior) / (count + _PRIOR)
        means.append(mean)
        smooth = (total + 1.0) / (count + 2.0)  # as in `_stratified`
        within = share**2 * smooth * (1.0 - smooth) / (count + _PRIOR + 1.0)
        parts.append((within, count + _PRIOR))
        information = (design * (count * prior * (1.0 - prior))[:, None]).T @ design
        information += 0.25 * np.eye(design.shape[1])  # of one row per coefficient
        weight = design.T @ (share * _PRIOR / (count + _PRIOR) * prior * (1.0 - prior))
        doubt = np.array([weight @ np.linalg.solve(information, weight)])
        parts.append((doubt, np.array([max(float(rows.sum() - len(weight)), 1.0)])))
    difference = means[1] - means[0]
    value = float(share @ difference)
    parts.append((np.array([share @ (difference - value) ** 2 / n]), np.array([n - 1.0])))
    spread = sum(float(variance.sum()) for variance, _ in parts)
    freedom = spread**2 / sum(float((v**2 / degrees).sum()) for v, degrees in parts)
    averages = (float(share @ means[0]), float(share @ means[1]))
    return value, float(np.sqrt(spread)), freedom, True, averages, np.nan


def _regressed(data: _Variables, change: tuple[int, int], *, binary: bool) -> Estimate:
    """Standardise regressions of the outcome, one per level, with weighted residuals."""
    n, everyone = len(data.cause), np.ones(len(data.cause), np.bool_)
    chances = _shares(data.cause, data.levels, data, everyone)
    averages: list[float] = []
    freedom: list[float] = []
    used = 1 + sum(max(size - 1, 1) for size in data.sizes)
    influence = np.zeros(n)
    for code in change:
        rows = data.cause == code
        if binary:
            predicted = _shares(data.effect.astype(np.intp), 2, data, rows)[:, 1]
        else:
            predicted = _linear(data, rows)
        residual = np.zeros(n)
        weight = 1.0 / np.maximum(chances[rows, code], _CLOSEST)
        residual[rows] = (data.effect - predicted)[rows] * weight
        averages.append(float((predicted + residual).mean()))
        # Residuals of a regression on few rows are too small, and few rows may have most weight.
        left = max(float(rows.sum() - used), 1.0)
        inflated = predicted + residual * np.sqrt(rows.sum() / left)
        influence += inflated if code == change[1] else -inflated
        freedom.append(float(weight.sum() ** 2 / (weight @ weight)) - used)
    value = averages[1] - averages[0]
    error = float(influence.std() / np.sqrt(n - 1))
    return value, error, max(min(freedom), 1.0), True, (averages[0], averages[1]), np.nan


def _shares(own: NDArray[np.intp], levels: int, data: _Variables, rows: Bools) -> Floats:
    """Fit a logistic regression to some rows, and return the probabilities of all rows."""
    discrete = [j for j, size in enumerate(data.sizes) if size]
    numbers = [j for j, size in enumerate(data.sizes) if not size]
    codes = [data.given[:, j].astype(np.intp) for j in discrete]
    model = fit_logit(
        tuple(range(levels)),
        own[rows],
        tuple(str(j) for j in discrete),
        [column[rows] for column in codes],
        tuple(data.sizes[j] for j in discrete),
        tuple(str(j) for j in numbers),
        data.given[rows][:, numbers],
        1.0,
    )
    columns = {str(j): data.given[:, j] for j in range(len(data.sizes))}
    shares: Floats = np.exp(model.log_probabilities(columns, len(own)))
    return shares


def _linear(data: _Variables, rows: Bools) -> Floats:
    """Fit linear regressions to some rows, and return the expected values of all rows.

    If the first variable is the only discrete one, each of its levels with enough rows has a
    regression of its own.
    """
    design = np.column_stack([np.ones(len(rows)), _dummies(data.given, data.sizes)])
    weights = np.linalg.lstsq(design[rows], data.effect[rows], rcond=None)[0]
    predicted: Floats = design @ weights
    if not data.sizes[0] or any(data.sizes[1:]):
        return predicted
    slopes = np.column_stack([np.ones(len(rows)), _dummies(data.given[:, 1:], data.sizes[1:])])
    for code in range(data.sizes[0]):
        here = data.given[:, 0] == code
        if (rows & here).sum() >= _PER_SLOPE * slopes.shape[1]:
            own = np.linalg.lstsq(slopes[rows & here], data.effect[rows & here], rcond=None)[0]
            predicted[here] = slopes[here] @ own
    return predicted


def _dummies(given: Floats, sizes: tuple[int, ...]) -> Floats:
    """Return numbers, in standard deviations, and one column per level but the first."""
    columns = [np.empty((len(given), 0))]
    for j, size in enumerate(sizes):
        if size:
            columns.append((given[:, j, None] == np.arange(1, size)).astype(np.float64))
        else:
            away = given[:, j] - given[:, j].mean()
            columns.append((away / (away.std() or 1.0))[:, None])
    return np.concatenate(columns, axis=1)


def slope_effect(schema: Schema, rows: Floats) -> Estimate:
    """Return the coefficient of a continuous cause, adjusted for discrete and other variables.

    Parameters
    ----------
    schema
        The variables: cause, effect, and those to adjust for.
    rows
        Their columns, with levels as codes.
    """
    cause, effect, *given = schema.names
    sizes = tuple(len(schema[v].levels) if schema[v].kind is Kind.DISCRETE else 0 for v in given)
    more = _dummies(rows[:, 2:], sizes)
    names = [
        name
        for v, size in zip(given, sizes, strict=True)
        for name in ([f"{v} = {level!r}" for level in schema[v].levels[1:]] if size else [v])
    ]
    kept = np.flatnonzero(np.ptp(more, axis=0) > 0)  # some levels may not occur
    others = tuple(names[j] for j in kept)
    values = np.column_stack([rows[:, :2], more[:, kept]])
    moments = Moments.from_array(Schema.continuous((cause, effect, *others)), values)

    def selected(asked: object) -> Floats:
        del asked
        return values[:, [0, *range(2, values.shape[1]), 1]]

    return adjusted_effect(moments, cause, effect, others, rows=selected)
