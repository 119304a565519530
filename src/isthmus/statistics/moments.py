"""Moments: n, sums and the Gram matrix of feature columns, in one block a variable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.errors import DataError, SchemaError
from isthmus.statistics import archive
from isthmus.statistics.checks import refuse_empty
from isthmus.statistics.schema import Kind, Schema

FORMAT = "isthmus-moments/1"

Floats = NDArray[np.float64]


def frozen(values: ArrayLike) -> Floats:
    """A read-only copy in float64."""
    found = np.array(values, dtype=np.float64, order="C")
    found.flags.writeable = False
    return found


@final
@dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments of the feature columns, kept so that they add up.

    A continuous variable is one feature column; a discrete one has a one-hot column for each level
    but the first. With ``s`` the shift, the sums are ``Σ (x - s)`` and the Gram matrix is
    ``Σ (x - s)(x - s)ᵀ``. The shift is near the mean, so nothing is lost where the mean is
    large against the spread.

    Parameters
    ----------
    schema
        The variables.
    n
        Number of rows.
    shift, sums, gram
        As above.
    regime
        Label of the conditions under which the rows were seen; different ones do not add up.
    """

    schema: Schema
    n: int
    shift: Floats
    sums: Floats
    gram: Floats
    regime: str | None = None

    def __post_init__(self) -> None:
        p = len(self.schema.columns)
        refuse_empty(self.n)
        for name, shape in (("shift", (p,)), ("sums", (p,)), ("gram", (p, p))):
            values = frozen(getattr(self, name))
            if values.shape != shape:
                raise SchemaError(
                    f"{name} has the shape {values.shape}; the schema has {p} feature columns, "
                    f"so {shape} is needed."
                )
            if not np.isfinite(values).all():
                raise DataError(f"{name} holds values that are not finite; moments must be.")
            object.__setattr__(self, name, values)

    @classmethod
    def from_array(
        cls,
        schema: Schema,
        values: ArrayLike,
        *,
        weights: ArrayLike | None = None,
        regime: str | None = None,
    ) -> Moments:
        """Compute moments of an array of one column a variable.

        Parameters
        ----------
        schema
            The variables, one for each column.
        values
            Shape (n, d). A discrete variable is given by the codes of its levels.
        weights
            How often each row was seen (integers); once if not given.
        regime
            Label of the conditions.
        """
        x = np.asarray(values)
        if x.ndim != 2 or x.shape[1] != len(schema):
            raise SchemaError(
                f"The array has the shape {x.shape}; (rows, {len(schema)}) is needed: "
                "one column for each variable of the schema."
            )
        return cls.from_columns(
            schema, [x[:, j] for j in range(x.shape[1])], weights=weights, regime=regime
        )

    @classmethod
    def from_columns(
        cls,
        schema: Schema,
        columns: Sequence[NDArray[Any]],
        *,
        weights: ArrayLike | None = None,
        regime: str | None = None,
    ) -> Moments:
        """Compute moments of columns, given one by one as in `from_array`."""
        from isthmus.statistics.builder import MomentsBuilder

        builder = MomentsBuilder(schema)
        builder.update(columns, None if weights is None else np.asarray(weights))
        return builder.finish(regime=regime)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the feature columns."""
        return self.schema.columns

    @property
    def blocks(self) -> tuple[tuple[int, int], ...]:
        """Start and stop of the feature columns of each variable."""
        return self.schema.blocks

    def mean(self) -> Floats:
        """Mean of each feature column."""
        found: Floats = self.shift + self.sums / self.n
        return found

    @cached_property
    def _scatter(self) -> Floats:
        found = self.gram - np.outer(self.sums, self.sums / self.n)
        found = (found + found.T) / 2
        # Rounding must not leave a negative sum of squares.
        np.fill_diagonal(found, np.maximum(found.diagonal(), 0.0))
        found.flags.writeable = False
        return found

    def scatter(self) -> Floats:
        """Centred Gram matrix: ``Σ (x - mean)(x - mean)ᵀ`` (read-only)."""
        return self._scatter

    def covariance(self, ddof: int = 0) -> Floats:
        """Scatter divided by ``n - ddof``."""
        if self.n <= ddof:
            raise DataError(
                f"A covariance with ddof={ddof} needs more than {ddof} rows; there are {self.n}."
            )
        return self._scatter / (self.n - ddof)

    def correlation(self) -> Floats:
        """Correlations of the feature columns; zero with a constant one, one with itself."""
        spread = np.sqrt(self._scatter.diagonal())
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        found: Floats = np.clip(self._scatter * scale[:, None] * scale, -1.0, 1.0)
        np.fill_diagonal(found, 1.0)
        return found

    def shifted(self, shift: ArrayLike) -> Moments:
        """The same moments about another shift."""
        target = np.asarray(shift, dtype=np.float64)
        delta = self.shift - target
        cross = np.outer(self.sums, delta)
        gram = self.gram + (cross + cross.T) + self.n * np.outer(delta, delta)
        return replace(self, shift=target, sums=self.sums + self.n * delta, gram=gram)

    def __add__(self, other: Moments) -> Moments:
        """Moments of both sets of rows together."""
        if not isinstance(other, Moments):
            return NotImplemented
        if self.schema != other.schema:
            raise SchemaError(
                "Moments of different schemas do not add up: "
                f"{_difference(self.schema, other.schema)}. Select the same variables in the "
                "same order, and align levels with align_levels."
            )
        if self.regime != other.regime:
            raise SchemaError(
                f"Moments of regime {self.regime!r} and {other.regime!r} do not add up: "
                "keep them apart, or give both the same regime if the conditions were the same."
            )
        n = self.n + other.n
        share = other.n / n
        # About the common mean the terms are sums of squares: nothing cancels.
        between = (other.shift - self.shift) + (other.sums / other.n - self.sums / self.n)
        centre = self.shift + (self.sums / self.n + share * between)
        a, b = self.shifted(centre), other.shifted(centre)
        return replace(self, n=n, shift=centre, sums=a.sums + b.sums, gram=a.gram + b.gram)

    def select(self, names: Iterable[str]) -> Moments:
        """Moments of some variables, in the order asked."""
        positions = self.schema.indices(names)
        keep = np.concatenate(
            [np.arange(*self.blocks[i]) for i in positions] or [np.arange(0)]
        ).astype(np.intp)
        return replace(
            self,
            schema=Schema(tuple(self.schema.variables[i] for i in positions)),
            shift=self.shift[keep],
            sums=self.sums[keep],
            gram=self.gram[np.ix_(keep, keep)],
        )

    def with_schema(self, schema: Schema) -> Moments:
        """Recode to a schema whose discrete variables may have more levels, in another order."""
        mapping, offset = _recoding(self.schema, schema)
        centred = mapping @ self.scatter() @ mapping.T
        mean = mapping @ self.mean() + offset
        return replace(self, schema=schema, shift=mean, sums=np.zeros_like(mean), gram=centred)

    def constants(self) -> tuple[str, ...]:
        """Names of the variables that have the same value in all rows."""
        mean, square = self.mean(), self._scatter.diagonal()
        # The shift itself is rounded: a constant leaves squares of a few units in the last place.
        limit = self.n * (8 * np.finfo(np.float64).eps * np.abs(mean)) ** 2
        still = square <= limit
        return tuple(
            v.name
            for v, (start, stop) in zip(self.schema.variables, self.blocks, strict=True)
            if still[start:stop].all()
        )

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Groups of variables that are the same up to scale and offset, or up to names of levels.

        With fewer than three rows all are, so none are named. Constants are left out.
        """
        from isthmus.statistics.duplicates import same_blocks

        return same_blocks(self)

    def save(self, path: archive.FilePath) -> None:
        """Write to a file (see the reference on the file format)."""
        header = {
            "format": FORMAT,
            "schema": self.schema.to_dict(),
            "n": self.n,
            "regime": self.regime,
        }
        arrays = {"shift": self.shift, "sums": self.sums, "gram": self.gram}
        archive.write(path, header, arrays, compress=False)

    @classmethod
    def load(cls, path: archive.FilePath) -> Moments:
        """Read a file that `save` wrote.

        Raises
        ------
        FormatError
            If the file is damaged, or holds something that no rows can have.
        """
        header, arrays = archive.read(path, FORMAT)
        with archive.damage_reported(path):
            archive.require_arrays(arrays, ("shift", "sums", "gram"))
            moments = cls(
                Schema.from_dict(header["schema"]),
                archive.whole_number(header["n"], "n"),
                archive.real(arrays["shift"], "shift"),
                archive.real(arrays["sums"], "sums"),
                archive.real(arrays["gram"], "gram"),
                archive.optional_text(header["regime"], "regime"),
            )
            archive.require_gram(moments.gram, moments.sums, moments.n)
            return moments

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Moments):
            return NotImplemented
        return (
            (self.schema, self.n, self.regime) == (other.schema, other.n, other.regime)
            and np.array_equal(self.shift, other.shift)
            and np.array_equal(self.sums, other.sums)
            and np.array_equal(self.gram, other.gram)
        )

    def __hash__(self) -> int:
        return hash((self.schema, self.n, self.regime, self.sums.tobytes()))

    def __repr__(self) -> str:
        regime = "" if self.regime is None else f", regime={self.regime!r}"
        sizes = f"variables={len(self.schema)}, columns={len(self.columns)}"
        return f"Moments(n={self.n}, {sizes}{regime})"


def _difference(a: Schema, b: Schema) -> str:
    if a.names != b.names:
        return f"names {list(a.names)[:10]} and {list(b.names)[:10]}"
    for u, v in zip(a.variables, b.variables, strict=True):
        if u != v:
            return f"{u.name!r} is {u.kind} {u.levels!r} and {v.kind} {v.levels!r}"
    return "they are equal"


def _recoding(old: Schema, new: Schema) -> tuple[Floats, Floats]:
    """The affine map from the feature columns of `old` to those of `new`."""
    if old.names != new.names or any(
        a.kind is not b.kind or not set(a.levels) <= set(b.levels)
        for a, b in zip(old.variables, new.variables, strict=True)
    ):
        raise SchemaError(
            "The new schema must have the same names and kinds, and at least the same levels."
        )
    mapping = np.zeros((len(new.columns), len(old.columns)))
    offset = np.zeros(len(new.columns))
    for i, (a, b) in enumerate(zip(old.variables, new.variables, strict=True)):
        at, to = old.blocks[i][0], new.blocks[i][0]
        if a.kind is Kind.CONTINUOUS:
            mapping[to, at] = 1.0
            continue
        for j, level in enumerate(b.levels[1:]):
            if level == a.levels[0]:  # the level that had no column: one less all others
                offset[to + j] = 1.0
                mapping[to + j, at : old.blocks[i][1]] = -1.0
            elif level in a.levels:
                mapping[to + j, at + a.levels.index(level) - 1] = 1.0
    return mapping, offset
