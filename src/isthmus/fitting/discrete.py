"""Probability tables whose sparse rows are shrunk towards main effects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.fitting.logit import contrasts, optimum
from isthmus.networks.conditionals import Regression, regress, spectrum
from isthmus.statistics.fitting import probabilities

_WEIGHTS = 2.0 ** np.arange(-4.0, 16.5, 0.5)
"""Candidates for the weight of the main effects, in rows per combination of the parents."""


def shrunk_table(table: Integers | Floats, pseudo_count: float) -> Floats:
    """Return probabilities over the last axis of a table of counts.

    The rows of a combination of the parents are put together with a prior, a Dirichlet
    distribution around what the combination would have without interactions: the multinomial
    logistic regression on the levels of the parents (with one parent, the shares of all rows).
    How many rows this prior weighs is estimated from the table, by its marginal likelihood. So a
    combination with two rows has about what its levels have elsewhere, and one with many rows
    what its rows have.

    Parameters
    ----------
    table
        Numbers of rows, one axis per parent and a last one for the node.
    pseudo_count
        Weight of the prior of the main effects, in rows. With 0, nothing is shrunk.
    """
    shape = table.shape
    counts = np.asarray(table, np.float64).reshape(-1, shape[-1])
    wide = [size for size in shape[:-1] if size > 1]
    if pseudo_count == 0 or not wide or shape[-1] == 1:
        return probabilities(table, pseudo_count)
    if len(wide) == 1:
        centre = np.tile(probabilities(counts.sum(axis=0), pseudo_count), (len(counts), 1))
    else:
        centre = _main_effects(counts.reshape(*wide, shape[-1]), pseudo_count)
    weight = _weight(counts, centre)
    raised = counts + weight * centre
    estimated: Floats = (raised / raised.sum(axis=1, keepdims=True)).reshape(shape)
    return estimated


def _main_effects(table: Floats, pseudo_count: float) -> Floats:
    """Return the probabilities of a logistic regression on the levels of the parents."""
    *sizes, levels = table.shape
    places = np.indices(sizes).reshape(len(sizes), -1)
    x = np.concatenate(
        [np.ones((1, places.shape[1]))]
        + [contrasts(size).T[:, own] for size, own in zip(sizes, places, strict=True)]
    )
    counts = table.reshape(-1, levels)
    used = counts.any(axis=1)
    weights = optimum(x[:, used], counts[used].T.astype(np.float64), pseudo_count)
    logits = (weights.T @ x).T
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    centre: Floats = shares / shares.sum(axis=1, keepdims=True)
    return centre


def _weight(counts: Floats, centre: Floats) -> float:
    """Return the weight of the prior with the highest marginal likelihood of the counts."""
    from scipy.special import gammaln

    some = counts.sum(axis=1) > 0
    counts, centre = counts[some], np.maximum(centre[some], 1e-12)
    rows = counts.sum(axis=1)
    cell, own = np.nonzero(counts)
    seen, expected = counts[cell, own], centre[cell, own]
    logs = [
        float(
            (gammaln(a) - gammaln(a + rows)).sum()
            + (gammaln(a * expected + seen) - gammaln(a * expected)).sum()
        )
        for a in _WEIGHTS
    ]
    return float(_WEIGHTS[int(np.argmax(logs))])


# --- Linear regressions within the configurations of discrete parents ---------------------------

_ENOUGH = 6
"""Residual degrees of freedom from which a configuration has a regression of its own.

Chosen by the log-likelihood of new rows (`tests/fitting/test_prior_of_mixed_fits.py`). With fewer,
the variance of few residuals is often far too small; with more, configurations of different
spread are mixed without need.
"""
_BATCH = 2**18
"""Numbers in the covariance matrices of the configurations that are solved at a time."""


class ConfigurationRegressions(NamedTuple):
    """Regressions of all configurations: one row each."""

    intercepts: Floats
    coefficients: Floats
    variances: Floats
    counts: Integers


class _Groups(NamedTuple):
    """The configurations that occur, their rows, and means and scatter matrices of the columns."""

    cells: NDArray[np.intp]
    counts: Integers
    means: Floats
    scatters: Floats

    def part(self, some: slice) -> _Groups:
        """Return some of the configurations."""
        return _Groups(self.cells[some], self.counts[some], self.means[some], self.scatters[some])


def regress_within(
    columns: list[Floats],
    place: NDArray[np.intp],
    cells: int,
    pseudo_count: float,
    observed: NDArray[np.bool_] | None = None,
) -> ConfigurationRegressions:
    """Regress the last column on the others in each configuration.

    Parameters
    ----------
    columns
        The regressors, and the target.
    place
        The configuration of each row.
    cells
        Number of configurations.
    pseudo_count
        Weight of the prior, in rows; see `isthmus.fitting.fit_mixed`.
    observed
        Which rows have a value of the target that was not imputed; None for all. Only they count
        when it is decided whether a configuration has enough rows.
    """
    counts = np.bincount(place, minlength=cells)
    groups = _groups(columns, place, counts)
    informed = counts if observed is None else np.bincount(place[observed], minlength=cells)
    n, k = len(place), len(columns) - 1
    mean = groups.counts @ groups.means / n
    away = groups.means - mean
    total = (groups.scatters.sum(axis=0) + (groups.counts * away.T) @ away) / n
    pooled = _pooled(groups, total, n)
    common = regress(pooled).coefficients
    # A configuration without rows: the common slopes, and what all rows have about them.
    change = np.append(-common, 1.0)
    intercepts = np.full(cells, mean[k] - common @ mean[:k])
    coefficients = np.tile(common, (cells, 1))
    variances = np.full(cells, max(float(change @ total @ change), 0.0))
    step = max(_BATCH // (k + 1) ** 2, 1)
    for start in range(0, len(groups.cells), step):
        part = groups.part(slice(start, start + step))
        fitted = _solve(part, informed[part.cells], pooled, common, pseudo_count)
        coefficients[part.cells], variances[part.cells] = fitted.coefficients, fitted.variance
        explained = (fitted.coefficients * part.means[:, :k]).sum(axis=1)
        intercepts[part.cells] = part.means[:, k] - explained
    return ConfigurationRegressions(intercepts, coefficients, variances, counts)


def _groups(columns: list[Floats], place: NDArray[np.intp], counts: Integers) -> _Groups:
    """Sum up the rows of each configuration, about its own mean."""
    cells = np.flatnonzero(counts)
    number = np.zeros(len(counts), np.intp)
    number[cells] = np.arange(len(cells))
    group, sizes = number[place], counts[cells]
    first = np.empty(len(cells), np.intp)
    first[group[::-1]] = np.arange(len(place))[::-1]
    p = len(columns)
    means, scatters = np.empty((len(cells), p)), np.empty((len(cells), p, p))
    deviations = []
    for j, column in enumerate(columns):
        # From the first row of its configuration, a constant deviates by exactly zero.
        away = column - column[first][group]
        mean = np.bincount(group, away, len(cells)) / sizes
        means[:, j] = column[first] + mean
        deviations.append(away - mean[group])
        for i, other in enumerate(deviations):
            products = np.bincount(group, other * deviations[j], len(cells))
            scatters[:, i, j] = scatters[:, j, i] = products
    return _Groups(cells, sizes, means, scatters)


def _pooled(groups: _Groups, total: Floats, n: int) -> Floats:
    """Return the covariance of the prior: within configurations, or of all rows if they are few."""
    k, within = total.shape[0] - 1, n - len(groups.cells)
    if within - k >= _ENOUGH:
        pooled: Floats = groups.scatters.sum(axis=0) / within
        if regress(pooled).variance > 0.0:
            return pooled
    if n - 1 - k >= _ENOUGH and regress(total).variance > 0.0:
        return total
    return np.diag(np.diagonal(total))


def _solve(
    groups: _Groups, informed: Integers, pooled: Floats, common: Floats, pseudo_count: float
) -> Regression:
    """Return the regressions of configurations that occur."""
    sizes = groups.counts.astype(np.float64)
    own = regress(groups.scatters / sizes[:, None, None], common)
    if pseudo_count == 0:
        return own
    residual = np.maximum(sizes - 1.0 - own.rank, 0.0)
    few = np.minimum(residual, informed - 1.0 - own.rank) < _ENOUGH
    added = groups.scatters[few] + pseudo_count * pooled
    shrunk = regress(added, common)
    # Slopes with a prior take less than their rank, so that rounding cannot leave a negative rest.
    rest = np.maximum(sizes[few] - 1.0 - _spent(groups.scatters[few], added), residual[few])
    own.coefficients[few] = shrunk.coefficients
    own.variance[few] = shrunk.variance / (rest + pseudo_count)
    exact = own.variance == 0.0
    prior = pseudo_count * float(regress(pooled).variance)
    own.variance[exact] = prior / (np.where(few, residual, sizes)[exact] + pseudo_count)
    return own


def _spent(scatters: Floats, added: Floats) -> Floats:
    """Return the degrees of freedom that slopes take from the rows of each configuration.

    With the prior in `added`, it is the trace of the ridge regression's hat matrix: less than one
    for each slope, and zero for a single row. By counting them, the variance is unbiased if the
    configuration has the common slopes and variance, however few rows it has.
    """
    parts = spectrum(added[:, :-1, :-1])
    unit = parts.spread
    own = scatters[:, :-1, :-1] / unit[:, :, None] / unit[:, None, :]
    spent: Floats = np.trace(parts.solve(own), axis1=-2, axis2=-1)
    return spent
