"""Adding up moments while rows stream past."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.errors import DataError, SchemaError
from isthmus.statistics.checks import OVERFLOW, refuse_empty, refuse_infinite, refuse_missing
from isthmus.statistics.moments import Floats, Moments, frozen
from isthmus.statistics.schema import Kind, Schema


@final
class MomentsBuilder:
    """Adds up moments block by block, so that rows may stream past.

    Missing and infinite cells cost nothing to find: they make the sums not finite, and only then
    are they counted. They are refused in `finish`, when all are known.

    Parameters
    ----------
    schema
        The variables.
    shift
        Values near the means of the feature columns; from the first block if not given.
    """

    def __init__(self, schema: Schema, shift: ArrayLike | None = None) -> None:
        self._schema = schema
        self._width = len(schema.columns)
        self._shift: Floats | None = None if shift is None else frozen(shift)
        self._rows = 0
        self._weight = 0
        self._sums = np.zeros(self._width)
        self._gram = np.zeros((self._width, self._width))
        self._missing = dict.fromkeys(schema.names, 0)
        self._infinite = dict.fromkeys(schema.names, 0)
        self._spoiled = False
        self._block = int(np.clip(2**18 // max(self._width, 1), 1024, 16384))
        self._buffer = np.empty((self._width, self._block))

    def update(self, columns: Sequence[NDArray[Any]], weights: NDArray[Any] | None = None) -> None:
        """Add rows, given as one array a variable (codes for a discrete one)."""
        n = len(columns[0])
        if any(len(c) != n for c in columns):
            raise SchemaError("The columns have different lengths.")
        if n and self._shift is None:
            self._shift = self._guess([c[: 2**16] for c in columns])
        self._rows += n
        self._weight += n if weights is None else int(weights.sum())
        for start in range(0, n, self._block):
            stop = min(start + self._block, n)
            part = None if weights is None else weights[start:stop]
            self._add([c[start:stop] for c in columns], part)

    def miss(self, name: str, count: int) -> None:
        """Tell of missing cells that were seen before the rows came here."""
        self._missing[name] += count

    def _guess(self, columns: list[NDArray[Any]]) -> Floats:
        """Means over the first rows; of finite cells only, for the others are refused later."""
        shift = np.zeros(self._width)
        for v, (start, _), x in zip(
            self._schema.variables, self._schema.blocks, columns, strict=True
        ):
            if v.kind is Kind.CONTINUOUS:
                finite = np.asarray(x, dtype=np.float64)
                finite = finite[np.isfinite(finite)]
                if len(finite):
                    # Dividing first cannot overflow; the anchor keeps a constant exact.
                    anchor = finite[0]
                    shift[start] = anchor + ((finite - anchor) / len(finite)).sum()
        # The middle of a one-hot column is any number between 0 and 1; zero is exact.
        return frozen(np.where(np.isfinite(shift), shift, 0.0))

    def _add(self, columns: list[NDArray[Any]], weights: NDArray[Any] | None) -> None:
        assert self._shift is not None
        rows = len(columns[0])
        buffer = self._buffer[:, :rows]
        for v, (start, stop), x in zip(
            self._schema.variables, self._schema.blocks, columns, strict=True
        ):
            if v.kind is Kind.CONTINUOUS:
                np.subtract(x, self._shift[start], out=buffer[start], dtype=np.float64)
            else:
                codes = self._codes(v.name, x, stop - start + 1)
                for j in range(start, stop):
                    np.subtract(
                        codes == j - start + 1, self._shift[j], out=buffer[j], dtype=np.float64
                    )
        with np.errstate(all="ignore"):  # what is not finite is looked at below
            weighted = buffer if weights is None else buffer * weights
            sums, gram = weighted.sum(axis=1), weighted @ buffer.T
        if self._spoiled or not np.isfinite(gram.diagonal()).all():
            self._inspect(columns)
        if not self._spoiled:
            self._sums += sums
            self._gram += gram

    def _codes(self, name: str, x: NDArray[Any], levels: int) -> NDArray[Any]:
        if x.dtype.kind == "f" and np.isnan(x).any():
            self._spoiled = True
            return x
        if len(x) and (x.min() < 0 or x.max() >= levels):
            raise SchemaError(
                f"Variable {name!r} has codes from {x.min()} to {x.max()}; "
                f"with {levels} levels they go from 0 to {levels - 1}."
            )
        return x

    def _inspect(self, columns: list[NDArray[Any]]) -> None:
        """Count what made the sums not finite."""
        self._spoiled = True
        for name, x in zip(self._schema.names, columns, strict=True):
            if x.dtype.kind == "f":
                self._missing[name] += int(np.isnan(x).sum())
                self._infinite[name] += int(np.isinf(x).sum())

    def finish(self, *, regime: str | None = None) -> Moments:
        """The moments of all rows; refuses what cannot be used."""
        refuse_missing(self._missing, self._rows)
        refuse_infinite(self._infinite)
        refuse_empty(self._weight)
        if self._spoiled:
            raise DataError(OVERFLOW)
        assert self._shift is not None
        gram = (self._gram + self._gram.T) / 2
        return Moments(self._schema, self._weight, self._shift, self._sums, gram, regime)
