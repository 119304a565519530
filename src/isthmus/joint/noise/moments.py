"""Moments with noise: the rounds of a study, and what the last one tells."""

from __future__ import annotations

import math
from functools import cached_property
from typing import final

import numpy as np

from isthmus.joint.agreement.study import Study
from isthmus.joint.federation.requests.statistics import AskMoments
from isthmus.joint.noise.release import AskNoisy, NoisyEstimate, NoisyRelease
from isthmus.joint.noise.section import DifferentialPrivacy
from isthmus.joint.noise.whitening import (
    FINE,
    GRID,
    LAST,
    SHARES,
    SURVEY,
    ColumnLayout,
    Surveyed,
    Whitened,
    in_rounds,
    products_sensitivity,
    products_spread,
    shrinkage,
    survey_sensitivity,
)
from isthmus.statistics import Kind, Moments
from isthmus.types import Floats, Integers

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

    Parameters
    ----------
    study
        The study, with a section on privacy.
    number
        Number of the round.
    transform
        The map of the rows; ``None`` for the survey.
    """

    def __init__(self, study: Study, number: int, transform: Floats | None = None) -> None:
        super().__init__(study)
        self._number = number
        self._transform = transform
        self._columns = columns_of(study, self.privacy)

    @property
    def unit(self) -> int:
        return FINE if self._number == SURVEY else GRID**2

    @property
    def numbers(self) -> int:
        width = self._columns.width
        return 1 + sum(self._columns.bins) if self._number == SURVEY else width * (width + 1) // 2

    @property
    def row_sensitivity(self) -> float:
        if self._number == SURVEY:
            return survey_sensitivity(len(self.study.schema))
        return products_sensitivity(self._columns.width)

    @property
    def rho(self) -> float:
        return super().rho * SHARES[self._number]

    @cached_property
    def spread(self) -> Floats:
        if self._number == SURVEY:
            return super().spread
        return products_spread(self._columns.width)

    def request(self) -> AskMoments:
        entries = () if self._transform is None else tuple(self._transform.ravel().tolist())
        return AskMoments(self.study.schema.names, self._number, entries)

    def integers(self, values: Floats) -> Integers:
        if self._number == SURVEY:
            return self._columns.survey(values)
        assert self._transform is not None
        return self._columns.products(values, self._transform)


def noisy_moments(study: Study, ask: AskNoisy) -> NoisyEstimate[Moments]:
    """Estimate the moments of all variables of a study, round by round."""
    last = NoisyMoments(study, LAST)
    layout = columns_of(study, last.privacy)

    def asked(number: int, transform: Floats | None) -> tuple[list[int], float]:
        release = NoisyMoments(study, number, transform)
        total, sites = ask(release)
        return total, release.scale * math.sqrt(sites)

    return estimated(layout, *in_rounds(layout, asked, noise_of(last)))


def noise_of(release: NoisyMoments) -> float:
    """Return the noise in the sum over all sites, in units of the square of the ball's radius."""
    return release.scale * math.sqrt(len(release.study.members)) / release.unit


def estimated(layout: ColumnLayout, surveyed: Surveyed, last: Whitened) -> NoisyEstimate[Moments]:
    """Return valid moments from the survey and the last round."""
    schema, (centre, half) = layout.schema, layout.ranges
    hidden = last.hidden()
    seen = last.without(hidden)
    worth = seen.worth if seen.worth >= LEAST * schema.width else 0.0
    # Columns that noise hides have the variance that they seem to have, and no relation.
    mean, covariance = surveyed.centre.copy(), np.diag(surveyed.spread**2)
    if len(seen.map.used) > 1:
        whole, columns = seen.moments(), seen.map.used[1:] - 1
        mean[columns] = whole[0, 1:] / whole[0, 0]
        centred = whole[1:, 1:] / whole[0, 0] - np.outer(mean[columns], mean[columns])
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
    )
    blocks = zip(schema.variables, schema.blocks, strict=True)
    unseen = [v.name for v, (at, _) in blocks if v.kind is Kind.CONTINUOUS and at in hidden]
    known = round(surveyed.n), surveyed.error
    return NoisyEstimate(moments, *known, max(round(worth), 1), tuple(unseen), surveyed.edge)
