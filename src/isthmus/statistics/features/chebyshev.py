"""Chebyshev polynomials, clipped beyond a radius."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from isthmus.errors import DataError
from isthmus.statistics.features.base import Basis, polynomial, register_basis
from isthmus.types import Floats


@final
@register_basis
@dataclass(frozen=True)
class Chebyshev(Basis):
    """Chebyshev polynomials of a standardised variable, clipped beyond a radius.

    Parameters
    ----------
    terms
        Number of functions: the polynomials of degree 1 to this.
    radius
        How many standard deviations around the mean the interval [-1, 1] of the polynomials
        covers; values further out are moved to its border.
    """

    terms: int = 6
    radius: float = 3.0
    name: ClassVar[str] = "chebyshev"
    rows_per_column: ClassVar[int] = 10

    def __post_init__(self) -> None:
        if not (isinstance(self.terms, int) and 1 <= self.terms <= 12):
            raise DataError(f"terms must be between 1 and 12; {self.terms} was given.")
        if not 0 < self.radius < float("inf"):
            raise DataError(f"radius must be positive and finite; {self.radius} was given.")

    @property
    def size(self) -> int:
        return self.terms

    def evaluate(self, z: Floats) -> Floats:
        u = np.clip(z / self.radius, -1.0, 1.0)
        values = np.empty((self.terms, *u.shape))
        values[0] = u
        before: Floats | float = 1.0
        for k in range(1, self.terms):
            values[k] = 2.0 * u * values[k - 1] - before
            before = values[k - 1]
        return values

    def expressions(self, z: Any) -> Sequence[Any]:
        from numpy.polynomial.chebyshev import cheb2poly

        u = (z / self.radius).clip(-1.0, 1.0)
        degrees = range(1, self.terms + 1)
        return [polynomial(cheb2poly([0.0] * k + [1.0]).tolist(), u) for k in degrees]

    def bounds(self) -> Sequence[tuple[float, float]]:
        return ((-1.0, 1.0),) * self.terms
