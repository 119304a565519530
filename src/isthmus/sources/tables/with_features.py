"""A table or source with basis functions of its variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from isthmus.results.disclosure import Disclosure
from isthmus.sources.base import CompleteColumns, Source
from isthmus.sources.dispatch import as_source
from isthmus.statistics import Basis, Chebyshev, CountPlan, Counts, Expansion, Kind, Moments, Schema


@final
class WithFeatures(Source):
    """Continuous variables, with basis functions of each as further columns in its block.

    Parameters
    ----------
    data
        A table or a source of continuous variables that can compute basis functions: with its rows
        at hand, with an engine, or at the sites of a federation.
    basis
        A basis, which is standardised with the moments of the data, or with the centres and scales
        that the study of a federation fixes; or an expansion.
    """

    def __init__(self, data: object, basis: Basis | Expansion = Chebyshev()) -> None:
        source = as_source(data, integers=Kind.CONTINUOUS)
        if isinstance(basis, Basis):
            basis = source.expansion_of(basis)
        self.expansion = basis
        self._source = source
        self._wide = source.with_features(basis)

    def schema(self) -> Schema:
        """The variables, with their basis functions."""
        return self._wide.schema()

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Moments of these variables, with their basis functions; of all if not given."""
        return self._wide.moments(names)

    def counts(self, plan: CountPlan) -> Counts:
        return self._wide.counts(plan)

    def rows(self) -> NDArray[np.float64]:
        """All rows of the variables themselves, where rows are at hand."""
        return self._wide.rows()

    def with_features(self, expansion: Expansion) -> Source:
        return self._wide.with_features(expansion)

    def without_features(self) -> Source:
        return self._source

    def disclosure(self) -> Disclosure:
        """Data that were released for the standardisation, and for the basis functions."""
        return self._wide.disclosure()

    def notes(self) -> tuple[str, ...]:
        """Notes of the source without basis functions."""
        return self._source.notes()

    def realisation_of_rows(self) -> NDArray[np.int64] | None:
        return self._source.realisation_of_rows()

    @property
    def within_groups(self) -> bool:  # type: ignore[override]
        """Whether the rows belong to groups."""
        return self._source.within_groups

    def rows_within_groups(self) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        return self._wide.rows_within_groups()

    def complete_columns(self) -> CompleteColumns | None:
        return self._source.complete_columns()

    def __repr__(self) -> str:
        return f"WithFeatures({self._source!r}, {self.expansion.basis!r})"
