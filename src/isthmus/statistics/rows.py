"""The rows themselves, for models that no sums can stand for. They never leave their place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from isthmus.errors import SchemaError
from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import Kind, Schema
from isthmus.types import Floats


@final
@dataclass(frozen=True, eq=False)
class Rows:
    """All cells of a table that is at hand.

    Parameters
    ----------
    schema
        The variables.
    values
        Shape (n, d); a discrete variable is given by the codes of its levels.
    """

    schema: Schema
    values: Floats

    def __init__(self, schema: Schema, values: ArrayLike) -> None:
        found = np.array(values, dtype=np.float64)
        if found.ndim != 2 or found.shape[1] != len(schema):
            raise SchemaError(
                f"The array has the shape {found.shape}; (rows, {len(schema)}) is needed: "
                "one column for each variable of the schema."
            )
        found.flags.writeable = False
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "values", found)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.values)

    def numbers(self) -> Floats:
        """The cells as numbers: levels that are numbers or truth values stand for themselves."""
        found = self.values.copy()
        for j, v in enumerate(self.schema.variables):
            if v.kind is Kind.DISCRETE:
                if any(isinstance(level, str) for level in v.levels):
                    raise SchemaError(
                        f"Variable {v.name!r} has the levels {v.levels[:5]!r}, which are not "
                        "numbers. Give them numbers, or leave the variable out."
                    )
                found[:, j] = np.array([float(x) for x in v.levels])[self.values[:, j].astype(int)]
        return found

    def moments(self) -> Moments:
        """Their moments."""
        return Moments.from_array(self.schema, self.values)

    def constants(self) -> tuple[str, ...]:
        """Names of the variables that have the same value in all rows."""
        return self.moments().constants()

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        """Groups of variables that say the same twice."""
        return self.moments().duplicates()

    def __repr__(self) -> str:
        return f"Rows(n={self.n}, variables={len(self.schema)})"
