"""The effect of a continuous cause: its average slope over the rows, from a regression.

Outcomes are regressed on the cause, the variables to adjust for, and the curves and interactions of
both that pay for their terms. The effect is the average of the derivative of that regression by the
cause, over all rows: with lines alone, the coefficient of the cause.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isthmus.errors import DataError
from isthmus.fitting.curved_terms import Equation, RegressionColumn, Term, select_terms
from isthmus.fitting.estimate import Estimate
from isthmus.fitting.sandwich import sandwich
from isthmus.models.least_squares import spectrum
from isthmus.plurals import counted
from isthmus.types import Floats, Integers


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


def _selected(columns: Sequence[RegressionColumn], outcome: Floats) -> tuple[Term, ...]:
    """Return the terms that tell of the outcome, or, of the other variables, of the cause."""
    everything = tuple(range(len(columns)))
    ones = np.ones(len(outcome))

    def regression(target: Floats, lines: tuple[int, ...]) -> Equation:
        def fit(chosen: tuple[Term, ...]) -> tuple[Floats, Floats, Floats]:
            used = [t for t in chosen if set(t.factors) <= set(lines)]
            design = np.stack(
                [ones, *(columns[i].values for i in lines), *(t.values(columns) for t in used)],
                axis=1,
            )
            return design, target - design @ np.linalg.lstsq(design, target, rcond=None)[0], ones

        return Equation(fit, lines)

    equations = [regression(outcome / (outcome.std() or 1.0), everything)]
    if len(columns) > 1:
        equations.append(regression(columns[0].values, everything[1:]))
    return select_terms(columns, equations)


def _partial(design: Floats, outcome: Floats) -> float:
    """Return the partial correlation of the cause, the second column, and the outcome."""
    others = np.delete(design, 1, axis=1)
    both = np.stack([design[:, 1], outcome], axis=1)
    x, y = (both - others @ np.linalg.lstsq(others, both, rcond=None)[0]).T
    size = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / size if size > 0.0 else 0.0
