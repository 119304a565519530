"""A source with functions of its columns as further columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.results.disclosure import Disclosure
from isthmus.sources.base import Source
from isthmus.sources.dispatch import as_source
from isthmus.sources.horizontal.federation import Federation
from isthmus.sources.tables.frame import Frame
from isthmus.sources.tables.lazy import Lazy
from isthmus.statistics import Chebyshev, Counts, Expansion, Moments, Plan, Schema
from isthmus.statistics.basis import feature_name

if TYPE_CHECKING:
    import narwhals as nw


@final
class Expanded(Source):
    """Continuous columns, and basis functions of each as feature columns beside it.

    Parameters
    ----------
    data
        A table or a source of continuous columns, with its rows at hand, with an engine, or at
        the sites of a federation.
    basis
        A basis, standardised here with the moments of the data; or an expansion that was
        standardised with the pooled moments of several sites.
    """

    def __init__(self, data: object, basis: Chebyshev | Expansion = Chebyshev()) -> None:
        self._source = as_source(data)
        if isinstance(basis, Chebyshev):
            basis = basis.standardised(self._source.moments())
        self.expansion = basis
        self._wide = self._widened()

    def _widened(self) -> Source:
        schema = self.expansion.schema()
        if isinstance(self._source, Federation):
            return self._source.expanded(self.expansion)
        if isinstance(self._source, Lazy):
            return self._source.derive(_expressions(self.expansion, self._source.columns), schema)
        at = self._source.schema().indices(self.expansion.names)
        values = self.expansion.apply(self._source.rows()[:, list(at)])
        return Frame(values, names=schema.names, schema=schema)

    def schema(self) -> Schema:
        """The columns themselves, then the feature columns of each."""
        return self._wide.schema()

    def moments(self, names: Sequence[str] | None = None) -> Moments:
        """Moments of these columns, in the order asked; of all if not given."""
        return self._wide.moments(names)

    def counts(self, plan: Plan) -> Counts:
        """Not of continuous columns; the error says so."""
        return self._wide.counts(plan)

    def rows(self) -> NDArray[np.float64]:
        """All rows with their features, where rows are at hand."""
        return self._wide.rows()

    def disclosure(self) -> Disclosure:
        """What left for the standardisation, and then for the features."""
        if isinstance(self._source, Federation):
            return self._wide.disclosure()
        return self._source.disclosure() + self._wide.disclosure()

    def __repr__(self) -> str:
        return f"Expanded({self._source!r}, {self.expansion.basis!r})"


def _expressions(expansion: Expansion, columns_of: Mapping[str, str]) -> list[nw.Expr]:
    """The feature columns in the language of the engine."""
    import narwhals as nw

    radius = expansion.basis.radius
    found: list[nw.Expr] = []
    columns = zip(expansion.names, expansion.centres, expansion.scales, strict=True)
    for name, centre, scale in columns:
        u: Any = (nw.col(columns_of[name]).cast(nw.Float64) - centre) / (radius * scale)
        u = u.clip(-1.0, 1.0)
        for k, coefficients in enumerate(expansion.basis.polynomials(), start=1):
            value = u * coefficients[-1]
            for c in coefficients[-2:0:-1]:
                value = (value + c) * u
            found.append((value + coefficients[0]).alias(feature_name(name, k)))
    return found
