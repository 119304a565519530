"""Total effects of linear models by adjusted regression, from moments and, if possible, rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools, Floats, Integers
from isthmus.errors import DataError, counted
from isthmus.fitting.curves import (
    CurvedTerm,
    Equation,
    RegressionColumn,
    RowResiduals,
    rows_needed,
    select_terms,
)
from isthmus.fitting.incomplete import incomplete_error
from isthmus.fitting.logit import distinct
from isthmus.graphs import DAG
from isthmus.graphs.names import listed
from isthmus.networks.conditionals import RANK, Spectrum, regress, spectrum
from isthmus.statistics import Moments, Schema

# --- Effects of linear Gaussian models, averaged over graphs and over parameters ----------------


class _Family(NamedTuple):
    """Posterior of the regression of a node on its parents."""

    mean: NDArray[np.float64]
    root: NDArray[np.float64]  # of the inverse precision, for a residual variance of one
    rate: float  # half the residual sum of squares
    shape: float  # half the degrees of freedom


@final
@dataclass(frozen=True, eq=False)
class LinearEffects:
    """The posterior of the coefficients of a linear Gaussian network, for any graph.

    Under a normal-Wishart prior, that of `BGe`, the coefficients of a node given its residual
    variance are normal and the variance is inverse gamma, independently of those of other nodes.

    Attributes
    ----------
    nodes
        Names of the variables.
    scatter
        Scatter matrix of the data plus that of the prior.
    degrees
        Posterior degrees of freedom of the Wishart distribution.
    shift
        If the mean of the prior is not that of the data, the root of what their distance adds to
        the scatter: ``scatter + outer(shift, shift)`` is the posterior scatter matrix. It is kept
        apart because the sum would lose the scatter if the distance is large.
    """

    nodes: tuple[str, ...]
    scatter: NDArray[np.float64]
    degrees: float
    shift: NDArray[np.float64] | None = None

    @cached_property
    def _families(self) -> dict[tuple[int, tuple[int, ...]], _Family]:
        return {}

    def mean(self, dag: DAG) -> NDArray[np.float64]:
        """Return the expected total effect ``[cause, effect]`` in one graph.

        Each path has the product of its coefficients as its effect. These belong to different
        nodes and are independent, so the mean of the product is the product of the means.
        """
        return self._total(dag, lambda v, parents: self._family(v, parents).mean)

    def draw_all(self, dag: DAG, rng: np.random.Generator) -> NDArray[np.float64]:
        """Draw the coefficients of one graph and return all total effects ``[cause, effect]``."""
        return self._total(dag, lambda v, parents: self._coefficients(v, parents, rng))

    def _total(
        self, dag: DAG, coefficients: Callable[[int, tuple[int, ...]], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return the sums over all paths of the products of coefficients."""
        effects = np.eye(len(self.nodes))
        families = dag.parent_indices()
        for node in dag.topological_order():
            v = dag.index(node)
            effects[:, v] += effects[:, list(families[v])] @ coefficients(v, families[v])
        np.fill_diagonal(effects, 0.0)
        return effects

    def draw(
        self, dags: Sequence[DAG], cause: int, effect: int, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Draw the coefficients once for each graph and return the total effects."""
        return np.array([self._draw(dag, cause, effect, rng) for dag in dags])

    def _draw(self, dag: DAG, cause: int, effect: int, rng: np.random.Generator) -> float:
        name = self.nodes[effect]
        between = set(dag.descendants(self.nodes[cause])) & {*dag.ancestors(name), name}
        if name not in between:
            return 0.0
        moved = {cause: 1.0}
        families = dag.parent_indices()
        for node in dag.topological_order():
            if node not in between:
                continue
            v = dag.index(node)
            coefficients = self._coefficients(v, families[v], rng)
            moved[v] = sum(coefficients[i] * moved.get(p, 0.0) for i, p in enumerate(families[v]))
        return float(moved[effect])

    def _coefficients(
        self, child: int, parents: tuple[int, ...], rng: np.random.Generator
    ) -> NDArray[np.float64]:
        family = self._family(child, parents)
        variance = family.rate / rng.gamma(family.shape)
        noise = rng.standard_normal(len(parents))
        drawn: NDArray[np.float64] = family.mean + np.sqrt(variance) * (family.root @ noise)
        return drawn

    def _family(self, child: int, parents: tuple[int, ...]) -> _Family:
        key = (child, parents)
        if key not in self._families:
            self._families[key] = self._regression(child, list(parents))
        return self._families[key]

    def _regression(self, child: int, own: list[int]) -> _Family:
        parts = spectrum(self.scatter[np.ix_(own, own)])
        # The prior makes every direction a proper one, if only just: coefficients of collinear
        # parents are very uncertain, not zero.
        values = np.where(parts.free, parts.values, RANK)
        root = parts.vectors / np.sqrt(values) / parts.spread[:, None]
        pull = root.T @ self.scatter[own, child]
        mean = root @ pull
        residual = max(float(self.scatter[child, child] - pull @ pull), 0.0)
        shape = 0.5 * (self.degrees - len(self.nodes) + len(own) + 1)
        if self.shift is not None:
            # One more row at `shift`: the update of a regression by a single observation.
            row = root.T @ self.shift[own]
            length = float(row @ row)
            surprise = float(self.shift[child] - self.shift[own] @ mean)
            mean = mean + root @ row * (surprise / (1.0 + length))
            residual += surprise**2 / (1.0 + length)
            if length > 0.0:
                shrink = (1.0 - 1.0 / np.sqrt(1.0 + length)) / length
                root = root - np.outer(root @ row, shrink * row)
        return _Family(mean, root, 0.5 * residual, shape)


# --- What the estimation of an effect returns ---------------------------------------------------


@final
class Estimate(NamedTuple):
    """An estimated effect; the attributes are those of `isthmus.results.PossibleEffect`."""

    value: float
    standard_error: float
    degrees: float
    robust: bool = True
    averages: tuple[float, float] | None = None
    partial_correlation: float = np.nan
    first_stage: float = np.nan
    largest: float = np.inf
    without_overlap: float = 0.0
    extrapolated: bool = False
    terms: tuple[str, ...] = ()
    averaged: bool = False
    challenged: bool = True
    clusters: int = 0
    complete_rows: int = 0


# --- Robust variances ----------------------------------------------------------------------------
#
# Standard errors of regressions whose rows have noise of any variance, or come in clusters.

_LEFT = 1e-6
"""What at least is left of the leverage of a row or a cluster."""


@final
class Sandwich(NamedTuple):
    """The parts of a robust variance.

    Attributes
    ----------
    contributions
        What each row, or each cluster, adds to the estimate by its noise; the variance is the sum
        of their squares.
    degrees
        Degrees of freedom of that sum (Bell and McCaffrey 2002).
    """

    contributions: Floats
    degrees: float


def sandwich(
    basis: Floats,
    influence: Floats,
    residual: Floats,
    noise: Floats | None = None,
    clusters: Integers | None = None,
) -> Sandwich:
    """Return the robust variance of a linear function of the coefficients (HC2, or CR2).

    Residuals are divided by the root of what leverage leaves of them, so that the variance is
    unbiased if the variance of the noise is as the regression assumes. The degrees of freedom are
    few if the estimate rests on few rows or clusters.

    Parameters
    ----------
    basis
        The design of the regression, orthonormal if it is weighted by the noise.
    influence, residual
        Of each row.
    noise
        Variance of the residuals, up to a factor; by default the same for all rows.
    clusters
        The cluster of each row, numbered from zero; by default, rows are independent.
    """
    root = np.ones(len(basis)) if noise is None else np.sqrt(noise)
    scaled, pull = basis * root[:, None], influence * root
    rest = np.divide(residual, root, out=np.zeros(len(root)), where=root > 0.0)
    if clusters is None:
        left = 1.0 - np.minimum(np.einsum("ij,ij->i", scaled, scaled), 1.0 - _LEFT)
        own = pull / np.sqrt(left)
        squares, inner = own**2, scaled * own[:, None]
        contributions = own * rest
    else:
        contributions, squares, inner = _of_clusters(scaled, pull, rest, clusters)
    # Mean and variance of the estimated variance, if that of the noise is as the model says.
    lost = np.einsum("ij,ij->i", inner, inner)
    mean = float((squares - lost).sum())
    spread = float((squares**2 - 2.0 * squares * lost).sum() + ((inner.T @ inner) ** 2).sum())
    return Sandwich(contributions, max(mean**2 / spread, 1.0) if spread > 0.0 else 1.0)


def _of_clusters(
    basis: Floats, pull: Floats, rest: Floats, clusters: Integers
) -> tuple[Floats, Floats, Floats]:
    """Return the contribution of each cluster, and the sums that degrees of freedom need.

    With the rows Q of a cluster in an orthonormal basis, ``(I - QQ')^-1/2`` differs from the
    identity in k directions only, so that clusters of any size cost the same per row.
    """
    count, k = int(clusters.max()) + 1, basis.shape[1]
    contributions, squares, inner = np.zeros(count), np.zeros(count), np.zeros((count, k))
    order = np.argsort(clusters, kind="stable")
    ends = np.cumsum(np.bincount(clusters, minlength=count))
    for g, rows in enumerate(np.split(order, ends[:-1])):
        q = basis[rows]
        values, vectors = np.linalg.eigh(q.T @ q)
        values = np.clip(values, 0.0, 1.0 - _LEFT)
        stretch = np.divide(
            1.0 / np.sqrt(1.0 - values) - 1.0, values, out=np.full(k, 0.5), where=values > _LEFT
        )
        own = pull[rows] + q @ (vectors @ (stretch * (vectors.T @ (q.T @ pull[rows]))))
        contributions[g] = own @ rest[rows]
        squares[g] = own @ own
        inner[g] = q.T @ own
    return contributions, squares, inner


# --- The effect of a continuous cause: its average slope over the rows, from a regression -------
#
# Outcomes are regressed on the cause, the variables to adjust for, and the curves and
# interactions of both that pay for their terms. The effect is the average of the derivative of
# that regression by the cause, over all rows: with lines alone, the coefficient of the cause.


def average_slope(
    columns: Sequence[RegressionColumn],
    outcome: Floats,
    unit: float,
    clusters: Integers | None = None,
) -> Estimate | None:
    """Return the average slope of the first column, adjusted for the others.

    The standard error is valid for noise of any variance (HC2, with the degrees of freedom of Bell
    and McCaffrey), or with clusters for dependent rows (CR2). It includes that the covariates over
    which slopes are averaged are a sample.

    Parameters
    ----------
    columns
        The cause, and the columns to adjust for.
    outcome
        Of each row.
    unit
        The standard deviation of the cause, in its own unit.
    clusters
        The cluster of each row, numbered from zero.

    Returns
    -------
    Estimate or None
        None if lines survive and rows are independent, so that the answer is that of moments.
    """
    terms = _selected(columns, outcome)
    if not terms and clusters is None:
        return None
    n = len(outcome)
    own = [np.ones(n), *(c.values for c in columns), *(t.values(columns) for t in terms)]
    design = np.stack(own, axis=1)
    parts = spectrum(design.T @ design)
    root = parts.vectors * (parts.free / np.sqrt(parts.values)) / parts.spread[:, None]
    basis = design @ root
    weights = root @ (basis.T @ outcome)
    residual = outcome - design @ weights
    slopes = np.stack(
        [np.zeros(n), *(np.full(n, float(i == 0)) for i in range(len(columns)))]
        + [t.slope(columns, 0) for t in terms],
        axis=1,
    )
    each = slopes @ weights
    value = float(each.mean())
    influence = basis @ (root.T @ slopes.mean(axis=0))
    noise = sandwich(basis, influence, residual, clusters=clusters)
    away = (each - value) / n
    groups = n if clusters is None else int(clusters.max()) + 1
    if clusters is not None:
        away = np.bincount(clusters, away, groups).astype(np.float64)
    error, degrees = with_covariates(noise.contributions, noise.degrees, away)
    bent = any(0 in t.factors for t in terms)
    return Estimate(
        value / unit,
        error / unit,
        degrees,
        partial_correlation=np.nan if bent else _partial(design, outcome),
        terms=tuple(dict.fromkeys(t.name(columns) for t in terms)),
        averaged=bent,
        clusters=0 if clusters is None else groups,
    )


def with_covariates(noise: Floats, degrees: float, away: Floats) -> tuple[float, float]:
    """Return a standard error that includes the sampling of covariates, and degrees of freedom.

    Parameters
    ----------
    noise, degrees
        Contributions of the noise of each row or cluster, and the degrees of freedom of their
        squares.
    away
        Contributions of each row or cluster by its covariates.
    """
    count = len(away)
    within = float(noise @ noise)
    between = float(away @ (away + 2.0 * noise)) * count / max(count - 1, 1)
    total = max(within + between, within if within > 0.0 else 0.0)
    terms = within**2 / degrees + max(between, 0.0) ** 2 / max(count - 1, 1)
    return float(np.sqrt(total)), total**2 / terms if terms > 0.0 else float(max(count - 2, 1))


def check_clusters(clusters: Integers) -> None:
    """Raise if there are too few clusters for a standard error."""
    count = int(clusters.max(initial=-1)) + 1
    if count < 3:
        raise DataError(
            f"Standard errors by clusters need at least three clusters; there "
            f"{'is' if count == 1 else 'are'} {counted(count, 'cluster')}."
        )


def _selected(columns: Sequence[RegressionColumn], outcome: Floats) -> tuple[CurvedTerm, ...]:
    """Return the terms that tell of the outcome, or, of the other variables, of the cause."""
    everything = tuple(range(len(columns)))
    first, place = distinct([c.values for c in columns], len(outcome))
    columns = [c._replace(values=c.values[first]) for c in columns]
    each = np.bincount(place).astype(np.float64)
    ones = np.ones(len(each))

    def regression(target: Floats, lines: tuple[int, ...]) -> Equation:
        mean, within = grouped(target, place)

        def fit(chosen: tuple[CurvedTerm, ...]) -> RowResiduals:
            used = [t for t in chosen if set(t.factors) <= set(lines)]
            design = np.stack(
                [ones, *(columns[i].values for i in lines), *(t.values(columns) for t in used)],
                axis=1,
            )
            away = least_squares_residual(design, mean, each)
            return RowResiduals(design, each * away, within + each * away**2, ones)

        return Equation(fit, lines, each)

    equations = [regression(outcome / (outcome.std() or 1.0), everything)]
    if len(columns) > 1:
        equations.append(regression(columns[0].values[place], everything[1:]))
    return select_terms(columns, equations)


def grouped(values: Floats, place: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return the mean of each group of rows, and its sum of squares about it."""
    each = np.bincount(place)
    mean = np.bincount(place, values) / np.maximum(each, 1)
    return mean, np.bincount(place, (values - mean[place]) ** 2).astype(np.float64)


def least_squares_residual(design: Floats, target: Floats, each: Floats) -> Floats:
    """Return the residuals of a regression whose rows count ``each`` times."""
    parts = spectrum((design * each[:, None]).T @ design)
    for _ in range(2):  # the second time removes what rounding has left
        pull = (each * target) @ design / parts.spread
        target = target - design @ (parts.solve(pull[:, None])[:, 0] / parts.spread)
    return target


def _partial(design: Floats, outcome: Floats) -> float:
    """Return the partial correlation of the cause, the second column, and the outcome."""
    others = np.delete(design, 1, axis=1)
    both = np.stack([design[:, 1], outcome], axis=1)
    x, y = (both - others @ np.linalg.lstsq(others, both, rcond=None)[0]).T
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0.0 else 0.0


# --- Total effects of linear models by adjusted regression ---------------------------------------

_FULL_LEVERAGE = 1.0 - 1e-6
"""Leverage above which a row determines a coefficient alone, so that it has no residual."""


def adjusted_effect(
    moments: Moments,
    cause: str,
    effect: str,
    given: tuple[str, ...],
    *,
    rows: Callable[[Sequence[str]], Floats] | None = None,
    variables: Sequence[tuple[int, bool]] | None = None,
    clusters: Integers | None = None,
    incomplete: Callable[[Sequence[str]], Floats] | None = None,
) -> Estimate:
    """Return the effect of one unit of a continuous cause, adjusted for further variables.

    It is the coefficient of a regression on lines, if these survive the challenge by curves and
    interactions (see `average_slope`), and otherwise the average slope of the larger regression.
    The challenge, and a standard error that is valid if the variance of the noise depends on the
    regressors (heteroscedasticity), need rows: moments do not show such a dependence. If values are
    missing, lines are challenged on the rows that have all values, and estimated from all rows; if
    they do not survive, the answer is that of the complete rows.

    Parameters
    ----------
    moments
        Moments of continuous variables.
    cause, effect
        The variable whose coefficient is returned, and the one that is regressed.
    given
        Further regressors.
    rows
        Returns the columns with some names, as an array of shape (rows, names).
    variables
        Of each regressor, the variable that it belongs to, and whether it is a number, which can
        have a curve; by default each is a number of its own.
    clusters
        The cluster of each row, numbered from zero; by default, rows are independent.
    incomplete
        Returns the columns with some names, with NaN for missing values, if the moments maximise
        the likelihood of incomplete rows.
    """
    moments = moments.about((cause, *given, effect))
    schema, scatter = moments.schema, moments.scatter()
    x = [schema.index(v) for v in (cause, *given)]
    y = schema.index(effect)
    degrees = moments.n - len(x) - 1
    if degrees < 1:
        raise DataError(
            f"A regression on {counted(len(x), 'variable')} needs at least {len(x) + 2} rows for a "
            f"standard error; there {'is' if moments.n == 1 else 'are'} {moments.n}."
        )
    if {cause, *given} & set(moments.constants()) or not (scatter[x, x] > 0.0).all():
        raise DataError(f"{cause!r} or a variable to adjust for is constant: no effect to see.")
    if effect in moments.constants():
        raise DataError(
            f"Column {effect!r} is constant: it has the same value in all rows, so there is no "
            "effect to estimate."
        )
    fitted = regress(scatter[np.ix_([*x, y], [*x, y])])
    if fitted.rank < len(x):
        raise DataError(
            f"{listed((cause, *given))} are linearly dependent: one of them follows exactly from "
            "the others (such as a sum), so their effects cannot be told apart. Leave one of them "
            "out of the table, and learn again."
        )
    parts = spectrum(scatter[np.ix_(x, x)])
    value = float(fitted.coefficients[0])
    precision = float(parts.spread[0]) / np.sqrt((parts.vectors[0] ** 2 / parts.values).sum())
    explained = (value * precision) ** 2
    total = explained + float(fitted.variance)
    partial = float(np.copysign(np.sqrt(explained / total), value)) if total > 0.0 else 0.0
    if rows is not None and fitted.variance > 0.0:
        centred = rows((cause, *given, effect)) - moments.mean()[[*x, y]]
        if _are_rows_of(centred, scatter[np.ix_([*x, y], [*x, y])]):
            larger = _challenged(centred, (cause, *given), variables, clusters)
            if larger is not None:
                return larger
            robust = _robust_error(centred, fitted.coefficients, parts)
            if robust is not None:
                return Estimate(value, *robust, partial_correlation=partial)
    if incomplete is not None and fitted.variance > 0.0:
        values = incomplete((cause, *given, effect))
        found = _of_incomplete(values, (cause, *given), moments, fitted.coefficients)
        if np.isfinite(found.standard_error):
            return found if found.terms else found._replace(partial_correlation=partial)
    error = float(np.sqrt(fitted.variance / degrees) / precision)
    return Estimate(
        value, error, degrees, robust=False, partial_correlation=partial, challenged=False
    )


def _of_incomplete(
    values: Floats, regressors: tuple[str, ...], moments: Moments, slopes: Floats
) -> Estimate:
    """Return the estimate of lines from all rows, or that of curves from the complete ones.

    The error is not a number if the information of incomplete rows is not computed.

    Parameters
    ----------
    values
        The regressors, the cause first, and the outcome, with NaN for missing values.
    moments
        Those that maximise the likelihood of the values.
    """
    complete = values[~np.isnan(values).any(axis=1)]
    tried = len(complete) if len(complete) >= rows_needed(len(regressors)) else 0
    if tried and (np.ptp(complete, axis=0) > 0.0).all():
        larger = _challenged(complete - complete.mean(axis=0), regressors, None, None)
        if larger is not None:
            return larger._replace(complete_rows=tried)
    error = incomplete_error(values, moments.mean(), moments.scatter() / moments.n, slopes)
    degrees = moments.n - len(slopes) - 1
    error *= float(np.sqrt(moments.n / degrees))
    challenged = bool(tried)
    return Estimate(float(slopes[0]), error, degrees, challenged=challenged, complete_rows=tried)


def _challenged(
    centred: Floats,
    regressors: Sequence[str],
    variables: Sequence[tuple[int, bool]] | None,
    clusters: Integers | None,
) -> Estimate | None:
    """Return the estimate of a larger regression; None if lines survive the challenge."""
    spread = np.sqrt((centred[:, :-1] ** 2).mean(axis=0))
    own = variables or [(i, True) for i in range(len(regressors))]
    columns = [
        RegressionColumn.of(v, centred[:, i] / spread[i], own[i][0], number=own[i][1])
        for i, v in enumerate(regressors)
    ]
    # Short ranges would take a part of the slope of the cause for steps in noise.
    columns[0] = columns[0]._replace(steps=())
    return average_slope(columns, centred[:, -1], float(spread[0]), clusters)


def _are_rows_of(centred: Floats, scatter: Floats) -> bool:
    """Whether rows are those of the moments: a user may have changed an array in place."""
    spread = np.sqrt(scatter.diagonal())
    return bool(
        np.allclose(centred.T @ centred, scatter, rtol=1e-6, atol=1e-6 * np.outer(spread, spread))
    )


def _robust_error(
    centred: Floats, coefficients: Floats, parts: Spectrum
) -> tuple[float, float] | None:
    """Return a standard error of the first coefficient (HC2), and its degrees of freedom.

    The degrees of freedom are those of Bell and McCaffrey (2002): few if the coefficient rests on
    few rows, such as those of a rare flag, for which the usual number gives intervals that are too
    narrow. None if a row has no residual of its own.
    """
    n, k = centred.shape[0], centred.shape[1] - 1
    root = parts.vectors / np.sqrt(parts.values) / parts.spread[:, None]
    basis = np.full((n, k + 1), 1.0 / np.sqrt(n))  # orthonormal, with the intercept
    basis[:, :k] = centred[:, :k] @ root
    leverage = np.einsum("ij,ij->i", basis, basis)
    residual = centred[:, k] - centred[:, :k] @ coefficients
    if leverage.max() > _FULL_LEVERAGE:
        return None
    influence = basis[:, :k] @ root[0]  # of each row on the coefficient
    contributions, freedom = sandwich(basis, influence, residual)
    return float(np.sqrt(contributions @ contributions)), freedom


# --- Overlap: combinations with rows of every level ----------------------------------------------
#
# Whether the levels of a discrete cause occur in all combinations of the variables to adjust for.
#
# Without such overlap (positivity) no data tell what the rows of a combination would be like
# under the level that none of them has.

FEW_ROWS = 0.05
"""Share of rows without overlap that is left out; with more of them, there is no estimate, or it
leads with the extrapolation."""
_RARE = 0.02
"""Share of a level in a combination below which it has little overlap: few rows stand for many
(`benchmarks/results/effects-overlap.md`)."""
_CHANCE = 10
"""Rows of a combination below which a level may be absent by chance: if none of ten rows has it,
its probability is below 26% with a confidence of 95%."""


@final
class Combinations(NamedTuple):
    """The combinations of the discrete variables to adjust for.

    Attributes
    ----------
    place
        The combination of each row.
    counts
        Rows of each compared level of the cause (rows of the array) and combination.
    """

    place: NDArray[np.intp]
    counts: NDArray[np.intp]

    @property
    def lacking(self) -> Bools:
        """Whether the combination of each row lacks one of the levels."""
        rows: Bools = (self.counts.min(axis=0) == 0)[self.place]
        return rows

    @property
    def rare(self) -> Bools:
        """Whether one of the levels is rare in the combination of each row."""
        rows: Bools = (self.counts.min(axis=0) < _RARE * np.bincount(self.place))[self.place]
        return rows


def combinations(
    cause: NDArray[np.intp], change: tuple[int, int], codes: Floats, sizes: tuple[int, ...]
) -> Combinations:
    """Return the combinations of discrete variables and their numbers of rows.

    Parameters
    ----------
    cause, change
        Codes of the cause, and the two that are compared.
    codes, sizes
        Codes of the variables to adjust for, and their numbers of levels (0: continuous, ignored).
    """
    place = np.zeros(len(cause), np.intp)
    for j in (j for j, size in enumerate(sizes) if size):
        _, place = np.unique(place * sizes[j] + codes[:, j].astype(np.intp), return_inverse=True)
        place = place.ravel()
    cells = int(place.max()) + 1
    counts = np.array([np.bincount(place[cause == code], minlength=cells) for code in change])
    return Combinations(place, counts)


def check_overlap(
    schema: Schema, rows: Floats, change: tuple[int, int], sizes: tuple[int, ...]
) -> Bools:
    """Return which rows to leave out; raise if many are in combinations without one of the levels.

    Combinations of few rows may lack a level by chance, unless all rows of one of their levels do.

    Parameters
    ----------
    schema
        The variables: cause, effect, and those to adjust for.
    rows
        Their columns, with levels as codes.
    change
        Codes of the two levels of the cause that are compared.
    sizes
        Numbers of levels of the variables to adjust for; 0 if they are continuous.
    """
    cause, _, *given = schema.names
    discrete = [j for j, size in enumerate(sizes) if size]
    own = rows[:, 0].astype(np.intp)
    every = combinations(own, change, rows[:, 2:], sizes)
    absent = every.lacking
    if absent.mean() <= FEW_ROWS:
        return absent
    structural = absent & (np.bincount(every.place)[every.place] >= _CHANCE)
    for j in discrete:
        structural |= combinations(own, change, rows[:, 2 + j : 3 + j], (sizes[j],)).lacking
    if structural.mean() <= FEW_ROWS:
        return structural
    largest = int(np.bincount(every.place[structural]).argmax())
    here = every.place == largest
    levels = schema[cause].levels
    missing = next(
        levels[c] for c, n in zip(change, every.counts[:, largest], strict=True) if not n
    )
    first = rows[here][0]
    where = " and ".join(
        f"{given[j]} = {schema[given[j]].levels[int(first[2 + j])]!r}" for j in discrete
    )
    total = ""
    if structural.sum() > here.sum():
        total = f"; all combinations without one of the levels have {structural.mean():.1%}"
    raise DataError(
        f"The effect of {cause!r} from {levels[change[0]]!r} to {levels[change[1]]!r} is not "
        f"determined by these data, which lack overlap (positivity): no row has {cause} = "
        f"{missing!r} and {where}, a combination that {here.mean():.1%} of rows have{total}. Ask "
        "for the effect in the other rows: leave these out of the table and learn again. Or merge "
        f"levels of {', '.join(given[j] for j in discrete)} that are alike."
    )
