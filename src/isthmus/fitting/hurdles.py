"""Continuous nodes that often have exactly one value, such as zero."""

from __future__ import annotations

import numpy as np

from isthmus.fitting.covariances import robust
from isthmus.fitting.curves import curve_numbers
from isthmus.fitting.families import ParentRows, fit_levels, fit_regression
from isthmus.models import ConditionalGaussian, Hurdle
from isthmus.models.conditionals import Columns, NormalConditional
from isthmus.types import Floats

_SHARE = 0.05
"""Share of the rows that the most frequent value needs. A normal distribution is not much worse
where it has fewer, and answers with it have closed forms."""
_FEWEST = 10
"""Least number of rows with that value, and of rows with others."""


def fit_numbers(
    own: Floats, family: ParentRows, pseudo_count: float, nodes: int
) -> NormalConditional | Hurdle:
    """Estimate the distribution of a continuous node: regressions, or a hurdle if that pays.

    Regressions have curves and interactions where these pay (`curve_numbers`).

    A value has a probability in a hurdle and a density in a regression. To compare them, all
    numbers are taken as rounded, to the median difference of neighbouring ones: then both are
    probabilities. The hurdle is chosen if they are higher by more than the parameters cost in the
    BIC.

    Parameters
    ----------
    own
        The values of the node.
    family
        The rows of its parents.
    pseudo_count
        Weight of the prior, in rows.
    nodes
        Number of nodes of the network; 0 for lines alone.
    """
    lines = fit_regression(own, family, pseudo_count)
    plain = curve_numbers(own, family, lines, pseudo_count, nodes)
    values, counts = np.unique(own, return_counts=True)
    at, most = float(values[counts.argmax()]), int(counts.max())
    few = max(_FEWEST, _SHARE * len(own))
    if most < few or len(own) - most < _FEWEST or len(values) < 4:
        return robust(plain, own, family.columns())
    unit = float(np.median(np.diff(values)))
    away = own != at
    part = family.part(np.flatnonzero(away))
    elsewhere = fit_levels(away.astype(np.intp), (False, True), family, pseudo_count)
    rest, side, score = _rest(own[away], at, part, pseudo_count, unit, nodes)
    score += float(elsewhere.log_density(away, family.columns()).sum())
    score -= 0.5 * np.log(len(own)) * (1 + elsewhere.parameters)
    against = float(_log_chances(plain, own, family.columns(), unit).sum())
    against -= 0.5 * np.log(len(own)) * plain.parameters
    if score > against:
        return Hurdle(at, elsewhere, rest, side)
    return robust(plain, own, family.columns())


def _rest(
    values: Floats, at: float, family: ParentRows, pseudo_count: float, unit: float, nodes: int
) -> tuple[NormalConditional, int, float]:
    """Return the regression of the other values, what it describes (`Hurdle.side`), and its BIC."""
    own, score = _paying(values, np.full(len(values), unit), family, pseudo_count, nodes)
    side = 1 if values.min() > at else -1 if values.max() < at else 0
    if side:
        distance = np.abs(values - at)
        other, better = _paying(np.log(distance), unit / distance, family, pseudo_count, nodes)
        if better > score:
            return other, side, better
    return own, 0, score


def _paying(
    inner: Floats, widths: Floats, family: ParentRows, pseudo_count: float, nodes: int
) -> tuple[NormalConditional, float]:
    """Regress on the parents that pay for themselves, added one by one, and return the BIC."""
    columns = family.columns()

    def scored(names: tuple[str, ...]) -> tuple[ConditionalGaussian, float]:
        own = fit_regression(inner, family.keep(names), pseudo_count)
        return own, _score(own, inner, columns, widths)

    chosen: tuple[str, ...] = ()
    best, score = scored(chosen)
    while len(chosen) < len(family.names):
        trials = {v: scored((*chosen, v)) for v in family.names if v not in chosen}
        name = max(trials, key=lambda v: trials[v][1])
        if trials[name][1] <= score:
            break
        chosen, (best, score) = (*chosen, name), trials[name]
    kept: NormalConditional = best
    for some in dict.fromkeys((chosen, family.names)):  # a curve may pay where its line does not
        part = family.keep(some)
        start = best if some == chosen else fit_regression(inner, part, pseudo_count)
        own = curve_numbers(inner, part, start, pseudo_count, nodes)
        found = _score(own, inner, columns, widths)
        if found > score:
            kept, score = own, found
    return robust(kept, inner, columns), score


def _score(own: NormalConditional, values: Floats, columns: Columns, widths: Floats) -> float:
    logs = float(_log_chances(own, values, columns, widths).sum())
    return logs - 0.5 * float(np.log(len(values))) * own.parameters


def _log_chances(
    own: NormalConditional,
    values: Floats,
    columns: Columns,
    widths: Floats | float,
) -> Floats:
    """Return the log-probabilities of intervals of these widths around values."""
    variance = own.variance(columns, len(values)) + np.square(widths) / 12.0
    residual = values - own.mean(columns, len(values))
    logs = np.log(widths) - 0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
    return np.minimum(logs, 0.0)
