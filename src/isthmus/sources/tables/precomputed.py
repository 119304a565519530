"""Statistics that were computed elsewhere, as a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.results.disclosure import Disclosure
from isthmus.sources.base import Source
from isthmus.statistics import (
    CountPlan,
    Counts,
    Expansion,
    Moments,
    Rows,
    Schema,
    Statistic,
    Summary,
)

if TYPE_CHECKING:
    from isthmus.graphs import DAG


@final
class Precomputed(Source):
    """Statistics that were computed earlier, as a source.

    Parameters
    ----------
    statistics
        The available statistics; no others can be requested.
    """

    def __init__(self, statistics: Statistic) -> None:
        self._statistics = statistics

    @property
    def statistics(self) -> Statistic:
        """The available statistics."""
        return self._statistics

    @property
    def within_groups(self) -> bool:  # type: ignore[override]
        """Whether the statistics are moments within groups."""
        return isinstance(self._statistics, Moments) and self._statistics.groups is not None

    def schema(self) -> Schema:
        return self._statistics.schema

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Return the moments; computed from counts if these contain every pair."""
        found = self._statistics
        if isinstance(found, Rows):
            found = found.moments()
        elif isinstance(found, Counts):
            if found.joint is None:
                raise MismatchError(
                    f"The counts at hand hold {found.plan}, from which moments are not made. "
                    "Choose a score on counts (BIC, BDeu), or ask the source of the data "
                    "for moments."
                )
            found = Moments.from_columns(
                found.schema, list(found.joint.codes), weights=found.joint.weights
            )
        if not isinstance(found, Moments):
            raise MismatchError(
                f"There are only {found.described} here, from which moments cannot be computed."
            )
        return found if names is None else found.select(names)

    def counts(self, plan: CountPlan) -> Counts:
        """Return the counts, if they cover the plan."""
        found = self._statistics
        if not isinstance(found, Counts):
            raise MismatchError(
                f"There are only {found.described} here, and counts were asked for. Choose a score "
                "on moments "
                "(GaussianBIC, BGe, DegenerateGaussian), or ask the source of the data for counts."
            )
        return found.covering(plan)

    def gather(self, needs: type[Statistic], dag: DAG | None = None) -> Summary:
        """Return the statistics at hand if they are what is needed, otherwise what they give."""
        if dag is None and isinstance(self._statistics, needs):
            # There are no other counts than those of the plan: other requests raise UnplannedError.
            return self._statistics
        return needs.gather(self, dag)

    def rows(self) -> NDArray[np.float64]:
        """Return the rows if the statistics are rows; otherwise raise `MismatchError`."""
        if isinstance(self._statistics, Rows):
            return self._statistics.values
        raise MismatchError(
            "There are only statistics here, no rows.",
            "Choose a score that needs moments or counts, or give the table itself.",
        )

    def with_features(self, expansion: Expansion) -> Source:
        raise MismatchError(
            "There are only statistics here, from which basis functions cannot be computed. Give "
            "the table itself, or the moments of WithFeatures(table, basis)."
        )

    def disclosure(self) -> Disclosure:
        """Return an empty disclosure: the statistics were released before."""
        return Disclosure.none()

    def __repr__(self) -> str:
        return f"Precomputed({self._statistics!r})"
