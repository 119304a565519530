"""Functions of a column as further columns, so that sums can tell of curves.

The feature columns of ``x`` are named ``x~1``, ``x~2`` …; they are ordinary continuous columns, so
their moments add up, are saved and are computed by any engine like those of any column. All sites
must use the same :class:`Expansion`, made from the pooled moments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, FormatError, SchemaError
from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import Kind, Schema

Floats = NDArray[np.float64]

_FEATURE = re.compile(r"(.+)~([1-9][0-9]*)", re.DOTALL)


@final
@dataclass(frozen=True)
class Chebyshev:
    """Chebyshev polynomials of a standardised column, clipped beyond a radius.

    Parameters
    ----------
    terms
        Number of functions: the degrees from 1 to this.
    radius
        Standard deviations around the mean that the interval [-1, 1] of the polynomials stands for;
        values further out count as if they lay on its border.
    """

    terms: int = 6
    radius: float = 3.0

    def __post_init__(self) -> None:
        if not 1 <= self.terms <= 12:
            raise DataError(f"terms must be between 1 and 12; {self.terms} was given.")
        if not self.radius > 0:
            raise DataError(f"radius must be positive; {self.radius} was given.")

    def standardised(self, moments: Moments) -> Expansion:
        """Fit centre and scale of each column to pooled moments."""
        moments.schema.require(Kind.CONTINUOUS, "Basis functions")
        spread = np.sqrt(moments.covariance().diagonal())
        scales = np.where(spread > 0, spread, 1.0)
        return Expansion(
            self,
            moments.schema.names,
            tuple(moments.mean().tolist()),
            tuple(scales.tolist()),
        )

    def polynomials(self) -> list[list[float]]:
        """Coefficients of each function, from the constant upwards, in the clipped column."""
        from numpy.polynomial.chebyshev import cheb2poly

        return [cheb2poly([0.0] * k + [1.0]).tolist() for k in range(1, self.terms + 1)]


@final
@dataclass(frozen=True)
class Expansion:
    """A basis with the centre and scale of each column."""

    basis: Chebyshev
    names: tuple[str, ...]
    centres: tuple[float, ...]
    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        taken = [n for n in self.names if split_feature(n) is not None]
        if taken:
            raise SchemaError(
                f"The columns {taken[:5]} have names of feature columns (they end in ~1, ~2 …). "
                "Rename them, or do not expand them again."
            )

    def schema(self) -> Schema:
        """The columns themselves, then the feature columns of each."""
        terms = range(1, self.basis.terms + 1)
        features = [feature_name(n, k) for n in self.names for k in terms]
        return Schema.continuous([*self.names, *features])

    def apply(self, values: Floats) -> Floats:
        """Compute the columns of `schema` for rows of the columns themselves."""
        radius, terms = self.basis.radius, self.basis.terms
        scaled = (values - np.array(self.centres)) / (radius * np.array(self.scales))
        u = np.clip(scaled, -1.0, 1.0)
        found = [np.ones_like(u), u]
        while len(found) <= terms:
            found.append(2.0 * u * found[-1] - found[-2])
        features = np.stack(found[1 : terms + 1], axis=2).reshape(len(values), -1)
        return np.column_stack([values, features])

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, to be sent to the sites."""
        return {
            "chebyshev": {"terms": self.basis.terms, "radius": self.basis.radius},
            "columns": {
                n: [c, s] for n, c, s in zip(self.names, self.centres, self.scales, strict=True)
            },
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Expansion:
        """Read what `to_dict` wrote."""
        try:
            basis = Chebyshev(int(data["chebyshev"]["terms"]), float(data["chebyshev"]["radius"]))
            columns = {str(n): (float(c), float(s)) for n, (c, s) in data["columns"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(f"This is not an expansion: {error}.") from error
        centres, scales = zip(*columns.values(), strict=True) if columns else ((), ())
        return cls(basis, tuple(columns), tuple(centres), tuple(scales))


def feature_name(name: str, term: int) -> str:
    """Name of a feature column."""
    return f"{name}~{term}"


def split_feature(column: str) -> tuple[str, int] | None:
    """The column and the term of a feature column; None for other names."""
    found = _FEATURE.fullmatch(column)
    return None if found is None else (found.group(1), int(found.group(2)))


def features_of(names: Sequence[str]) -> dict[str, list[str]]:
    """The feature columns of each column that is not one itself, in the order of their terms."""
    found: dict[str, list[tuple[int, str]]] = {n: [] for n in names if split_feature(n) is None}
    for name in names:
        parts = split_feature(name)
        if parts is not None:
            if parts[0] not in found:
                raise SchemaError(f"{name!r} is a feature of {parts[0]!r}, which is not there.")
            found[parts[0]].append((parts[1], name))
    return {n: [name for _, name in sorted(own)] for n, own in found.items()}
