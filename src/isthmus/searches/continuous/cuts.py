"""Graphs cut out of weights by a threshold, which a criterion chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.kernels import _native
from isthmus.kernels.continuous import ShrinkingRegression, ascending
from isthmus.searches.continuous.notears_penalties import PenaltyCriterion
from isthmus.types import Bools, Floats, Integers, Work

_DETERMINED = 1e-10
"""Share of the variance below which a variable counts as determined by its parents."""
_SLICE = 0.02
"""Seconds per step of the regressions."""
_THRESHOLDS = 500
"""Number of thresholds compared in one step."""


@final
@dataclass(frozen=True, eq=False)
class Cut:
    """A graph cut out of weights: those of at least ``threshold`` and the required ones."""

    threshold: float
    criterion: float | None
    kept: Bools


def cut_at(weights: Floats, threshold: float, required: Bools) -> Cut:
    """Keep the weights of at least the threshold that are not zero."""
    kept = ((np.abs(weights) >= threshold) & (weights != 0.0)) | required
    return Cut(threshold, None, kept)


def judged(cut: Cut, moments: Floats, rows: int, by: PenaltyCriterion) -> Work[Cut]:
    """Add the criterion; None where a column has nearly as many parents as rows."""
    weights = np.where(cut.kept, 1.0, 0.0)
    same = yield from best_cut(weights, moments, rows, cut.kept, by)
    return Cut(cut.threshold, same.criterion, cut.kept)


def best_cut(
    weights: Floats, moments: Floats, rows: int, required: Bools, by: PenaltyCriterion
) -> Work[Cut]:
    """Choose the threshold that the criterion prefers.

    Each removed edge changes one column, so all thresholds together cost one update of a
    regression per edge. Columns with nearly as many parents as rows fit anything: no threshold
    that leaves one is considered.
    """
    kept = (weights != 0.0) | required
    sources, targets = np.nonzero(kept & ~required)
    yield
    rank = ascending(np.abs(weights[sources, targets]))
    sources, targets = sources[rank], targets[rank]
    yield
    removals = _by_variable(targets, len(kept))
    first = _first_trusted(kept, removals, max(rows - 2, 1))
    if first is None:
        return Cut(np.inf, None, required.copy())
    yield
    kept[sources[:first], targets[:first]] = False
    removed = [sources[own[own >= first]] for own in removals]
    left, edges = yield from _refits(kept, moments, removed, rows, by)
    best, best_at = np.inf, len(rank)
    stage = np.zeros(len(kept), np.int64)
    residual = np.array([column[0] for column in left])
    costs = np.array([column[0] for column in edges])
    count = int(kept.sum())
    for at in range(first, len(rank) + 1):
        total = by.total(residual, float(costs.sum()), count, rows)
        if total < best:
            best, best_at = total, at
        if at < len(rank):
            j = targets[at]
            stage[j] += 1
            residual[j], costs[j] = left[j][stage[j]], edges[j][stage[j]]
            count -= 1
        if at % _THRESHOLDS == 0:
            yield
    kept[sources[first:best_at], targets[first:best_at]] = False
    threshold = np.inf
    if best_at < len(rank):
        threshold = float(np.abs(weights[sources[best_at], targets[best_at]]))
    return Cut(threshold, best if np.isfinite(best) else None, kept)


def _by_variable(targets: Integers, d: int) -> list[Integers]:
    """Return for each variable the positions at which it is a target, in ascending order."""
    # NumPy sorts short integers much faster than long ones.
    order = np.argsort(targets.astype(np.min_scalar_type(d)), kind="stable")
    return np.split(order, np.cumsum(np.bincount(targets, minlength=d))[:-1])


def _first_trusted(kept: Bools, removals: list[Integers], most: int) -> int | None:
    """Return how many edges must go until each variable has fewer than ``most`` parents.

    ``removals`` says of each variable when it loses a parent. Returns None if some variable never
    has fewer.
    """
    first = 0
    counts = kept.sum(axis=0)
    for j in np.flatnonzero(counts >= most).tolist():
        surplus = int(counts[j]) - most + 1
        if surplus > len(removals[j]):
            return None
        first = max(first, int(removals[j][surplus - 1]) + 1)
    return first


def _refits(
    kept: Bools, moments: Floats, removed: list[Integers], rows: int, by: PenaltyCriterion
) -> Work[tuple[list[Floats], list[list[float]]]]:
    """Refit each variable, before and after each removal of one of its parents.

    ``removed`` are the parents to remove, of each variable. Returns for each variable the residual
    variances and the costs of its edges.
    """
    d = len(kept)
    moments = np.ascontiguousarray(moments)
    variances = np.diagonal(moments)
    left: list[Floats] = []
    edges: list[list[float]] = []
    for j in range(d):
        fits = ShrinkingRegression(moments, j, np.flatnonzero(kept[:, j]), removed[j], _DETERMINED)
        while not fits.step(_SLICE):
            yield
        left.append(fits.shares() * (variances[j] if variances[j] > 0.0 else 1.0))
        edges.append([by.edges(weights, rows, d) for weights in fits.weights()])
        yield
    return left, edges


def left_by(kept: Bools, moments: Floats) -> Floats:
    """Return the residual variance of each variable given its parents."""
    moments = np.ascontiguousarray(moments)
    shares = [
        _native.regression(moments, j, np.flatnonzero(kept[:, j]), _DETERMINED)[0]
        for j in range(len(kept))
    ]
    variances: Floats = np.array(shares) * np.diagonal(moments)
    return variances
