"""What a search over additive losses has so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from isthmus.searches.continuous.order_descent import OrderDescent
from isthmus.types import Bools, Floats


@final
@dataclass(frozen=True, eq=False)
class Candidate:
    """The solution for one penalty, and the graph that was chosen along its order."""

    share: float
    penalties: Floats
    descent: OrderDescent
    graph: Bools
    criterion: float | None
    moved: bool


@final
@dataclass(frozen=True, eq=False)
class Answer:
    """A graph with coefficients and all that `best` tells about them, in units of the noise."""

    coefficients: Floats
    graph: Bools
    value: float
    residual: float
    removed: int
