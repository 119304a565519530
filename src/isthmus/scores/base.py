"""What a score is: a strategy that turns statistics into an objective."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from isthmus.objectives import AdditiveLoss, LocalScore, ParametricLoss, SmoothLoss
from isthmus.statistics import Chebyshev, Counts, Kind, Moments, Rows

StatisticsT = TypeVar("StatisticsT", Moments, Counts, Rows)
ObjectiveT = TypeVar(
    "ObjectiveT", bound=LocalScore | SmoothLoss | AdditiveLoss | ParametricLoss, covariant=True
)


class Score(ABC, Generic[StatisticsT, ObjectiveT]):
    """Options of a score; subclasses are frozen dataclasses.

    Attributes
    ----------
    needs
        The statistics that the score is computed from.
    kind
        The kind of variable it is for; None if it takes both.
    basis
        Functions of the columns that it needs beside them; None for most.
    """

    needs: ClassVar[type[Moments] | type[Counts] | type[Rows]]
    kind: ClassVar[Kind | None]
    basis: Chebyshev | None = None

    @abstractmethod
    def bind(self, statistics: StatisticsT) -> ObjectiveT:
        """Give the objective that a search sees."""
