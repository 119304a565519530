"""Squares and products of all variables, clipped beyond a radius."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from isthmus.options import require_number
from isthmus.statistics.features.base import Basis, register_basis
from isthmus.statistics.features.chebyshev import Chebyshev
from isthmus.types import Floats


@final
@register_basis
@dataclass(frozen=True)
class Products(Basis):
    """Every variable, its square, and its products with the other variables.

    Their moments are the joint moments of the variables up to the fourth order. The square is
    written as the Chebyshev polynomial of degree 2.

    Parameters
    ----------
    radius
        Largest distance from the mean, in standard deviations. Values outside are clipped to it.
    """

    radius: float = 30.0
    name: ClassVar[str] = "products"
    rows_per_column: ClassVar[int] = 10
    pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_number(self, "radius", above=0)

    @property
    def _powers(self) -> Chebyshev:
        return Chebyshev(2, self.radius)

    @property
    def size(self) -> int:
        return 2

    @property
    def window(self) -> tuple[float, float]:
        return -self.radius, self.radius

    def evaluate(self, z: Floats) -> Floats:
        return self._powers.evaluate(z)

    def expressions(self, z: Any) -> Sequence[Any]:
        return self._powers.expressions(z)

    def bounds(self) -> Sequence[tuple[float, float]]:
        return self._powers.bounds()
