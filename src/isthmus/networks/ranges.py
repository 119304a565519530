"""Evidence that numbers lie within ranges, for normal distributions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError
from isthmus.networks.columns import finite, impossible
from isthmus.networks.distributions import Normal, NormalMixture

_PANELS, _EACH = 100, 10
"""Panels of quadrature for one range, and points in each."""
_FAR = 8.0
"""Standard deviations from the centre of a distribution that are integrated."""
_DRAWS = 20_000
"""Draws for several ranges."""

Ranges = Mapping[str, tuple[float, float]]
"""For nodes of which only a range is known, its ends."""


def range_of(name: str, given: slice) -> tuple[float, float]:
    """Return the ends of a range, which may be infinite."""
    low, high = (
        default if end is None or end == default else finite(end, f"An end of {name!r}")
        for end, default in ((given.start, -np.inf), (given.stop, np.inf))
    )
    if given.step is not None or not low < high:
        raise ArgumentError(
            f"A range of {name!r} is slice(low, high) with low below high, or None for an open "
            f"end; got {given!r}."
        )
    return low, high


def without_ranges(
    seen: Mapping[str, Any], discrete: Collection[str] = ()
) -> tuple[dict[str, Any], dict[str, tuple[float, float]]]:
    """Return what is observed otherwise, and the ranges of continuous nodes."""
    ranges = {v: range_of(v, x) for v, x in seen.items() if isinstance(x, slice)}
    for name in ranges:
        if name in discrete:
            raise ArgumentError(
                f"{name!r} is discrete, and a range is for numbers. Give a set of its levels."
            )
    return {v: x for v, x in seen.items() if v not in ranges}, ranges


def within(normal: Normal, asked: tuple[str, ...], ranges: Ranges) -> NormalMixture:
    """Return the distribution of some variables, given that others, or they, lie within ranges.

    Given values of the variables with ranges, the others are normal. One such variable is
    integrated numerically. Several are drawn one after the other, each within its range, and
    weighted by the probabilities of the ranges (Geweke 1991, Hajivassiliou, Keane).
    """
    targets = [normal.names.index(v) for v in asked]
    places = [normal.names.index(v) for v in ranges]
    rng = np.random.default_rng(0)
    many = len(places) > 1
    values, logs = np.zeros((_DRAWS if many else _PANELS * _EACH, 0)), np.zeros(1)
    for j, place in enumerate(places):
        slopes, (variance,) = _given(normal.covariance, [place], places[:j])
        mean = normal.mean[place] + (values - normal.mean[places[:j]]) @ slopes[0]
        ends = np.array(ranges[normal.names[place]])
        draw = _drawn if many else _integrated
        own, more = draw(mean, float(np.sqrt(max(variance[0], 0.0))), ends, rng)
        values, logs = np.column_stack([values, own]), logs + more
    if np.isneginf(logs.max()):
        raise impossible()
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    slopes, rest = _given(normal.covariance, targets, places)
    means = normal.mean[targets] + (values - normal.mean[places]) @ slopes.T
    covariances = np.broadcast_to(rest, (len(means), *rest.shape))
    return NormalMixture(asked, weights, means, covariances, simulated=many)


def _given(covariance: Floats, of: list[int], given: list[int]) -> tuple[Floats, Floats]:
    """Return slopes on the given variables, and the covariance that they leave."""
    cross = covariance[np.ix_(of, given)]
    slopes = cross @ np.linalg.pinv(covariance[np.ix_(given, given)], hermitian=True)
    rest = covariance[np.ix_(of, of)] - slopes @ cross.T
    np.fill_diagonal(rest, np.maximum(rest.diagonal(), 0.0))
    return slopes, rest


def _integrated(
    mean: Floats, spread: float, ends: Floats, _: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return points of a normal variable within a range, and the logarithms of their weights."""
    centre = float(mean[0])
    # In a tail, most of the probability is near the end.
    nearest = float(np.clip(centre, *ends))
    low, high = max(ends[0], nearest - _FAR * spread), min(ends[1], nearest + _FAR * spread)
    points, weights = np.polynomial.legendre.leggauss(_EACH)
    values = low + np.add.outer(np.arange(_PANELS), (points + 1.0) / 2.0) * (high - low) / _PANELS
    values, logs = values.ravel(), np.tile(np.log(weights), _PANELS)
    if spread == 0.0:
        return values, np.where(nearest == centre, logs, -np.inf)
    return values, logs - 0.5 * ((values - centre) / spread) ** 2


def _drawn(
    mean: Floats, spread: float, ends: Floats, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return draws of normal variables within a range, and log-probabilities of the range."""
    from scipy.special import log_ndtr, ndtri_exp

    mean = np.broadcast_to(mean, _DRAWS)
    if spread == 0.0:
        inside = (ends[0] <= mean) & (mean <= ends[1])
        return mean, np.where(inside, 0.0, -np.inf)
    low, high = ((end - mean) / spread for end in ends)
    # Tails are computed on the left, where probabilities are not differences from one.
    side = np.where(low > 0.0, -1.0, 1.0)
    low, high = np.where(side < 0, -high, low), np.where(side < 0, -low, high)
    top, share = log_ndtr(high), np.exp(log_ndtr(low) - log_ndtr(high))
    drawn = ndtri_exp(top + np.log(share + (1.0 - share) * rng.random(_DRAWS)))
    return mean + side * spread * drawn, top + np.log1p(-share)
