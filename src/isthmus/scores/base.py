"""What a score is: a strategy that turns statistics into an objective."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Generic, TypeVar

from isthmus.objectives import AdditiveLoss, LocalScore, ParametricLoss, SmoothLoss
from isthmus.objectives.local import Recipe
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

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "bind" in cls.__dict__:
            cls.bind = _with_recipe(cls.__dict__["bind"])  # type: ignore[method-assign]

    @abstractmethod
    def bind(self, statistics: StatisticsT) -> ObjectiveT:
        """Bind the score to statistics and return the objective for a search.

        A local score remembers this score and these statistics, so that it can be pickled.
        """


def _with_recipe(bind: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(bind)
    def bound(self: Any, statistics: Any) -> Any:
        objective = bind(self, statistics)
        if isinstance(objective, LocalScore) and objective.recipe is None:
            objective.recipe = Recipe(self.bind, statistics)
        return objective

    return bound
