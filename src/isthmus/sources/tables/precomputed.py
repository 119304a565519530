"""A source of statistics that were computed earlier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError, UnplannedError
from isthmus.results.disclosure import Disclosure
from isthmus.sources.base import Source, countable
from isthmus.statistics import Counts, Expansion, Moments, Plan, Rows, Schema, Statistic


@final
class Precomputed(Source):
    """Statistics that were computed earlier.

    Parameters
    ----------
    statistics
        The statistics; nothing else is available.
    """

    def __init__(self, statistics: Statistic) -> None:
        self._statistics = statistics

    @property
    def statistics(self) -> Statistic:
        """The statistics."""
        return self._statistics

    def schema(self) -> Schema:
        """Names, kinds and levels of the variables."""
        return self._statistics.schema

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Return the moments, computed from rows or a joint table if necessary."""
        statistics = self._statistics
        if isinstance(statistics, Rows):
            statistics = statistics.moments()
        elif isinstance(statistics, Counts):
            if statistics.joint is None:
                raise MismatchError(
                    f"Moments cannot be computed from these counts, which cover {statistics.plan}. "
                    "Choose a score of counts (BIC, BDeu), or request moments from the source "
                    "of the data."
                )
            statistics = Moments.from_columns(
                statistics.schema, list(statistics.joint.codes), weights=statistics.joint.weights
            )
        if not isinstance(statistics, Moments):
            raise MismatchError(f"Moments cannot be computed from {statistics.described}.")
        return statistics if names is None else statistics.select(names)

    def counts(self, plan: Plan) -> Counts:
        """Return the counts if they cover the plan."""
        statistics = self._statistics
        if not isinstance(statistics, Counts):
            raise MismatchError(
                f"Counts were requested, but only {statistics.described} are available. Choose a "
                "score of moments (GaussianBIC, BGe, DegenerateGaussian), or request counts from "
                "the source of the data."
            )
        if plan == statistics.plan:
            return statistics
        countable(statistics.schema, plan)
        if statistics.joint is not None:
            return Counts.from_rows(
                statistics.schema, statistics.joint, plan=plan, regime=statistics.regime
            )
        names = statistics.schema.names
        sets = (
            [tuple(names[i] for i in s) for s in plan.maximal(names)]
            if not (plan.is_everything)
            else [names]
        )
        if not all(statistics.plan.covers(s) for s in sets):
            raise UnplannedError(
                f"The counts cover {statistics.plan}; {plan} was requested. "
                "Request counts with that plan from the source of the data."
            )
        return statistics

    def rows(self) -> NDArray[np.float64]:
        """Raise an error: statistics have no rows."""
        raise MismatchError(
            "Rows were requested, but only statistics are available. Choose a score that needs "
            "moments or counts, or pass the table itself."
        )

    def with_features(self, expansion: Expansion) -> Source:
        """Raise an error: basis functions cannot be computed from statistics."""
        raise MismatchError(
            "Basis functions cannot be computed from statistics. Pass the table itself, or the "
            "moments of WithFeatures(table, basis)."
        )

    def disclosure(self) -> Disclosure:
        """Return an empty disclosure: the statistics were released earlier."""
        return Disclosure.none()

    def __repr__(self) -> str:
        return f"Precomputed({self._statistics!r})"
