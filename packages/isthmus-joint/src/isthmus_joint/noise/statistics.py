"""Counts with noise: all pairs first, then only the tables that a first skeleton asks for.

The second request depends on the answer to the first one. That costs no privacy: the noise suffices
for any tables. A graph is learned from both answers, with tests that know the noise, and rows are
made that follow it, as MST and AIM do for synthetic data (McKenna, Miklau and Sheldon 2021; McKenna
et al. 2022). Scores and searches use the counts of these rows.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import TopologicalSorter
from itertools import combinations
from typing import Any, Generic, TypeAlias, TypeVar, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.statistics import CountPlan, Counts, Kind, Moments, Schema
from isthmus.tables.base import countable
from isthmus_joint.agreement.study import Study
from isthmus_joint.federation.requests.base import SumRequest
from isthmus_joint.federation.requests.statistics import AskCounts, AskMoments
from isthmus_joint.noise.accounting import DifferentialPrivacy, cost, epsilon_of, scale_for
from isthmus_joint.noise.centring import RoundNoise, SiteCentre, share_of_centres
from isthmus_joint.noise.structure import (
    FALSE_PAIRS,
    FINE,
    PAIRS,
    TABLES,
    Dependence,
    Interactions,
    Positions,
    directed,
    first_skeleton,
    last_skeleton,
    layout_of,
    wanted_tables,
)
from isthmus_joint.noise.whitening import FINE as FINE_MOMENTS
from isthmus_joint.noise.whitening import (
    GRID,
    LAST,
    SURVEY,
    ColumnLayout,
    Surveyed,
    Whitened,
    in_rounds,
    moments_size,
    products_sensitivity,
    products_spread,
    shrinkage,
    sums_sensitivity,
    survey_sensitivity,
)
from isthmus_joint.noise.whitening import SHARES as SHARES_OF_MOMENTS
from isthmus_joint.secure_sum.terms import LimbArray, from_int64

# --- Answers with noise: the integers of a site, how much noise they need, what a sum tells -----

S = TypeVar("S")


@dataclass(frozen=True, eq=False)
class NoisyEstimate(Generic[S]):
    """A statistic that was estimated from sums with noise.

    Attributes
    ----------
    statistic
        A valid statistic. Its number of rows is the one whose sampling error would be as large as
        the noise, so that scores, searches and standard errors take the noise for what it is:
        additional uncertainty.
    error
        Standard deviation of the noise in the number of rows.
    worth
        How many rows without noise would give about as accurate a network. At most the rows of the
        statistic: noise also hides what is there.
    centres
        About how far the centres of sites are from their means, in standard deviations.
    hidden
        Variables whose variance is not larger than the noise: their bounds may be too wide.
    clipped
        Variables whose values pile up at a bound: their bounds may be too narrow.
    """

    statistic: S
    rows: int
    error: float
    worth: int
    centres: float = 0.0
    hidden: tuple[str, ...] = ()
    clipped: tuple[str, ...] = ()


Draw: TypeAlias = Callable[[Floats, float], Integers]
"""Draws noise for numbers: how wide it is for each of them, in units of a scale, and the scale."""


@final
@dataclass(frozen=True, eq=False)
class SiteAnswer:
    """What a site answers.

    Attributes
    ----------
    numbers
        The answer, with noise.
    offset
        The centre that the site has subtracted from each column, which stays there for the next
        round; empty if there is none.
    """

    numbers: Integers
    offset: Floats

    def to_bytes(self) -> bytes:
        """Return what the site keeps, so that a question has one answer."""
        return self.numbers.astype("<i8").tobytes() + self.offset.astype("<f8").tobytes()

    @classmethod
    def from_bytes(cls, kept: bytes, numbers: int) -> SiteAnswer:
        """Read an answer of so many numbers."""
        own = np.frombuffer(kept, "<i8", numbers).astype(np.int64)
        return cls(own, np.frombuffer(kept, "<f8", offset=own.nbytes).astype(np.float64))


class NoisyRelease(ABC):
    """An answer with noise. All sites and the coordinator compute the same noise from the study."""

    def __init__(self, study: Study) -> None:
        assert study.privacy is not None
        self.study = study
        self.privacy: DifferentialPrivacy = study.privacy

    @property
    @abstractmethod
    def unit(self) -> int:
        """The integer that stands for one row in the number of rows."""

    @property
    @abstractmethod
    def numbers(self) -> int:
        """How many numbers the answer has."""

    @property
    @abstractmethod
    def row_sensitivity(self) -> float:
        """The largest norm of the integers of one row, each divided by its `spread`."""

    @abstractmethod
    def request(self) -> SumRequest[Any]:
        """Return the request that this answers."""

    @abstractmethod
    def integers(self, values: Floats) -> Integers:
        """Return the answer of a site without noise; each row contributes at most its bound."""

    def answer(self, values: Floats, offset: Floats, draw: Draw) -> SiteAnswer:
        """Return the answer of a site with noise.

        Parameters
        ----------
        offset
            The centre of the site after the rounds before this one.
        """
        return SiteAnswer(self.integers(values) + draw(self.spread, self.scale), np.empty(0))

    @property
    def rho(self) -> float:
        """Cost of the answer: an equal part of the budget for each request of the study."""
        return self.privacy.rho / len(self.study.requests)

    @property
    def rho_of_sum(self) -> float:
        """The part of the cost that pays for noise which sites add together."""
        return self.rho

    @cached_property
    def spread(self) -> Floats:
        """Standard deviation of the noise of each number, in units of `scale`; at least one."""
        return np.ones(self.numbers)

    @cached_property
    def scale(self) -> float:
        """Standard deviation of the noise that each site adds to its integers."""
        return scale_for(self.rho_of_sum, self.sensitivity, self.privacy.honest, self.numbers)

    @property
    def sensitivity(self) -> float:
        """The largest such norm by which one person changes the answer."""
        return self.privacy.rows_per_person * self.row_sensitivity

    @property
    def described(self) -> str:
        """The cost of the answer in a phrase."""
        delta = self.privacy.delta
        return f"ε = {epsilon_of(self.rho, delta):.3g} at δ = {delta:g}"

    def cost(self, sites: int) -> float:
        """Return the ρ of the answer if this number of sites do not reveal their noise."""
        return cost(self.sensitivity, self.scale, sites, self.numbers)


AskNoisy: TypeAlias = Callable[[NoisyRelease], tuple[list[int], int]]
"""Asks all sites for an answer with noise; returns the sum and the number of sites in it."""


def first_rows(persons: Integers, limit: int) -> Integers:
    """Return the positions of the rows that are used: the first ones of each person.

    In a snapshot these follow from the person's own values alone, whatever the order of the table.
    """
    rows = len(persons)
    order = np.argsort(persons, kind="stable")
    starts = np.flatnonzero(np.diff(persons[order], prepend=-1))
    lengths = np.diff(np.append(starts, rows))
    rank = np.arange(rows) - np.repeat(starts, lengths)
    return np.sort(order[rank < limit])


def widened(numbers: Integers, limbs: int) -> LimbArray:
    """Return signed integers of 64 bits as numbers of at least two limbs."""
    low = from_int64(numbers)
    sign = np.where(numbers < 0, np.uint32(0xFFFFFFFF), np.uint32(0)).astype(low.dtype)
    return np.concatenate([low, np.repeat(sign[:, None], limbs - 2, axis=1)], axis=1)


# --- Counts with noise: all pairs first, then what a first skeleton asks for ---------------------

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
    """The answer to one of the two requests."""

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


# --- Moments with noise: the rounds of a study, and what the last one tells ---------------------

LEAST = 10
"""Rows per column below which nothing is learned: even exact sums of so few rows show edges that
are not there. See ``benchmarks/results/privacy-whitening.md``."""


def columns_of(study: Study, privacy: DifferentialPrivacy) -> ColumnLayout:
    """Return the columns of a study with noise."""
    names = study.schema.of_kind(Kind.CONTINUOUS)
    return ColumnLayout(study.schema, {n: privacy.bounds.get(n, study.bounds[n]) for n in names})


@final
class NoisyMoments(NoisyRelease):
    """The answer to one round: the survey, or sums of products of mapped rows.

    Unless the study says otherwise, products are about the centre of the site, and what sites have
    subtracted in the mean follows them; see `isthmus_joint.noise.centring`.

    Parameters
    ----------
    transform
        The map of the rows; ``None`` for the survey.
    """

    def __init__(self, study: Study, number: int, transform: Floats | None = None) -> None:
        super().__init__(study)
        self._number = number
        self._transform = transform
        self._columns = columns_of(study, self.privacy)
        self._is_centred = study.within_sites and number != SURVEY

    @property
    def unit(self) -> int:
        return FINE_MOMENTS if self._number == SURVEY else GRID**2

    @property
    def numbers(self) -> int:
        if self._number == SURVEY:
            return 1 + sum(self._columns.bins)
        return moments_size(self._columns.width, within=self._is_centred)

    @property
    def row_sensitivity(self) -> float:
        if self._number == SURVEY:
            return survey_sensitivity(len(self.study.schema))
        return products_sensitivity(self._columns.width)

    @property
    def rho(self) -> float:
        return super().rho * SHARES_OF_MOMENTS[self._number]

    @property
    def rho_of_sum(self) -> float:
        if not self._is_centred:
            return self.rho
        sites = len(self.study.members)
        return self.rho * (1.0 - share_of_centres(sites, last=self._number == LAST))

    def cost(self, sites: int) -> float:
        products, width = super().cost(sites), self._columns.width
        if not self._is_centred:
            return products
        return products + cost(self.centre_sensitivity, self.centre_scale, 1, width)

    @cached_property
    def centre_scale(self) -> float:
        """Standard deviation of the noise in the sums that the centre of a site follows from.

        The site alone adds it: nobody else's noise hides its centre.
        """
        if not self._is_centred:
            return 0.0
        left = self.rho - self.rho_of_sum
        return scale_for(left, self.centre_sensitivity, 1, self._columns.width)

    @property
    def centre_sensitivity(self) -> float:
        """The largest norm by which one person changes these sums."""
        return self.privacy.rows_per_person * sums_sensitivity(self._columns.width)

    @cached_property
    def spread(self) -> Floats:
        if self._number == SURVEY:
            return super().spread
        width = self._columns.width
        return np.append(products_spread(width), np.ones(width if self._is_centred else 0))

    def noise(self, sites: int) -> RoundNoise:
        """Return the noise in the sum over this number of sites."""
        products = self.scale * math.sqrt(sites) / self.unit
        return RoundNoise(products, self.centre_scale / GRID, sites)

    def request(self) -> AskMoments:
        entries = () if self._transform is None else tuple(self._transform.ravel().tolist())
        return AskMoments(self.study.schema.names, self._number, entries)

    def integers(self, values: Floats, offset: Floats | None = None) -> Integers:
        if self._number == SURVEY:
            return self._columns.survey(values)
        assert self._transform is not None
        offset = np.zeros(self._columns.width - 1) if offset is None else offset
        products = self._columns.products(values, self._transform, offset)
        room = np.zeros(self.numbers - len(products), dtype=np.int64)  # for the centre
        return np.append(products, room)

    def answer(self, values: Floats, offset: Floats, draw: Draw) -> SiteAnswer:
        if not self._is_centred:
            return super().answer(values, offset, draw)
        assert self._transform is not None
        width, scale = self._columns.width, self.centre_scale
        before = offset if len(offset) else np.zeros(width - 1)
        sums = self._columns.sums(values, self._transform, before) + draw(np.ones(width), scale)
        centre = SiteCentre(0.0, before).moved(sums / GRID, self._transform, scale / GRID)
        numbers = self.integers(values, centre.offset)
        numbers[-width:] = np.rint(centre.numbers() * self.unit).astype(np.int64)
        return SiteAnswer(numbers + draw(self.spread, self.scale), centre.offset)


def noisy_moments(study: Study, ask: AskNoisy) -> NoisyEstimate[Moments]:
    """Estimate the moments of all variables of a study, round by round."""
    last = NoisyMoments(study, LAST)
    layout = columns_of(study, last.privacy)

    def asked(number: int, transform: Floats | None) -> tuple[list[int], RoundNoise]:
        release = NoisyMoments(study, number, transform)
        total, sites = ask(release)
        return total, release.noise(sites)

    noise = last.noise(len(study.members))
    surveyed, white, offset = in_rounds(layout, asked, noise)
    groups = len(study.members) if study.within_sites else None
    centres = noise.centre_error(white.map.radius, white.n)
    found = estimated(layout, surveyed, white, offset, groups=groups)
    return replace(found, centres=centres)


def estimated(
    layout: ColumnLayout,
    surveyed: Surveyed,
    last: Whitened,
    offset: Floats,
    *,
    groups: int | None = None,
) -> NoisyEstimate[Moments]:
    """Return valid moments from the survey, the last round, and what sites have subtracted.

    Parameters
    ----------
    groups
        Number of sites if products are about their centres.
    """
    schema, (centre, half) = layout.schema, layout.ranges
    hidden = last.hidden()
    seen = last.without(hidden)
    worth = seen.worth if seen.worth >= LEAST * schema.width else 0.0
    # Columns that noise hides have the variance that they seem to have, and no relation.
    mean, covariance = surveyed.centre.copy(), np.diag(surveyed.spread**2)
    if len(seen.map.used) > 1:
        whole, columns = seen.moments(), seen.map.used[1:] - 1
        left = whole[0, 1:] / whole[0, 0]
        centred = whole[1:, 1:] / whole[0, 0] - np.outer(left, left)
        mean[columns] = left + offset[columns]
        full = shrinkage(len(columns), seen.map.radius)
        covariance[np.ix_(columns, columns)] = centred / full
    if not worth:
        covariance = np.diag(covariance.diagonal())
    rows = max(round(worth), 2)
    moments = Moments(
        schema,
        rows,
        centre + half * np.clip(mean, -1.0, 1.0),
        np.zeros(schema.width),
        rows * covariance * np.outer(half, half),
        groups=groups,
    )
    blocks = zip(schema.variables, schema.blocks, strict=True)
    unseen = [v.name for v, (at, _) in blocks if v.kind is Kind.CONTINUOUS and at in hidden]
    known = round(surveyed.n), surveyed.error
    return NoisyEstimate(
        moments, *known, max(round(worth), 1), hidden=tuple(unseen), clipped=surveyed.edge
    )
