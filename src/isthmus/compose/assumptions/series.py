"""Check of time series: levels that drift, and seasons.

Rates of false alarms and power: ``benchmarks/results/assumptions.md``.
"""

from __future__ import annotations

import numpy as np

from isthmus.compose.assumptions.table import listed
from isthmus.sources import Source
from isthmus.types import Floats

_FEWEST_STEPS = 60
_QUARTERS = 4
_DRIFT, _MOST_DRIFT, _DRIFT_STEPS = 0.35, 0.6, 100.0
"""Share of the variance between the quarters of a series that is a drift: at least, at most, and as
a number of steps per length of the series. The share of an autoregressive series with coefficient
0.8 is about 36 divided by its length; that of a random walk is 0.75, of any length."""
_SEASON, _SEASON_STEPS = 0.35, 60.0
"""The same for the share of the variance at one frequency, with its neighbour."""
_SLOWEST, _FASTEST = 7, 0.4
"""Cycles per series, and per step, of a season: slower ones are drifts, and faster ones alternate
from step to step, as autoregressive series with negative coefficients do."""


def unsteady_series(source: Source) -> tuple[str, ...]:
    """Find at least two variables of a time series that drift or have a common season.

    Drifts are trends, random walks and changes of level. The longest realisation is looked at.
    Cost: one Fourier transform per variable, about 0.2 ms for 1,000 steps.
    """
    owners = source.realisation_of_rows()
    if owners is None or len(owners) < _FEWEST_STEPS:
        return ()
    at = owners == np.bincount(owners).argmax()
    n = int(at.sum())
    names = [v.name for v in source.schema().variables if v.lag is None]
    if n < _FEWEST_STEPS or len(names) < 2:
        return ()
    columns = list(source.schema().indices(names))
    return drifts_or_seasons(names, source.rows()[:, columns][at])


def drifts_or_seasons(names: list[str], steps: Floats) -> tuple[str, ...]:
    """Return a note on a table of consecutive steps, of shape (steps, variables)."""
    series = steps.T - steps.mean(axis=0)[:, None]
    return _drifts(names, series) or _seasons(names, series)


def _drifts(names: list[str], series: Floats) -> tuple[str, ...]:
    shares = _between_quarters(series)
    least = max(_DRIFT, min(_MOST_DRIFT, _DRIFT_STEPS / series.shape[1]))
    found = [k for k, share in enumerate(shares) if share > least]
    if len(found) < 2:
        return ()
    note = (
        "Learn from the differences of successive rows: the levels of "
        f"{listed([names[k] for k in found])} change over time, as trends and random walks do "
        f"({np.median(shares[found]):.0%} of the variance lies between quarters of the series). "
        f"Common drifts lead to false edges, above all between earlier values such as "
        f"'{names[found[0]]}@1' and '{names[found[1]]}@1'."
    )
    return (note,)


def _between_quarters(series: Floats) -> Floats:
    """Return the share of the variance of each row of an array that lies between its quarters."""
    squares = np.einsum("ij,ij->i", series, series)
    between = np.zeros(len(series))
    for part in np.array_split(series, _QUARTERS, axis=1):
        between += part.sum(axis=1) ** 2 / part.shape[1]
    return np.asarray(between / np.where(squares > 0.0, squares, 1.0))


def _seasons(names: list[str], series: Floats) -> tuple[str, ...]:
    n = series.shape[1]
    # Without a linear trend, which has some of every frequency.
    time = np.linspace(-1.0, 1.0, n)
    power = np.abs(np.fft.rfft(series - np.outer(series @ time, time / (time @ time)))) ** 2
    power[:, 0] = 0.0
    squares = power.sum(axis=1, keepdims=True)
    power /= np.where(squares > 0.0, squares, 1.0)
    pairs = (power[:, :-1] + power[:, 1:])[:, _SLOWEST : int(_FASTEST * n)]
    least = max(_SEASON, _SEASON_STEPS / n)
    found = np.flatnonzero(pairs.max(axis=1, initial=0.0) > least)
    if len(found) < 2:
        return ()
    # Between the two frequencies, the weighted mean is closer than either.
    low = int(pairs[found[0]].argmax()) + _SLOWEST
    share = power[found[0], low : low + 2]
    period = n / (low + share[1] / share.sum())
    note = (
        f"Learn from the differences of rows one season apart: {listed([names[k] for k in found])} "
        f"repeat about every {period:.3g} steps (one frequency has "
        f"{pairs[found].max(axis=1).mean():.0%} of the variance). Common seasons lead to false "
        "edges."
    )
    return (note,)
