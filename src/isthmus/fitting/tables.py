"""Probability tables whose sparse rows are shrunk towards main effects."""

from __future__ import annotations

import numpy as np

from isthmus.fitting.logit import contrasts, optimum
from isthmus.statistics.fitting import probabilities
from isthmus.types import Floats, Integers

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
    cell, own = np.nonzero(counts)
    weights = optimum(x[:, cell], own, levels, pseudo_count, counts[cell, own])
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
