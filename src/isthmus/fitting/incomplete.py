"""The standard error of an effect whose moments were estimated from incomplete rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from isthmus import watch
from isthmus.arrays import Floats
from isthmus.fitting.networks import fit_mixed
from isthmus.graphs import DAG
from isthmus.networks import (
    Conditional,
    ConditionalGaussian,
    MixedNetwork,
    MultinomialLogit,
    ProbabilityTable,
)
from isthmus.networks.conditionals import Columns, configuration
from isthmus.networks.mixed_queries import level_probabilities
from isthmus.statistics import Rows, Schema

_MOST = 100
"""Number of variables above which information about their covariances is not computed."""
_STEPS, _EXACT = 500, 1e-20
"""Largest number of steps of conjugate gradients, and the share of the squares that may be left."""


def incomplete_error(rows: Floats, mean: Floats, covariance: Floats, slopes: Floats) -> float:
    """Return the standard error of the first coefficient of a regression; NaN if it is not known.

    The likelihood of the rows tells how much each of them moves the estimated covariances, and
    these the coefficient (the sandwich of observed data, for values missing at random regardless of
    others). Residuals of rows with missing values include the error of what was expected for them,
    so that no number of rows has to be assumed.

    Parameters
    ----------
    rows
        The regressors, the cause first, and the outcome as the last column, with NaN for missing
        values.
    """
    p = rows.shape[1]
    if p > _MOST:
        return np.nan
    scale = np.sqrt(covariance.diagonal())
    covariance = covariance / np.outer(scale, scale)
    away = (rows - mean) / scale
    slopes = slopes * scale[:-1] / scale[-1]
    inner = np.linalg.inv(covariance[:-1, :-1])
    direction = np.outer(np.append(inner[0], 0.0), np.append(-slopes, 1.0))
    parts = [*_patterns(away, covariance)]
    weights = np.array([weight for _, weight in parts])
    often = np.array([len(own) for own, _ in parts], dtype=np.float64)
    solved = _solved(weights, often, direction + direction.T)
    squares = 0.0
    for residual, weight in parts:
        influence = np.einsum("ij,ij->i", residual @ (weight @ solved @ weight), residual)
        squares += float(((influence - np.trace(weight @ solved)) ** 2).sum())
    return float(0.5 * np.sqrt(squares) * scale[-1] / scale[0])


def _solved(weights: Floats, often: Floats, gradient: Floats) -> Floats:
    """Divide the gradient by the information about covariances, by conjugate gradients.

    The information takes a matrix D to half the sum of W D W over rows, with their precisions W.
    """
    solved, rest = np.zeros_like(gradient), 0.5 * gradient
    step, size = rest, float((rest**2).sum())
    enough = _EXACT * size
    for _ in range(_STEPS):
        if size <= enough:
            break
        moved = 0.5 * np.tensordot(often, weights @ step @ weights, 1)
        length = size / float((step * moved).sum())
        solved = solved + length * step
        rest = rest - length * moved
        size, before = float((rest**2).sum()), size
        step = rest + size / before * step
    return solved


def _patterns(away: Floats, covariance: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield for each pattern of values its rows, with zeros, and their precision.

    The precision is that of the values that are there, and zero elsewhere.
    """
    there = ~np.isnan(away)
    patterns, which = np.unique(there, axis=0, return_inverse=True)
    for number, pattern in enumerate(patterns):
        own = which.ravel() == number
        if pattern.any():
            weight = np.zeros_like(covariance)
            place = np.ix_(pattern, pattern)
            weight[place] = np.linalg.inv(covariance[place])
            yield np.where(pattern, away[own], 0.0), weight


# --- Parameters of mixed networks from rows with missing values, by multiple imputation ---------

_WARM_UP, _COMPLETIONS = 15, 25
"""Completions of the rows that are not used, and that are averaged over. Not tuned: they estimate
the parameters in ``tests/verbs/test_missing_mixed.py`` within three standard errors."""


def fit_incomplete(
    schema: Schema, values: Floats, dag: DAG, *, pseudo_count: float = 1.0, seed: int = 0
) -> MixedNetwork:
    """Estimate the parameters of a network of mixed variables from incomplete rows.

    Missing values are drawn from their distribution given the observed ones in the current
    network, parameters are fitted to the completed rows, and so on. The result has the mean of the
    parameters over the last completions (stochastic expectation-maximisation). Values may be
    missing at random, that is, depending on other values that are observed.

    Parameters
    ----------
    schema
        The variables of the rows, which are the nodes of the graph.
    values
        Shape (n, d): numbers, or codes of levels, with NaN for missing values.
    dag
        The graph.
    pseudo_count
        Weight of the prior, as for `fit_mixed`.
    seed
        Random seed of the draws.
    """
    networks = [network for network, _ in completions(schema, values, dag, pseudo_count, seed)]
    averaged = {
        name: _with_counts(
            _mean([network.conditionals[name] for network in networks]), schema, values, name
        )
        for name in dag.nodes
    }
    return MixedNetwork(dag, averaged)


def _with_counts(own: Conditional, schema: Schema, values: Floats, name: str) -> Conditional:
    """Count the rows that are complete for a node and its parents, as discrete networks do."""
    if isinstance(own, MultinomialLogit):
        return own
    assert isinstance(own, ProbabilityTable | ConditionalGaussian)
    rows = values[~np.isnan(values[:, schema.indices((name, *own.parents))]).any(axis=1)]
    columns = {v: rows[:, schema.index(v)] for v in (name, *own.parents)}
    table = isinstance(own, ProbabilityTable)
    shape = own.probabilities.shape if isinstance(own, ProbabilityTable) else own.intercepts.shape
    names = (*own.parents, name) if table else own.parents[: len(shape)]
    place = configuration(columns, names, shape, len(rows))
    return replace(own, counts=np.bincount(place, minlength=prod(shape)).reshape(shape))


def completions(
    schema: Schema,
    values: Floats,
    dag: DAG,
    pseudo_count: float = 1.0,
    seed: int = 0,
    number: int = _COMPLETIONS,
) -> Iterator[tuple[MixedNetwork, Floats]]:
    """Draw completed rows, each with the network that was fitted to them.

    Parameters
    ----------
    schema, values, dag, pseudo_count, seed
        As for `fit_incomplete`.
    number
        Number of completions.
    """
    rng = np.random.default_rng(seed)
    absent = np.isnan(values)
    rows = values.copy()
    for j in np.flatnonzero(absent.any(axis=0)).tolist():
        there = values[~absent[:, j], j]
        rows[absent[:, j], j] = rng.choice(there, int(absent[:, j].sum()))
    for step in range(_WARM_UP + number):
        watch.check()
        fitted = Rows(schema, rows)
        network = fit_mixed(fitted, dag, pseudo_count=pseudo_count, observed=~absent)
        rows = sweep(network, schema, rows, absent, rng)
        if step >= _WARM_UP:
            yield network, rows


def sweep(
    network: MixedNetwork, schema: Schema, rows: Floats, absent: NDArray[np.bool_], rng: Generator
) -> Floats:
    """Draw each missing value given all others of its row, variable by variable."""
    rows = rows.copy()
    for j, target in enumerate(schema.names):
        own = np.flatnonzero(absent[:, j])
        if not len(own):
            continue
        blanket = (target, *network.dag.markov_blanket(target))
        columns = {v: rows[own, schema.index(v)] for v in blanket}
        if network.conditionals[target].levels:
            chances = level_probabilities(
                network.dag, network.conditionals, columns, target, len(own)
            )
            above = rng.random((len(own), 1)) >= np.cumsum(chances, axis=1)[:, :-1]
            rows[own, j] = above.sum(axis=1)
        else:
            rows[own, j] = _number(network, columns, target, rng)
    return rows


def _number(network: MixedNetwork, columns: Columns, target: str, rng: Generator) -> Floats:
    """Draw a continuous variable given its Markov blanket.

    With continuous children it is normal. A draw of this normal distribution is a proposal, which
    is accepted by the likelihood of the discrete children (Metropolis and Hastings).
    """
    own, before = network.conditionals[target], columns[target]
    assert isinstance(own, ConditionalGaussian)
    n = len(before)
    mean, variance = own.mean(columns, n), own.variance(columns, n)
    zero = {**columns, target: np.zeros(n)}
    discrete = []
    for child in network.dag.children(target):
        given = network.conditionals[child]
        if not isinstance(given, ConditionalGaussian):
            discrete.append(child)
            continue
        place = configuration(columns, given.discrete, given.intercepts.shape, n)
        slopes = given.coefficients.reshape(given.intercepts.size, len(given.continuous))
        slope = slopes[place, given.continuous.index(target)]
        # The posterior of a normal variable after one more measurement, slope * x + noise.
        total = given.variance(columns, n) + slope**2 * variance
        gain = np.divide(slope * variance, total, out=np.zeros(n), where=total > 0)
        mean = mean + gain * (columns[child] - given.mean(zero, n) - slope * mean)
        variance = np.maximum(variance - gain * slope * variance, 0.0)
    drawn: Floats = mean + np.sqrt(variance) * rng.standard_normal(n)
    if not discrete:
        return drawn
    proposed = {**columns, target: drawn}
    gains = np.zeros(n)
    for child in discrete:
        given = network.conditionals[child]
        gains += given.log_density(columns[child], proposed)
        gains -= given.log_density(columns[child], columns)
    return np.where(np.log(rng.random(n)) < gains, drawn, before)


def _mean(fitted: Sequence[Conditional]) -> Conditional:
    """Return the distribution with the mean of the parameters."""
    first = fitted[0]

    def mean(name: str) -> Any:
        return np.mean([getattr(one, name) for one in fitted], axis=0)

    if isinstance(first, MultinomialLogit):
        pairs = zip(
            *(one.effects for one in fitted if isinstance(one, MultinomialLogit)), strict=True
        )
        effects = tuple(np.mean(each, axis=0) for each in pairs)
        return replace(first, intercepts=mean("intercepts"), effects=effects, slopes=mean("slopes"))
    if isinstance(first, ProbabilityTable):
        return replace(first, probabilities=mean("probabilities"))
    assert isinstance(first, ConditionalGaussian)
    return replace(
        first,
        intercepts=mean("intercepts"),
        coefficients=mean("coefficients"),
        variances=mean("variances"),
    )
