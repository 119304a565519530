"""A table or source with basis functions of its variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
from numpy.typing import NDArray

from isthmus.results.disclosure import Disclosure
from isthmus.sources.base import Source
from isthmus.sources.dispatch import as_source
from isthmus.statistics import Basis, Chebyshev, Counts, Expansion, Moments, Plan, Schema


@final
class WithFeatures(Source):
    """A source of continuous variables with basis functions of each.

    Parameters
    ----------
    data
        A table or a source of continuous variables that can compute basis functions: in memory, in
        an engine, or at the sites of a federation.
    basis
        A basis, which is standardised by the moments of the data, or an expansion that was
        standardised by the pooled moments of several sites.
    """

    def __init__(self, data: object, basis: Basis | Expansion = Chebyshev()) -> None:
        source = as_source(data)
        if isinstance(basis, Basis):
            basis = Expansion.standardised(basis, source.moments())
        self.expansion = basis
        self._source = source
        self._wide = source.with_features(basis)

    def schema(self) -> Schema:
        """The variables, with their basis functions."""
        return self._wide.schema()

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Return the moments of some variables with their basis functions; of all by default."""
        return self._wide.moments(names)

    def counts(self, plan: Plan) -> Counts:
        """Raise an error: continuous variables have no counts."""
        return self._wide.counts(plan)

    def rows(self) -> NDArray[np.float64]:
        """Return all rows without basis functions, if the source has rows."""
        return self._wide.rows()

    def with_features(self, expansion: Expansion) -> Source:
        """Raise an error: the variables already have basis functions."""
        return self._wide.with_features(expansion)

    def disclosure(self) -> Disclosure:
        """Return what was released for the standardisation and for the basis functions."""
        return self._wide.disclosure()

    def __repr__(self) -> str:
        return f"WithFeatures({self._source!r}, {self.expansion.basis!r})"
