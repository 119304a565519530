"""Chebyshev polynomials, clipped beyond a radius."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from isthmus.options import require_integer, require_number
from isthmus.statistics.features.base import Basis, polynomial, register_basis
from isthmus.types import Floats

MOST_TERMS = 128
_HORNER = 5
"""Degrees up to this are written in powers; in higher ones the powers would cancel."""


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
        Half-width of the interval around the mean on which the polynomials are defined, in
        standard deviations. Values outside are clipped to it.
    """

    terms: int = 6
    radius: float = 3.0
    name: ClassVar[str] = "chebyshev"
    rows_per_column: ClassVar[int] = 10

    def __post_init__(self) -> None:
        require_integer(self, "terms", least=1, most=MOST_TERMS)
        require_number(self, "radius", above=0)

    @property
    def size(self) -> int:
        return self.terms

    @property
    def window(self) -> tuple[float, float]:
        return -self.radius, self.radius

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
        u = (z / self.radius).clip(-1.0, 1.0)
        return [_expression(k, u) for k in range(1, self.terms + 1)]

    def bounds(self) -> Sequence[tuple[float, float]]:
        return ((-1.0, 1.0),) * self.terms


def _expression(degree: int, u: Any) -> Any:
    """Write one polynomial by halving its degree, which needs few copies of the argument.

    An expression cannot refer to another one, so the usual recurrence would double its length with
    every degree or two. ``T_2k = 2 T_k² - 1`` and ``T_2k+1 = 2 T_k T_k+1 - u`` do not.
    """
    if degree <= _HORNER:
        from numpy.polynomial.chebyshev import cheb2poly

        return polynomial(cheb2poly([0.0] * degree + [1.0]).tolist(), u)
    half = degree // 2
    if degree % 2 == 0:
        return _expression(half, u) ** 2 * 2.0 - 1.0
    return _expression(half, u) * _expression(half + 1, u) * 2.0 - u
