"""Counts with noise: all pairs first, then only the tables that a first skeleton asks for.

The second request depends on the answer to the first one. That costs no privacy: the noise suffices
for any tables. A graph is learned from both answers, with tests that know the noise, and rows are
made that follow it, as MST and AIM do for synthetic data (McKenna, Miklau and Sheldon 2021; McKenna
et al. 2022). Scores and searches use the counts of these rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import combinations
from typing import final

import numpy as np

from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.counts import AskCounts
from isthmus.joint.noise.dependence import Dependence
from isthmus.joint.noise.interactions import (
    FINE,
    PAIRS,
    TABLES,
    Interactions,
    Positions,
    layout_of,
)
from isthmus.joint.noise.release import AskNoisy, NoisyEstimate, NoisyRelease
from isthmus.joint.noise.structure import (
    FALSE_PAIRS,
    directed,
    first_skeleton,
    last_skeleton,
    wanted_tables,
)
from isthmus.sources.base import countable
from isthmus.statistics import CountPlan, Counts, Schema
from isthmus.types import Floats, Integers

SHARES = (0.5, 0.5)
"""Shares of the budget of the two requests. See ``benchmarks/results/privacy-counts.md``."""

MOST_ROWS = 2**20
"""Rows are made up to this number."""

CHUNK = 2**18
"""Number of rows that are counted at once."""


def counted_schema(study: Study) -> Schema:
    """Return the variables of a study that are counted."""
    assert study.plan is not None
    return countable(study.schema, study.plan)


def planned_pairs(study: Study) -> CountPlan:
    """Return the plan of the first request: the pairs that the study plans."""
    names, plan = counted_schema(study).names, study.plan
    assert plan is not None
    pairs = [p for p in combinations(names, 2) if plan.covers(p)]
    return CountPlan.sets([*pairs, *([name] for name in names)])


@final
class NoisyCounts(NoisyRelease):
    """The answer to one of the two requests.

    Parameters
    ----------
    study
        The study, with a section on privacy and a plan.
    number
        Which request.
    plan
        The tables that it asks for.
    """

    def __init__(self, study: Study, number: int, plan: CountPlan) -> None:
        super().__init__(study)
        self._number = number
        self._plan = plan
        self._schema = counted_schema(study)
        self.layout = layout_of(self._schema, plan, number)

    @property
    def unit(self) -> int:
        return FINE

    @property
    def numbers(self) -> int:
        return sum(self.layout.lengths)

    @property
    def row_sensitivity(self) -> float:
        return self.layout.sensitivity

    @property
    def rho(self) -> float:
        return super().rho * SHARES[self._number]

    @cached_property
    def spread(self) -> Floats:
        return self.layout.spread

    def request(self) -> AskCounts:
        return AskCounts(self._plan, round=self._number)

    def integers(self, values: Floats) -> Integers:
        places = list(self.study.schema.indices(self._schema.names))
        total = np.zeros(self.numbers, dtype=np.int64)
        for start in range(0, len(values), CHUNK):
            part = np.asarray(values[start : start + CHUNK])[:, places]
            total += self.layout.integers(part.astype(np.int64))
        return total


def noisy_counts(study: Study, ask: AskNoisy) -> NoisyEstimate[Counts]:
    """Estimate the counts of all discrete variables of a study, with at most two requests."""
    schema = counted_schema(study)
    found = Interactions(tuple(int(k) for k in schema.cardinalities))
    level = FALSE_PAIRS / len(schema)

    def take(number: int, plan: CountPlan) -> float:
        release = NoisyCounts(study, number, plan)
        total, sites = ask(release)
        scale = release.scale * math.sqrt(sites)
        found.add(release.layout, total, scale)
        return scale / FINE

    error = take(PAIRS, planned_pairs(study))
    seen = Dependence(found, level)
    skeleton = first_skeleton(seen)
    plan = _second(study, schema, wanted_tables(seen, skeleton))
    if plan is not None:
        take(TABLES, plan)
        seen = Dependence(found, level)
        skeleton = last_skeleton(seen, skeleton)
    parents = directed(seen, skeleton)
    worth = max(round(found.n * seen.visible()), 1)
    rows = max(min(worth, MOST_ROWS), 1)
    counts = Counts.from_codes(schema, made_rows(found, parents, rows))
    return NoisyEstimate(counts, round(found.n), error, worth)


def _second(study: Study, schema: Schema, wanted: Sequence[Positions]) -> CountPlan | None:
    """Return the plan of the second request; ``None`` if there is nothing to ask."""
    plan = study.plan
    assert plan is not None
    sets = [[schema.names[i] for i in positions] for positions in wanted]
    sets = [names for names in sets if plan.covers(names)]
    return CountPlan.sets(sets) if sets else None


def made_rows(found: Interactions, parents: Sequence[tuple[int, ...]], rows: int) -> Integers:
    """Return rows that follow a graph, with the tables of its families as they were found.

    Each family has the counts that were found, up to rounding; all else is left to chance.

    Returns
    -------
    Integers
        Codes of shape (variables, rows).
    """
    rng = np.random.default_rng(0)
    codes = np.zeros((len(parents), rows), dtype=np.int64)
    graph = {v: set(above) for v, above in enumerate(parents)}
    for v in TopologicalSorter(graph).static_order():
        above = tuple(sorted(parents[v]))
        family = (*above, v)
        table = np.transpose(
            found.table(tuple(sorted(family))), [sorted(family).index(i) for i in family]
        )
        levels = found.sizes[v]
        shares = onto_simplex(table, found.n).reshape(-1, levels)
        shares = shares + onto_simplex(found.table((v,)), 1e-6)
        shape = tuple(found.sizes[i] for i in above)
        cell = np.ravel_multi_index(tuple(codes[list(above)]), shape) if above else np.zeros(rows)
        order = np.argsort(cell, kind="stable")
        starts = np.searchsorted(cell[order], np.arange(len(shares) + 1))
        for own, start, stop in zip(shares, starts[:-1], starts[1:], strict=True):
            counts = rounded(own * ((stop - start) / own.sum()), int(stop - start))
            codes[v, order[start:stop]] = rng.permutation(np.repeat(np.arange(levels), counts))
    return codes


def rounded(table: Floats, total: int) -> Integers:
    """Round to integers with this sum: the largest remainders are rounded up."""
    flat = table.reshape(-1)
    whole = np.floor(flat).astype(np.int64)
    missing = total - int(whole.sum())
    order = np.argsort(whole - flat, kind="stable")
    whole[order[:missing]] += 1
    return whole.reshape(table.shape)


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
