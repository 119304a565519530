"""Effects of discrete causes by standardisation over the variables to adjust for.

Outcomes under both levels of the cause are predicted for every row and averaged, and corrected by
the weighted residuals of the rows that have these levels (augmented inverse probability weighting,
Robins et al. 1994): the estimate is right if the model of the outcome or that of the cause is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools, Floats, Integers
from isthmus.errors import DataError, counted
from isthmus.fitting.curves import (
    CurvedTerm,
    Equation,
    RegressionColumn,
    RowResiduals,
    select_terms,
)
from isthmus.fitting.effects import (
    FEW_ROWS,
    Combinations,
    Estimate,
    LinearEffects,
    adjusted_effect,
    check_overlap,
    combinations,
    grouped,
    least_squares_residual,
    sandwich,
    with_covariates,
)
from isthmus.fitting.logit import LogitFit, contrasts, distinct, fit_counts, fit_logit, tally
from isthmus.graphs import DAG
from isthmus.networks.conditionals import spectrum
from isthmus.statistics import Kind, Moments, Schema

_FEWEST = 5
"""Rows of each level of the cause that a combination of discrete variables needs for a variance of
its own, and in regressions for an intercept of its own
(`benchmarks/results/effects-discrete.md`)."""
_PER_SLOPE = 4
"""Rows per coefficient that a level needs for a regression of its own."""
_PRIOR_ROWS = 1.0
"""Weight of the prior of a probability, in rows, as in `Solution.fit`."""
_MOST_COLUMNS = 100
"""Largest number of columns of a regression with slopes per combination."""
SMALLEST_PROBABILITY = 0.01
"""Fitted probability of a level of the cause below which a row has no overlap. Its residual counts
at most a hundredfold (`benchmarks/results/effects-overlap.md`)."""
_BEYOND = 0.5
"""Share of the range of the outcome beyond its ends from which a prediction is replaced by the end,
with an error of half the range: curves of one level of the cause explode where only the other has
rows."""
_PRIOR = 0.5
"""Curvature of the prior of the logits of two levels, with one pseudo-row: see `fit_logit`."""


@final
class _Variables(NamedTuple):
    """The variables of an effect: values or codes, and the number of levels (0: continuous)."""

    cause: NDArray[np.intp]
    levels: int
    effect: Floats
    given: Floats
    sizes: tuple[int, ...]
    times: Floats | None = None  # how many rows each row of `given` stands for; None for one


def standardised_effect(
    schema: Schema,
    rows: Floats,
    change: tuple[int, int],
    outcome: int | None,
    clusters: Integers | None = None,
) -> Estimate:
    """Return the effect of a change of a discrete cause, with its standard error.

    The regressions are challenged by curves and interactions of the variables to adjust for, which
    enter both models if they tell of the outcome or of the cause (see `select_terms`).

    The standard error is valid for noise of any variance. It includes that of the regressions of
    the outcome (HC2, with the degrees of freedom of Bell and McCaffrey); the error of the fitted
    probabilities of the cause makes it smaller, and is ignored.

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
    clusters
        The cluster of each row, numbered from zero; by default, rows are independent.
    """
    cause, effect, *given = schema.names
    sizes = tuple(
        len(schema[v].levels) if schema[v].kind is Kind.DISCRETE else 0 for v in schema.names
    )
    needed = 3 + sum(max(size - 1, 1) for size in sizes[2:])
    for code in change:
        number = int((rows[:, 0] == code).sum())
        if number < needed:
            raise DataError(
                f"Only {counted(number, 'row')} have {cause} = {schema[cause].levels[code]!r}; at "
                f"least {needed} are needed to adjust the effect on {effect!r} for {given}."
            )
    out = check_overlap(schema, rows, change, sizes[2:])
    rows = rows[~out]
    own = rows[:, 0].astype(np.intp)
    values = rows[:, 1] if outcome is None else (rows[:, 1] == outcome).astype(np.float64)
    if clusters is not None:
        clusters = np.unique(clusters[~out], return_inverse=True)[1]
    data = _Variables(own, sizes[0], values, rows[:, 2:], sizes[2:])
    cells = combinations(own, change, data.given, data.sizes)
    binary, unlikely, fewest = outcome is not None, cells.rare, int(cells.counts.min())
    modelled = cells.lacking  # rows of which the model tells all under one of the levels
    enough = cells.counts.sum(axis=1).min() - cells.counts.shape[1] >= _FEWEST
    if binary and fewest < _FEWEST and 0 not in data.sizes:
        estimate = _smoothed(data, change, cells, clusters)
    elif fewest and 0 not in data.sizes and (binary or enough):
        estimate = _stratified(data, change, cells, clusters, binary=binary)
    else:
        names = tuple(given)
        if fewest >= _FEWEST and any(data.sizes):
            # One variable for all discrete ones: the regressions have all of their interactions.
            numbers = [j for j, size in enumerate(data.sizes) if not size]
            merged = np.column_stack([cells.place, data.given[:, numbers]])
            levels = (cells.counts.shape[1], *[0] * len(numbers))
            data = data._replace(given=merged, sizes=levels)
            together = "·".join(v for v, size in zip(given, sizes[2:], strict=True) if size)
            names = (together, *(given[j] for j in numbers))
        columns = _columns(data, names)
        terms = _challenged(data, change, columns, binary=binary)
        data = _extended(data, columns, terms)
        estimate, unlikely = _regressed(data, change, clusters, binary=binary)
        told = tuple(dict.fromkeys(term.name(columns) for term in terms))
        estimate = estimate._replace(terms=told)
        modelled = unlikely = unlikely | modelled
    left = float(out.mean())
    return estimate._replace(
        largest=1.0 if binary else np.inf,
        without_overlap=left + (1.0 - left) * float(unlikely.mean()),
        extrapolated=bool(modelled.mean() > FEW_ROWS),
        clusters=0 if clusters is None else int(clusters.max()) + 1,
    )


def _columns(data: _Variables, names: tuple[str, ...]) -> list[RegressionColumn]:
    """Return the variables to adjust for as columns of which terms can be made."""
    columns = []
    for j, (name, size) in enumerate(zip(names, data.sizes, strict=True)):
        own = data.given[:, j]
        if size:
            levels = (((own == level).astype(np.float64)) for level in range(1, size))
            columns += [RegressionColumn(name, level, j, number=False) for level in levels]
        else:
            columns.append(RegressionColumn.of(name, _scaled(own), j, number=True))
    return columns


def _extended(
    data: _Variables, columns: list[RegressionColumn], terms: tuple[CurvedTerm, ...]
) -> _Variables:
    """Return the variables with terms as further ones to adjust for."""
    if not terms:
        return data
    more = [data.given, *(term.values(columns)[:, None] for term in terms)]
    return data._replace(
        given=np.concatenate(more, axis=1), sizes=(*data.sizes, *(0 for _ in terms))
    )


def _challenged(
    data: _Variables, change: tuple[int, int], columns: list[RegressionColumn], *, binary: bool
) -> tuple[CurvedTerm, ...]:
    """Return the terms that tell of the effect at one level of the cause, or of the cause."""
    if not columns:
        return ()
    # Rows with the same variables to adjust for are put together.
    first, place = distinct([*data.given.T], len(data.cause))
    times = np.bincount(place).astype(np.float64)
    data = data._replace(given=data.given[first], times=times)
    columns = [column._replace(values=column.values[first]) for column in columns]
    lines, cells = tuple(range(len(columns))), len(first)
    of_levels = tally(data.cause, place, data.levels)

    def residuals(design: Floats, each: Floats, mean: Floats, fitted: Floats) -> RowResiduals:
        # Residuals of events, whose variance follows from their shares.
        noise, away = fitted * (1.0 - fitted), mean - fitted
        return RowResiduals(design, each * away, each * (mean * (1.0 - mean) + away**2), noise)

    def of_effect(code: int) -> Equation:
        rows = data.cause == code
        there = of_levels[code] > 0.0
        inside = (np.cumsum(there) - 1)[place[rows]]
        each, own = of_levels[code][there], data.effect[rows]
        mean, within = grouped(own, inside)
        shares = _Shares(np.rint(np.stack([each * (1.0 - mean), each * mean])), there)

        def fit(chosen: tuple[CurvedTerm, ...]) -> RowResiduals:
            wide = _extended(data, columns, chosen)
            design = _design(wide, of_levels[code], slopes=not binary)[there]
            if binary:
                return residuals(design, each, mean, shares(wide)[1])
            away = least_squares_residual(design, mean, each)
            return RowResiduals(design, each * away, within + each * away**2, np.ones(len(each)))

        return Equation(fit, lines, of_levels[code], *([1.0] if binary else []))

    of_cause_shares = _Shares(of_levels, np.ones(cells, np.bool_))

    def of_cause(code: int) -> Equation:
        def fit(chosen: tuple[CurvedTerm, ...]) -> RowResiduals:
            wide = _extended(data, columns, chosen)
            design = _design(wide, times, slopes=False)
            chances = of_cause_shares(wide)
            return residuals(design, times, of_levels[code] / times, chances[code])

        return Equation(fit, lines, times, least=1.0)

    codes = change[1:] if data.levels == 2 else change
    return select_terms(columns, [*map(of_effect, change), *map(of_cause, codes)])


@final
class _Shares:
    """Logistic regressions of the same events on more and more variables.

    The search for the parameters of each starts at those of the one before.
    """

    def __init__(self, seen: Floats, there: Bools) -> None:
        self.seen, self.there = seen, there
        self.sizes: tuple[int, ...] = ()
        self.last: LogitFit | None = None

    def __call__(self, data: _Variables) -> Floats:
        """Return the fitted probabilities, of shape (levels, rows)."""
        if self.last is not None and data.sizes == self.sizes:
            return self.last.chances
        start = None
        if self.last is not None:
            model, more = self.last.model, len(data.sizes) - len(self.sizes)
            slopes = np.concatenate([model.slopes, np.zeros((more, len(self.seen)))])
            names = tuple(str(j) for j, size in enumerate(data.sizes) if not size)
            start = replace(model, continuous=names, slopes=slopes)
        given = _by_kind(data.given[self.there], data.sizes)
        levels = tuple(range(len(self.seen)))
        self.last = fit_counts(levels, self.seen, *given, 1.0, start, trial=True)
        self.sizes = data.sizes
        return self.last.chances


def _by_kind(given: Floats, sizes: tuple[int, ...]) -> _ByKind:
    """Return names, codes and sizes of discrete variables, and names and values of the others."""
    discrete = [j for j, size in enumerate(sizes) if size]
    numbers = [j for j, size in enumerate(sizes) if not size]
    return (
        tuple(map(str, discrete)),
        [given[:, j].astype(np.intp) for j in discrete],
        tuple(sizes[j] for j in discrete),
        tuple(map(str, numbers)),
        given[:, numbers],
    )


_ByKind = tuple[tuple[str, ...], list[NDArray[np.intp]], tuple[int, ...], tuple[str, ...], Floats]


def _stratified(
    data: _Variables,
    change: tuple[int, int],
    strata: Combinations,
    clusters: Integers | None,
    *,
    binary: bool,
) -> Estimate:
    """Average the differences of means within combinations, weighted by their numbers of rows."""
    place, cells = strata.place, strata.counts.shape[1]
    n, share = len(place), np.bincount(place) / len(place)
    means, variances, degrees = [], [], []
    for code, count in zip(change, strata.counts, strict=True):
        rows = data.cause == code
        total = np.bincount(place[rows], data.effect[rows], cells)
        mean = total / count
        freedom = np.maximum(count - 1, 1)
        if binary:
            variance = _variance_of_share(total, count)
        else:
            few = count < _FEWEST
            away = (data.effect[rows] - mean[place[rows]]) ** 2
            rest = max(int(count.sum()) - cells, 1)
            own = np.bincount(place[rows], away, cells) / freedom
            variance = np.where(few, away.sum() / rest, own)
            freedom = np.where(few, rest, freedom)
        means.append(mean)
        variances.append(variance / count)
        degrees.append(freedom)
    difference = means[1] - means[0]
    # Variance within combinations, and of their shares.
    within = share**2 * np.array(variances)
    value = float(share @ difference)
    between = float(share @ (difference - value) ** 2) / n
    error, freedom = _combined(within.ravel(), np.array(degrees).ravel(), between, n)
    if clusters is not None:
        error, freedom = _by_clusters(data, change, strata, means, clusters)
    averages = (float(share @ means[0]), float(share @ means[1]))
    return Estimate(value, error, freedom, averages=averages)


def _variance_of_share(total: NDArray[Any], count: NDArray[Any]) -> Floats:
    """Return the variance of an event, also of a share of zero or one (Agresti and Caffo 2000)."""
    smooth = (total + 1.0) / (count + 2.0)
    variance: Floats = smooth * (1.0 - smooth)
    return variance


def _smoothed(
    data: _Variables, change: tuple[int, int], strata: Combinations, clusters: Integers | None
) -> Estimate:
    """Average posterior means of probabilities within combinations, some of which have few rows.

    The prior of a probability is worth `_PRIOR_ROWS` rows and has the mean of a logistic regression
    without interactions, whose own uncertainty is added: combinations without rows are as uncertain
    as their prior.
    """
    place, cells = strata.place, strata.counts.shape[1]
    n, share = len(place), np.bincount(place) / len(place)
    first = np.unique(place, return_index=True)[1]
    design = np.column_stack([np.ones(cells), _dummies(data.given[first], data.sizes)])
    means, variances, degrees = [], [], []
    for code, count in zip(change, strata.counts, strict=True):
        rows = data.cause == code
        total = np.bincount(place[rows], data.effect[rows], cells)
        prior = _shares(data.effect.astype(np.intp), 2, data, rows)[first, 1]
        mean = (total + _PRIOR_ROWS * prior) / (count + _PRIOR_ROWS)
        means.append(mean)
        variances.append(share**2 * _variance_of_share(total, count) / (count + _PRIOR_ROWS + 1.0))
        degrees.append(count + _PRIOR_ROWS)
        information = (design * (count * prior * (1.0 - prior))[:, None]).T @ design
        information += 0.25 * np.eye(design.shape[1])  # of one row per coefficient
        weight = design.T @ (share * _PRIOR_ROWS / (count + _PRIOR_ROWS) * prior * (1.0 - prior))
        variances.append(np.array([weight @ np.linalg.solve(information, weight)]))
        degrees.append(np.array([max(float(rows.sum() - len(weight)), 1.0)]))
    difference = means[1] - means[0]
    value = float(share @ difference)
    between = float(share @ (difference - value) ** 2) / n
    error, freedom = _combined(np.concatenate(variances), np.concatenate(degrees), between, n)
    if clusters is not None:
        error, freedom = _by_clusters(data, change, strata, means, clusters)
    averages = (float(share @ means[0]), float(share @ means[1]))
    return Estimate(value, error, freedom, averages=averages)


def _by_clusters(
    data: _Variables,
    change: tuple[int, int],
    strata: Combinations,
    means: list[Floats],
    clusters: Integers,
) -> tuple[float, float]:
    """Return a standard error of standardised means for dependent rows, and its freedom."""
    place, n, groups = strata.place, len(strata.place), int(clusters.max()) + 1
    share = np.bincount(place) / n
    influence = (means[1] - means[0])[place] - float(share @ (means[1] - means[0]))
    for code, mean, count, sign in zip(change, means, strata.counts, (-1.0, 1.0), strict=True):
        rows = data.cause == code
        own = place[rows]
        influence[rows] += (
            sign * n * (share / np.maximum(count, 1))[own] * (data.effect[rows] - mean[own])
        )
    sums = np.bincount(clusters, influence / n, groups)
    return float(np.sqrt(sums @ sums * groups / (groups - 1))), float(groups - 1)


def _combined(within: Floats, degrees: Floats, between: float, n: int) -> tuple[float, float]:
    """Return a standard error and its degrees of freedom (Welch and Satterthwaite).

    They are few if most of the error comes from few rows.
    """
    spread = max(float(within.sum()) + between, float(within.max()))
    terms = float((within**2 / degrees).sum()) + between**2 / max(n - 1, 1)
    return float(np.sqrt(spread)), spread**2 / terms if terms > 0.0 else float(max(n - 2, 1))


def _regressed(
    data: _Variables, change: tuple[int, int], clusters: Integers | None, *, binary: bool
) -> tuple[Estimate, Bools]:
    """Standardise regressions of the outcome, one per level, with weighted residuals.

    Also return the rows for which one of the levels has a small fitted probability, or a
    regression is far outside the data.
    """
    n, everyone = len(data.cause), np.ones(len(data.cause), np.bool_)
    chances = _shares(data.cause, data.levels, data, everyone)[:, list(change)]
    averages, within, degrees, expected, bases = [], [], [], [], []
    pulls, left = np.zeros(n), np.zeros(n)  # of each row on the average of its level; residuals
    variances, outside = np.ones(n), np.zeros(n, np.bool_)
    low, high = float(data.effect.min()), float(data.effect.max())
    margin, unknown = _BEYOND * (high - low), 0.0
    residual = np.zeros(n)  # times its influence on the average of the level of the row
    for code, chance in zip(change, chances.T, strict=True):
        rows = data.cause == code
        design = _design(data, rows, slopes=not binary)
        if binary:
            predicted = _shares(data.effect.astype(np.intp), 2, data, rows)[:, 1]
            noise = predicted * (1.0 - predicted)
        else:
            weights = np.linalg.lstsq(design[rows], data.effect[rows], rcond=None)[0]
            predicted, noise = design @ weights, np.ones(n)
        far = ((predicted < low - margin) | (predicted > high + margin)) & ~rows
        predicted = np.where(far, np.clip(predicted, low, high), predicted)
        outside |= far
        unknown += (far.mean() * (high - low) / 2.0) ** 2
        weight = rows / np.maximum(chance, SMALLEST_PROBABILITY)
        average = float((predicted + weight * (data.effect - predicted)).mean())
        averages.append(min(max(average, 0.0), 1.0) if binary else average)
        # How much the average changes with the residual of a row: by its weight, and because the
        # row changes the coefficients (the stacked estimating equations of both).
        pull = ((1.0 - weight) * noise * ~far) @ design / n
        inner = (design[rows] * noise[rows, None]).T @ design[rows]
        inner[np.diag_indices(len(inner))] += _PRIOR if binary else 0.0
        parts = spectrum(inner)
        root = parts.vectors * (parts.free / np.sqrt(parts.values)) / parts.spread[:, None]
        basis = design[rows] @ root
        influence = weight[rows] / n + basis @ (root.T @ pull)
        pulls[rows], left[rows] = influence, (data.effect - predicted)[rows]
        variances[rows] = noise[rows]
        bases.append(np.zeros((n, basis.shape[1])))
        bases[-1][rows] = basis
        residual[rows], freedom = sandwich(basis, influence, left[rows], noise[rows])
        variance = float(residual[rows] @ residual[rows])
        if binary:
            # Residuals are near zero if the outcome is the same in all rows with this level.
            variance = max(variance, float(influence**2 @ noise[rows]))
        within.append(variance)
        degrees.append(freedom)
        expected.append(predicted)
    difference = expected[1] - expected[0]
    away = (difference - difference.mean()) / n
    sign = np.where(data.cause == change[1], 1.0, -1.0)
    between = float(away @ (away + 2.0 * sign * residual)) * n / (n - 1)
    error, freedom = _combined(np.array(within), np.array(degrees), between, n)
    if clusters is not None:
        together = np.concatenate(bases, axis=1)
        noise_of = sandwich(together, sign * pulls, left, variances, clusters)
        away = np.bincount(clusters, away).astype(np.float64)
        error, freedom = with_covariates(noise_of.contributions, noise_of.degrees, away)
    both, error = (averages[0], averages[1]), float(np.hypot(error, np.sqrt(unknown)))
    estimate = Estimate(both[1] - both[0], error, freedom, averages=both)
    unlikely: Bools = (chances.min(axis=1) < SMALLEST_PROBABILITY) | outside
    return estimate, unlikely


def _shares(own: NDArray[np.intp], levels: int, data: _Variables, rows: Bools) -> Floats:
    """Fit a logistic regression to some rows, and return the probabilities of all rows."""
    given = _by_kind(data.given[rows], data.sizes)
    model = fit_logit(tuple(range(levels)), own[rows], *given, 1.0)
    columns = {str(j): data.given[:, j] for j in range(len(data.sizes))}
    shares: Floats = np.exp(model.log_probabilities(columns, len(own)))
    return shares


def _design(data: _Variables, rows: Bools | Floats, *, slopes: bool) -> Floats:
    """Return the columns of a regression: an intercept, numbers, and contrasts of levels.

    With slopes, if the first variable is the only discrete one, each of its levels with enough rows
    has coefficients of its own.
    """
    columns = [np.ones((len(rows), 1))]
    for j, size in enumerate(data.sizes):
        own = data.given[:, j]
        scaled = contrasts(size)[own.astype(np.intp)] if size else _scaled(own, data.times)[:, None]
        columns.append(scaled)
    numbers = len(data.sizes) - 1
    if slopes and numbers and data.sizes[0] and not any(data.sizes[1:]):
        needed = _PER_SLOPE * (1 + numbers)
        counts = np.bincount(data.given[:, 0].astype(np.intp), rows, data.sizes[0])
        own_slopes = np.flatnonzero(counts >= needed)
        if len(own_slopes) == data.sizes[0]:
            own_slopes = own_slopes[1:]
        if (1 + numbers) * data.sizes[0] <= _MOST_COLUMNS:
            scaled = np.concatenate(columns[2:], axis=1)
            columns += [scaled * (data.given[:, 0] == level)[:, None] for level in own_slopes]
    return np.concatenate(columns, axis=1)


def _scaled(numbers: Floats, times: Floats | None = None) -> Floats:
    """Return numbers in standard deviations from their mean."""
    if times is None:
        away: Floats = numbers - np.average(numbers)
        return away / (np.sqrt(np.average(away**2)) or 1.0)
    rows = times.sum()  # once, unlike in `np.average`
    away = numbers - (numbers * times).sum() / rows
    return away / (np.sqrt((away**2 * times).sum() / rows) or 1.0)


def _dummies(given: Floats, sizes: tuple[int, ...]) -> Floats:
    """Return numbers, in standard deviations, and one column per level but the first."""
    columns = [np.empty((len(given), 0))]
    for j, size in enumerate(sizes):
        if size:
            columns.append((given[:, j, None] == np.arange(1, size)).astype(np.float64))
        else:
            columns.append(_scaled(given[:, j])[:, None])
    return np.concatenate(columns, axis=1)


def slope_effect(schema: Schema, rows: Floats, clusters: Integers | None = None) -> Estimate:
    """Return the coefficient of a continuous cause, adjusted for discrete and other variables.

    Parameters
    ----------
    schema
        The variables: cause, effect, and those to adjust for.
    rows
        Their columns, with levels as codes.
    clusters
        The cluster of each row, numbered from zero; by default, rows are independent.
    """
    cause, effect, *given = schema.names
    sizes = tuple(len(schema[v].levels) if schema[v].kind is Kind.DISCRETE else 0 for v in given)
    more = _dummies(rows[:, 2:], sizes)
    names = [
        (name, j + 1, not size)
        for j, (v, size) in enumerate(zip(given, sizes, strict=True))
        for name in ([f"{v} = {level!r}" for level in schema[v].levels[1:]] if size else [v])
    ]
    kept = np.flatnonzero(np.ptp(more, axis=0) > 0)  # some levels may not occur
    others = tuple(names[j][0] for j in kept)
    variables = [(0, True), *(names[j][1:] for j in kept)]
    values = np.column_stack([rows[:, :2], more[:, kept]])
    moments = Moments.from_array(Schema.continuous((cause, effect, *others)), values)

    def selected(asked: object) -> Floats:
        del asked
        return values[:, [0, *range(2, values.shape[1]), 1]]

    return adjusted_effect(
        moments, cause, effect, others, rows=selected, variables=variables, clusters=clusters
    )


# --- Effects of linear networks, challenged ------------------------------------------------------
#
# Effects in draws of graphs: those of linear networks where these survive their challenge.

_ERRORS = 3.0
"""How far the logarithms of robust and plain standard errors may be apart, times the root of the
number of rows: about 2.5 standard deviations of their difference if the variance is constant."""


@final
@dataclass(frozen=True, eq=False)
class ChallengedEffects:
    """Coefficients of linear networks, and the estimator of `effect` where lines fail.

    Attributes
    ----------
    lines
        The linear networks.
    moments
        Moments of the columns.
    rows
        Returns columns; None after copying or pickling, so that rows stay where they are.
    incomplete
        Returns columns with NaN for missing values, if the moments maximise their likelihood.
    """

    lines: LinearEffects
    moments: Moments
    rows: Callable[[Sequence[str]], Floats] | None
    incomplete: Callable[[Sequence[str]], Floats] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"lines": self.lines, "moments": self.moments, "rows": None, "incomplete": None}

    @cached_property
    def _larger(self) -> dict[tuple[str, str, tuple[str, ...]], Estimate | None]:
        return {}

    def mean(self, dag: DAG) -> NDArray[np.float64]:
        """Return the expected total effect ``[cause, effect]`` by lines in one graph."""
        return self.lines.mean(dag)

    def draw_all(self, dag: DAG, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw the coefficients of lines of one graph and return all total effects."""
        return self.lines.draw_all(dag, rng)

    def draw(
        self, dags: Sequence[DAG], cause: int, effect: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw the total effect once for each graph."""
        drawn = self.lines.draw(dags, cause, effect, rng)
        a, b = self.lines.nodes[cause], self.lines.nodes[effect]
        found: dict[DAG, Estimate | None] = {}
        for i, dag in enumerate(dags):
            if dag not in found:
                path = b in dag.descendants(a)
                found[dag] = self._challenged(a, b, dag.adjustment_set(a, b)) if path else None
            larger = found[dag]
            if larger is not None:
                error = larger.standard_error * rng.standard_t(max(larger.degrees, 1.0))
                drawn[i] = larger.value + error
        return drawn

    def _challenged(self, cause: str, effect: str, given: tuple[str, ...]) -> Estimate | None:
        """Return the estimate of the larger model; None if lines survive it."""
        key = (cause, effect, given)
        if key not in self._larger:
            none = self.rows is None and self.incomplete is None
            self._larger[key] = None if none else self._estimate(*key)
        return self._larger[key]

    def _estimate(self, cause: str, effect: str, given: tuple[str, ...]) -> Estimate | None:
        try:
            plain = adjusted_effect(self.moments, cause, effect, given)
            larger = adjusted_effect(
                self.moments, cause, effect, given, rows=self.rows, incomplete=self.incomplete
            )
        except DataError:  # such as exact relations, of which the prior has an opinion
            return None
        if not larger.robust or not plain.standard_error > 0.0:
            return None
        apart = abs(np.log(larger.standard_error / plain.standard_error))
        survives = not larger.terms and apart < _ERRORS / np.sqrt(self.moments.n)
        return None if survives else larger
