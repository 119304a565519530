"""Powers and products of all variables, clipped beyond a radius."""

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
    """Every variable, its square and cube, and its products with the other variables.

    Their moments are the joint moments of the variables up to the fourth order, and some of higher
    ones. The powers are written as Chebyshev polynomials.

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
        return Chebyshev(3, self.radius)

    @property
    def size(self) -> int:
        return 3

    @property
    def window(self) -> tuple[float, float]:
        return -self.radius, self.radius

    def evaluate(self, z: Floats) -> Floats:
        return self._powers.evaluate(z)

    def expressions(self, z: Any) -> Sequence[Any]:
        return self._powers.expressions(z)

    def bounds(self) -> Sequence[tuple[float, float]]:
        return self._powers.bounds()
