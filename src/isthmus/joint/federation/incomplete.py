"""A federation whose sites have missing values: moments by expectation-maximisation."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, MismatchError
from isthmus.joint.federation.requests.expectation import (
    AskExpectation,
    ExpectationRun,
)
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.federation.requests.statistics import AskMoments
from isthmus.results.disclosure import Disclosure
from isthmus.results.reading import Reading
from isthmus.sources.base import Source
from isthmus.sources.tables.missing import ExpectationMaximisation
from isthmus.sources.tables.missing_values import moments_are_estimated
from isthmus.statistics import CountPlan, Counts, Expansion, Kind, Moments, Schema
from isthmus.statistics.expectation import Estimated

if TYPE_CHECKING:
    from isthmus.joint.federation.federation import Federation


@final
class IncompleteFederation(Source):
    """Sites with missing values. Each step of the estimation is one secure sum over all sites.

    Parameters
    ----------
    federation
        The sites. Their study must allow requests for ``expectation``.
    missing
        When to stop. The study bounds the number of steps, too.
    """

    def __init__(self, federation: Federation, missing: ExpectationMaximisation) -> None:
        study = federation.study
        if AskExpectation.name not in study.requests:
            raise MismatchError(
                f"{missing!r} needs a study that allows requests for {AskExpectation.name!r}, and "
                f"this one allows {sorted(study.requests)}. Draft a study with this request."
            )
        discrete = study.schema.of_kind(Kind.DISCRETE)
        if discrete:
            raise MismatchError(
                f"{missing!r} is for continuous variables in a federation, and {[*discrete[:5]]} "
                "are discrete. Let each site drop its incomplete rows, or make missing a level, "
                "before it takes part: Frame(table, missing=DropRows())."
            )
        self._federation = federation
        self._missing = missing
        self._until = math.inf
        self._remarks: tuple[str, ...] = ()

    def schema(self) -> Schema:
        return self._federation.schema()

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Estimate moments over all sites, with one secure sum per step."""
        return self._moments if names is None else self._moments.select(names)

    @cached_property
    def _moments(self) -> Moments:
        study, schema = self._federation.study, self.schema()
        run = ExpectationRun(FixedPointEncoding.of(study))
        rounds = study.rounds - 1 - self._federation.sums  # step 0 takes one, too
        steps = min(self._missing.max_iterations, AskExpectation.steps_allowed(study), rounds)
        if steps < 1:
            raise DataError(
                f"The study allows {study.rounds} rounds, and expectation-maximisation needs at "
                "least two: available values, and one step. Draft a study with more."
            )
        self._ask(run, 0)
        available = run.available
        assert available is not None
        if not available.has_missing and AskMoments.name in study.requests:
            return self._federation.moments()
        pairs = available.pair_counts(schema.names)
        pairs.refuse_apart()
        iteration = run.maximisation
        while not iteration.converged(self._missing.tolerance) and iteration.steps < steps:
            if iteration.steps and time.monotonic() >= self._until:
                break
            self._ask(run, iteration.steps + 1)
        moments = iteration.moments(schema, pairs, available.centre, available.scale)
        converged = iteration.converged(self._missing.tolerance)
        lost = int((available.n - available.pairs.diagonal()).sum())
        remark = moments_are_estimated(lost, available.n * len(schema))
        estimated = Estimated(moments, iteration.steps, converged, pairs)
        self._remarks = (remark, *estimated.remarks())
        return moments

    def _ask(self, run: ExpectationRun, step: int) -> None:
        """Ask for one step."""
        run.take(self._federation.ask(AskExpectation(self.schema().names, step)))

    def limit_estimation(self, until: float) -> None:
        """Start no further step after this time of ``time.monotonic()``."""
        self._until = until

    def estimation_remarks(self) -> tuple[str, ...]:
        return self._remarks

    def counts(self, plan: CountPlan) -> Counts:
        return self._federation.counts(plan)

    def rows(self) -> NDArray[np.float64]:
        return self._federation.rows()

    def with_features(self, expansion: Expansion) -> Source:
        raise MismatchError(
            "Basis functions of missing values cannot be estimated. Let each site drop the rows "
            "that lack a value: Frame(table, missing=DropRows())."
        )

    def disclosure(self) -> Disclosure:
        return self._federation.disclosure()

    def reading(self) -> Reading:
        return self._federation.reading()

    def notes(self) -> tuple[str, ...]:
        note = (
            "Moments were estimated from the rows of all sites together, so sites of different "
            "levels can cause edges. Use complete rows (DropRows) for relations within sites."
        )
        return (*self._federation.notes(), note)

    def __repr__(self) -> str:
        return f"{self._federation!r} with {self._missing!r}"
