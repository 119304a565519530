"""Check of time series: levels that drift, and seasons.

Rates of false alarms and power: ``benchmarks/results/assumptions.md``.
"""

from __future__ import annotations

import numpy as np

from isthmus.compose.assumptions.table import listed
from isthmus.sources import Source
from isthmus.statistics import Kind
from isthmus.types import Floats, Integers

_FEWEST_STEPS, _LONG, _MANY = 40, 90, 250
"""Rows of a realisation that is looked at. One of these must have 90 rows, or all together 250:
in fewer, series with a coefficient of 0.8 look like random walks (``results/assumptions.md``)."""
_FEWEST_FOR_SEASONS = 60
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

    Drifts are trends, random walks and changes of level. They are looked for in all realisations
    together, and seasons in the longest one. Cost: one Fourier transform per variable, about
    0.2 ms for 1,000 steps.
    """
    names = _present(source)
    realisations = _long_realisations(source)
    if len(names) < 2 or not realisations:
        return ()
    columns = list(source.schema().indices(names))
    rows = source.rows()
    return drifts_or_seasons(names, [rows[at][:, columns] for at in realisations])


def unchecked_series(source: Source) -> tuple[str, ...]:
    """Say that drifts could not be looked for: there are no rows, or too few of them."""
    schema = source.schema()
    lagged = any(v.lag is not None for v in schema.variables)
    if not lagged or len(_present(source)) < 2 or _long_realisations(source):
        return ()
    note = (
        "Trends and random walks were not looked for: this needs the rows of a series with at "
        f"least {_LONG} steps, or of several with {_FEWEST_STEPS} each and {_MANY} in all. If "
        "levels may drift, learn from the differences of successive rows."
    )
    return (note,)


def _present(source: Source) -> list[str]:
    """Names of the numbers now."""
    variables = source.schema().variables
    return [v.name for v in variables if v.lag is None and v.kind is Kind.CONTINUOUS]


def _long_realisations(source: Source) -> list[Integers]:
    """Return the rows of each realisation that is long enough, or nothing if these are few."""
    owners = source.realisation_of_rows()
    if owners is None:
        return []
    order = np.argsort(owners, kind="stable")
    each = np.split(order, np.flatnonzero(np.diff(owners[order])) + 1)
    long = [at for at in each if len(at) >= _FEWEST_STEPS]
    lengths = [len(at) for at in long]
    return long if max(lengths, default=0) >= _LONG or sum(lengths) >= _MANY else []


def drifts_or_seasons(names: list[str], realisations: list[Floats]) -> tuple[str, ...]:
    """Return a note on realisations: tables of consecutive steps, of shape (steps, variables)."""
    centred = [steps.T - steps.mean(axis=0)[:, None] for steps in realisations]
    longest = max(centred, key=lambda series: series.shape[1])
    return _drifts(names, centred) or _seasons(names, longest)


def _drifts(names: list[str], realisations: list[Floats]) -> tuple[str, ...]:
    shares = _between_quarters(realisations)
    length = float(np.mean([series.shape[1] for series in realisations]))
    least = max(_DRIFT, min(_MOST_DRIFT, _DRIFT_STEPS / length))
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


def _between_quarters(realisations: list[Floats]) -> Floats:
    """Return the share of each variable's variance that lies between quarters of realisations."""
    squares = np.zeros(len(realisations[0]))
    between = np.zeros(len(squares))
    for series in realisations:
        squares += np.einsum("ij,ij->i", series, series)
        for part in np.array_split(series, _QUARTERS, axis=1):
            between += part.sum(axis=1) ** 2 / part.shape[1]
    return np.asarray(between / np.where(squares > 0.0, squares, 1.0))


def _seasons(names: list[str], series: Floats) -> tuple[str, ...]:
    n = series.shape[1]
    if n < _FEWEST_FOR_SEASONS:
        return ()
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
