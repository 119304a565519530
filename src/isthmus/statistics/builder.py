"""Computation of moments from batches of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from numpy.typing import ArrayLike, NDArray

from isthmus.statistics.accumulator import Accumulator
from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import Schema


@final
class MomentsBuilder:
    """Adds up moments batch by batch; the result does not depend on the size of the batches.

    Parameters
    ----------
    schema
        The variables. Basis functions are computed here, from the values of their variable.
    shift
        Values near the means of the columns; by default the means of the first rows.
    """

    def __init__(self, schema: Schema, shift: ArrayLike | None = None) -> None:
        self._schema = schema
        self._accumulator = Accumulator(schema, shift)

    def update(self, columns: Sequence[NDArray[Any]], weights: NDArray[Any] | None = None) -> None:
        """Add rows, given as one array per variable (codes for a discrete one)."""
        self._accumulator.update(columns, weights)

    def miss(self, name: str, count: int) -> None:
        """Record missing cells that the caller found in the batches."""
        self._accumulator.miss(name, count)

    def finish(self, *, regime: str | None = None) -> Moments:
        """Return the moments of all rows; missing and infinite cells raise an error."""
        return Moments(self._schema, *self._accumulator.finish(), regime)
