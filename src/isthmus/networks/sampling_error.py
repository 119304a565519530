"""Draws of the parameters of fitted networks, from which answers get their sampling errors.

The graph is taken as given. The parameters of a node are drawn from their posterior distribution:
probabilities with the weight of one row per combination of the parents, regressions with a
covariance for noise of any variance, if the network was fitted to rows, or else with the standard
noninformative prior. Covariances of regressors are those that the network implies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.networks.conditionals import (
    Columns,
    Conditional,
    ConditionalGaussian,
    CurvedGaussian,
    CurvedLogit,
    DiscreteConditional,
    Hurdle,
    MultinomialLogit,
    NormalConditional,
    ProbabilityTable,
    configuration,
    regress,
    spectrum,
)
from isthmus.options import check_level

DRAWS = 199
"""Draws of the parameters: limits of 95% are then the fifth draw from either end."""
MOST_REDRAWN = 32
"""Number of possible graphs above which answers to an intervention have no sampling errors."""
_CELLS = 40_000_000
"""Numbers in all drawn tables, above which fewer are drawn."""
ENOUGH = 6
"""Residual degrees of freedom below which `fit_mixed` adds a row to a regression."""
_SIMULATED = 10_000
"""Rows from which the covariances of regressors in a mixed network are computed."""
_FEW = 10
"""Simulated rows per regressor below which a combination has the covariances of all of them."""


class DrawnAnswer:
    """An answer whose parameters were estimated.

    Attributes
    ----------
    redraw
        Returns the probabilities, means or medians of the answer for drawn parameters, one draw
        per entry of the first axis. None if the sampling error is not known.
    """

    redraw: Callable[[], Floats] | None

    @cached_property
    def _drawn(self) -> Floats | None:
        return None if self.redraw is None else self.redraw()

    @property
    def sampling_error(self) -> Floats | None:
        """Standard error of each probability, mean or median, given the graph; None if unknown.

        It comes from 199 draws of the parameters, which are made when it is first asked for.
        """
        if self._drawn is None:
            return None
        error: Floats = self._drawn.std(axis=0)
        return error

    def confidence_interval(self, level: float = 0.95) -> tuple[Floats, Floats] | None:
        """Return the ends of an interval for each probability, mean or median, given the graph.

        It contains the true one with a probability of about `level` if the graph and the kind of
        model are right. None if the sampling error is not known.

        Parameters
        ----------
        level
            The probability, between 0 and 1 (0.95, not 95).
        """
        check_level(level)
        if self._drawn is None:
            return None
        ends = np.quantile(self._drawn, [(1 - level) / 2, (1 + level) / 2], 0, method="weibull")
        return ends[0], ends[1]


def drawn_tables(
    tables: Mapping[str, Floats], counts: Mapping[str, Integers], seed: int = 0
) -> dict[str, Floats]:
    """Draw probability tables; the first axis of each array are the draws."""
    rng = np.random.default_rng(seed)
    cells = sum(table.size for table in tables.values())
    draws = min(DRAWS, max(_CELLS // max(cells, 1), 19))
    return {name: _dirichlet(own, counts[name], draws, rng) for name, own in tables.items()}


def _dirichlet(table: Floats, counts: Integers, draws: int, rng: np.random.Generator) -> Floats:
    weights = table * counts.sum(axis=-1, keepdims=True) + 1.0 / table.shape[-1]
    drawn = rng.standard_gamma(weights, (draws, *table.shape))
    probabilities: Floats = drawn / drawn.sum(axis=-1, keepdims=True)
    return probabilities


def _regressions(
    centre: float,
    slopes: Floats,
    squares: float,
    mean: Floats,
    covariance: Floats,
    rows: float,
    freedom: float,
    rng: np.random.Generator,
    robust: Floats | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Draw intercepts, slopes and residual variances of a linear regression.

    Parameters
    ----------
    centre
        Fitted value at the mean of the regressors.
    slopes, squares
        The other estimates, and the sum of squared residuals.
    mean, covariance
        Of the regressors.
    rows, freedom
        Number of rows, and residual degrees of freedom.
    robust
        Covariance of the intercept and the slopes for noise of any variance, if it is known.
    """
    variances = squares / rng.chisquare(freedom, DRAWS)
    if robust is not None and robust[0, 0] > 0.0:
        values, vectors = np.linalg.eigh(robust)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        wide = np.sqrt(freedom / rng.chisquare(freedom, DRAWS))
        moved = (rng.standard_normal((DRAWS, len(root))) * wide[:, None]) @ root.T
        return centre - slopes @ mean + moved[:, 0], slopes + moved[:, 1:], variances
    scale = np.sqrt(variances / rows)
    normal = rng.standard_normal((DRAWS, 1 + len(slopes)))
    parts = spectrum(covariance)
    away = (normal[:, 1:] * parts.free / np.sqrt(parts.values)) @ parts.vectors.T / parts.spread
    drawn = slopes + scale[:, None] * away
    return centre + scale * normal[:, 0] - drawn @ mean, drawn, variances


def drawn_regressions(
    families: Mapping[str, list[int]],
    mean: Floats,
    covariance: Floats,
    rows: int,
    robust: Mapping[str, Floats] | None = None,
) -> Iterator[tuple[dict[str, float], dict[str, dict[str, float]], dict[str, float]]]:
    """Draw intercepts, coefficients and variances of a linear Gaussian network.

    Parameters
    ----------
    families
        The position of each node in the other arguments, and those of its parents.
    mean, covariance
        Of all nodes.
    rows
        Number of rows that the network was fitted to.
    robust
        Covariances of the intercept and the coefficients of each node for noise of any variance.
    """
    rng = np.random.default_rng(0)
    names = {family[0]: name for name, family in families.items()}
    drawn = {}
    for name, (child, *parents) in families.items():
        own = [*parents, child]
        fitted = regress(covariance[np.ix_(own, own)])
        drawn[name] = _regressions(
            float(mean[child]),
            fitted.coefficients,
            float(fitted.variance) * rows,
            mean[parents],
            covariance[np.ix_(parents, parents)],
            rows,
            max(rows - 1 - len(parents), 1),
            rng,
            None if robust is None else robust[name],
        )
    for i in range(DRAWS):
        intercepts = {name: float(own[0][i]) for name, own in drawn.items()}
        variances = {name: float(own[2][i]) for name, own in drawn.items()}
        coefficients = {
            name: {names[p]: float(b) for p, b in zip(families[name][1:], own[1][i], strict=True)}
            for name, own in drawn.items()
        }
        yield intercepts, coefficients, variances


def drawn_conditionals(
    conditionals: Mapping[str, Conditional], order: tuple[str, ...], seed: int = 0
) -> Iterator[dict[str, Conditional]]:
    """Draw the distributions of the nodes of a mixed network.

    Parameters
    ----------
    conditionals
        The fitted distributions, with the numbers of rows behind them.
    order
        The nodes, parents before children.
    """
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for name in order:
        columns[name] = conditionals[name].draw(columns, _SIMULATED, rng)
    rows = min(
        int(own.counts.sum()) for own in _with_counts(conditionals) if own.counts is not None
    )
    draw = {v: _prepared(own, columns, rows, rng) for v, own in conditionals.items()}
    for i in range(DRAWS):
        yield {name: own(i) for name, own in draw.items()}


def counted_rows(conditionals: Mapping[str, Conditional]) -> bool:
    """Return whether the numbers of rows behind the distributions are known."""
    rests = {v: one.rest for v, one in conditionals.items() if isinstance(one, Hurdle)}
    own = [*_with_counts(conditionals), *_with_counts(rests)]
    return bool(own) and all(one.counts is not None for one in own)


def _with_counts(
    conditionals: Mapping[str, Conditional],
) -> Iterator[ProbabilityTable | ConditionalGaussian]:
    """Yield what can have counts of all rows; roots of the graph always can."""
    for own in conditionals.values():
        one = own.elsewhere if isinstance(own, Hurdle) else own
        one = one.regression if isinstance(one, CurvedGaussian) else one
        if isinstance(one, ProbabilityTable | ConditionalGaussian):
            yield one


def _prepared(
    own: Conditional, columns: Columns, rows: int, rng: np.random.Generator
) -> Callable[[int], Conditional]:
    """Return a function from the number of a draw to the distribution of a node."""
    if isinstance(own, ProbabilityTable):
        assert own.counts is not None
        tables = _dirichlet(own.probabilities, own.counts, DRAWS, rng)
        return lambda i: replace(own, probabilities=tables[i])
    if isinstance(own, MultinomialLogit):
        root = _logit_root(own, columns, rows)
        changes = rng.standard_normal((DRAWS, len(root.T))) @ root.T
        return lambda i: _changed_logit(own, changes[i])
    if isinstance(own, CurvedGaussian | CurvedLogit):
        inner = _prepared(own.regression, own.columns(columns), rows, rng)
        return lambda i: own.with_regression(inner(i))
    if isinstance(own, Hurdle):
        elsewhere = _prepared(own.elsewhere, columns, rows, rng)
        rest = _prepared(own.rest, columns, rows, rng)

        def hurdle(i: int) -> Conditional:
            one, other = elsewhere(i), rest(i)
            assert isinstance(one, DiscreteConditional)
            assert isinstance(other, NormalConditional)
            return replace(own, elsewhere=one, rest=other)

        return hurdle
    assert isinstance(own, ConditionalGaussian)
    return _prepared_gaussian(own, _within(own, columns), rng)


def _within(own: ConditionalGaussian, columns: Columns) -> list[tuple[Floats, Floats]]:
    """Return mean and covariance of the continuous parents for each combination of the others."""
    k, cells = len(own.continuous), own.intercepts.size
    x = np.array([columns[v] for v in own.continuous]).reshape(k, _SIMULATED)
    if not k:
        return [(np.zeros(0), np.zeros((0, 0)))] * cells
    place = configuration(columns, own.discrete, own.intercepts.shape, _SIMULATED)
    groups = [x[:, place == cell] for cell in range(cells)]
    everything = x.mean(axis=1), np.cov(x, bias=True).reshape(k, k)
    return [
        (each.mean(axis=1), np.cov(each, bias=True).reshape(k, k))
        if each.shape[1] >= _FEW * (k + 1)
        else everything
        for each in groups
    ]


def _prepared_gaussian(
    own: ConditionalGaussian, moments: list[tuple[Floats, Floats]], rng: np.random.Generator
) -> Callable[[int], ConditionalGaussian]:
    assert own.counts is not None
    k, shape = len(own.continuous), own.intercepts.shape
    slopes = own.coefficients.reshape(own.intercepts.size, k)
    variances = own.variances.ravel()
    robust = None
    if own.covariances is not None:
        robust = own.covariances.reshape(own.intercepts.size, k + 1, k + 1)
    cells = []
    for cell, n in enumerate(own.counts.ravel().tolist()):
        mean, covariance = moments[cell]
        freedom = max(n - 1 - k, 0)
        few = freedom < ENOUGH
        squares = float(variances[cell]) * (freedom + 1 if few else n)
        centre = float(own.intercepts.ravel()[cell] + slopes[cell] @ mean)
        given = slopes[cell], squares, mean, covariance
        known = None if robust is None else robust[cell]
        cells.append(_regressions(centre, *given, n + few, freedom + few, rng, known))
    drawn = [np.stack(each, axis=1) for each in zip(*cells, strict=True)]
    return lambda i: replace(
        own,
        intercepts=drawn[0][i].reshape(shape),
        coefficients=drawn[1][i].reshape(*shape, k),
        variances=drawn[2][i].reshape(shape),
    )


def _logit_root(own: MultinomialLogit, columns: Columns, rows: int) -> Floats:
    """Return a square root of the covariance matrix of the parameters, level by level."""
    numbers = [columns[v] for v in own.continuous]
    codes = zip(own.discrete, own.effects, strict=True)
    levels = [columns[v] == level for v, effect in codes for level in range(1, len(effect))]
    x = np.array([np.ones(_SIMULATED), *numbers, *levels], dtype=np.float64)
    unit = np.sqrt((x**2).mean(axis=1)) + 1e-300
    spread = np.append(1.0, x[1:].std(axis=1)) / unit
    x /= unit[:, None]
    shares = np.exp(own.log_probabilities(columns, _SIMULATED))[:, 1:].T
    features, free = len(x), len(shares)
    information = np.zeros((free, features, free, features))
    for a in range(free):
        for b in range(free):
            weights = shares[a] * ((a == b) - shares[b])
            information[a, :, b] = (x * weights) @ x.T * (rows / _SIMULATED)
    size = free * features
    matrix = information.reshape(size, size)
    matrix[np.diag_indices(size)] += np.tile(np.append(0.0, spread[1:] ** 2), free) + 1e-9
    values, vectors = np.linalg.eigh(matrix)
    root: Floats = vectors / np.sqrt(np.maximum(values, 1e-9)) / np.tile(unit, free)[:, None]
    return root


def _changed_logit(own: MultinomialLogit, change: Floats) -> MultinomialLogit:
    by_level = change.reshape(len(own.levels) - 1, -1)
    moved = np.concatenate([np.zeros((1, by_level.shape[1])), by_level]).T
    k, effects, first = len(own.continuous), [], 1 + len(own.continuous)
    for effect in own.effects:
        more = np.concatenate([np.zeros((1, len(moved.T))), moved[first : first + len(effect) - 1]])
        effects.append(effect + more)
        first += len(effect) - 1
    return replace(
        own,
        intercepts=own.intercepts + moved[0],
        effects=tuple(effects),
        slopes=own.slopes + moved[1 : 1 + k],
    )
