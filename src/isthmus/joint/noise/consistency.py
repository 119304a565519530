"""Noisy tables that agree with each other and have no negative cells."""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

import numpy as np

from isthmus.types import Floats

Positions: TypeAlias = tuple[int, ...]
Tables: TypeAlias = dict[Positions, Floats]

LARGEST_SUBSET = 3
MOST_ADJUSTMENTS = 200_000
"""Maximum number of adjustments; larger subsets of variables are then not compared."""


def shared_subsets(sets: list[Positions]) -> dict[Positions, list[Positions]]:
    """Return the subsets of variables that several tables have, with these tables.

    Smaller subsets come first.
    """
    shared: dict[Positions, list[Positions]] = {}
    adjustments = 0
    for size in range(1, LARGEST_SUBSET + 1):
        homes: dict[Positions, list[Positions]] = {}
        for s in sets:
            if len(s) > size:
                for subset in combinations(s, size):
                    homes.setdefault(subset, []).append(s)
        several = {subset: tables for subset, tables in homes.items() if len(tables) > 1}
        adjustments += sum(map(len, several.values()))
        if adjustments > MOST_ADJUSTMENTS:
            break
        shared |= several
    return shared


def consistent(tables: Tables, n: float, shared: dict[Positions, list[Positions]]) -> Tables:
    """Return tables whose common margins agree: each is the average over all tables that have it.

    The averages are weighted by the inverse variance of the noise (Qardaji, Yang and Li, "PriView",
    2014). Smaller subsets come first, because later adjustments leave their margins as they are.
    """
    adjusted = {s: t + (n - t.sum()) / t.size for s, t in tables.items()}
    for subset, homes in shared.items():
        margins = [_margin(adjusted[s], s, subset) for s in homes]
        weights = np.array([1.0 / adjusted[s].size for s in homes])
        average = np.tensordot(weights / weights.sum(), np.array(margins), axes=1)
        for s, margin in zip(homes, margins, strict=True):
            difference = (average - margin) * (margin.size / adjusted[s].size)
            shape = [
                size if i in subset else 1 for i, size in zip(s, adjusted[s].shape, strict=True)
            ]
            adjusted[s] = adjusted[s] + difference.reshape(shape)
    return adjusted


def _margin(table: Floats, positions: Positions, subset: Positions) -> Floats:
    margin: Floats = table.sum(axis=tuple(k for k, i in enumerate(positions) if i not in subset))
    return margin


def onto_simplex(table: Floats, n: float) -> Floats:
    """Return the nearest table without negative cells that sums to `n`.

    All cells are lowered by the same number, and those below zero are set to zero. Cells that are
    empty but for noise become empty.
    """
    flat = np.sort(table.reshape(-1))[::-1]
    excess = (np.cumsum(flat) - n) / np.arange(1, len(flat) + 1)
    last = np.flatnonzero(flat > excess)[-1]
    nearest: Floats = np.maximum(table - excess[last], 0.0)
    return nearest
