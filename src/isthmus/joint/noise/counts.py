"""Tables of counts with noise."""

from __future__ import annotations

import math
from functools import cached_property
from itertools import combinations
from typing import TypeAlias, final

import numpy as np

from isthmus.joint.agreement.study import Study
from isthmus.joint.cohorts.row_hashes import chunks
from isthmus.joint.noise.release import NoisyEstimate, NoisyRelease
from isthmus.sources.base import countable
from isthmus.statistics import CountPlan, Counts
from isthmus.statistics.blocks import planned_sets
from isthmus.types import Floats, Integers

FINE = 2**8
"""The integer that stands for one row. Noise on this grid is so wide that a sum of discrete
Gaussians is a discrete Gaussian for all purposes, even if a site adds little of it."""

PASSES = 3
"""How often tables are made consistent and non-negative in turn."""

RARE = 1.0
"""Smallest count of a cell, in standard deviations of the noise, in estimates of its effect."""

QUANTILE = 1.0
"""Quantile of the ratios of noise to sampling error over all tables; 1 is the worst table. These
constants were chosen on random networks: ``benchmarks/results/privacy-tuning.md``."""


@final
class NoisyCounts(NoisyRelease):
    """The planned tables of a study, and the number of rows."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        assert study.plan is not None
        self._plan: CountPlan = study.plan
        self._schema = countable(study.schema, self._plan)
        self._sets = planned_sets(self._schema, self._plan)
        sizes = self._schema.cardinalities
        self._shapes = [tuple(int(sizes[i]) for i in s) for s in self._sets]

    @property
    def unit(self) -> int:
        return FINE

    @property
    def numbers(self) -> int:
        return 1 + sum(map(math.prod, self._shapes))

    @property
    def row_sensitivity(self) -> float:
        # A row is in one cell of each table, and in the number of rows.
        return FINE * math.sqrt(1 + len(self._sets))

    def integers(self, values: Floats) -> Integers:
        places = list(self.study.schema.indices(self._schema.names))
        whole = np.zeros(self.numbers, dtype=np.int64)
        for rows in chunks(len(values)):
            whole += self._counted(np.asarray(values[rows])[:, places].T.astype(np.int64))
        return FINE * whole

    def _counted(self, codes: Integers) -> Integers:
        counts = Counts.from_codes(self._schema, codes, plan=self._plan)
        parts = [np.array([counts.n], dtype=np.int64)]
        parts += [counts.table([self._schema.names[i] for i in s]).reshape(-1) for s in self._sets]
        return np.concatenate(parts)

    def estimate(self, total: list[int], scale: float) -> NoisyEstimate[Counts]:
        error = scale / FINE
        tables, n = self.valid_tables(total)
        worth = self.worth(tables, n, error)
        whole = {s: rounded(t * (worth / n), worth) for s, t in tables.items()}
        return NoisyEstimate(Counts(self._schema, worth, self._plan, whole), round(n), error, worth)

    def valid_tables(self, total: list[int]) -> tuple[Tables, float]:
        """Return tables without negative cells that agree with each other, and their sum."""
        flat = np.array([v / FINE for v in total])
        tables: Tables = {}
        at = 1
        for positions, shape in zip(self._sets, self._shapes, strict=True):
            stop = at + math.prod(shape)
            tables[positions] = flat[at:stop].reshape(shape)
            at = stop
        n = max(self._rows(flat[0], tables), 1.0)
        for _ in range(PASSES):
            tables = consistent(tables, n, self._subsets)
            tables = {s: onto_simplex(t, n) for s, t in tables.items()}
        return tables, n

    @cached_property
    def _subsets(self) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
        return shared_subsets(self._sets)

    def _rows(self, single: float, tables: Tables) -> float:
        """Return the best estimate of the number of rows: each table gives one, too."""
        weights = np.array([1.0, *(1.0 / t.size for t in tables.values())])
        totals = np.array([single, *(t.sum() for t in tables.values())])
        return float(weights @ totals / weights.sum())

    def worth(self, tables: Tables, n: float, error: float) -> int:
        """Return the number of rows with which a test of independence would be as uncertain.

        Without noise, the statistic of such a test grows by one per degree of freedom, because the
        variance of a cell is its expected count. Noise adds its own variance, divided by that
        count: it hits rare cells hardest.
        """
        if error == 0.0:
            return round(n)
        ratios = []
        for positions, table in tables.items():
            variance = error**2 * self._noise_of(positions)
            ratios.append(variance * float(np.mean(1.0 / (table + RARE * error))))
        return max(round(n / (1.0 + float(np.quantile(ratios, QUANTILE)))), 1)

    def _noise_of(self, positions: tuple[int, ...]) -> float:
        """Return the variance per degree of freedom of interactions, in units of that of a cell.

        Each interaction is estimated by the average over all tables that have it.
        """
        sizes = self._schema.cardinalities
        left = math.prod(int(sizes[i]) for i in positions) - 1
        total, degrees = 0.0, 0
        for subset, homes in self._subsets_of[positions]:
            free = math.prod(int(sizes[i]) - 1 for i in subset)
            left -= free
            if len(subset) > 1:
                total, degrees = total + free / homes, degrees + free
        return (total + left) / max(degrees + left, 1)

    @cached_property
    def _subsets_of(self) -> dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]]:
        found: dict[tuple[int, ...], list[tuple[tuple[int, ...], int]]] = {
            s: [] for s in self._sets
        }
        for subset, homes in self._subsets.items():
            for home in homes:
                found[home].append((subset, len(homes)))
        return found


def rounded(table: Floats, total: int) -> Integers:
    """Round to integers with this sum: the largest remainders are rounded up."""
    flat = table.reshape(-1)
    whole = np.floor(flat).astype(np.int64)
    missing = total - int(whole.sum())
    order = np.argsort(whole - flat, kind="stable")
    whole[order[:missing]] += 1
    return whole.reshape(table.shape)


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
