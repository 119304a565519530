"""Base class of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar, Generic, TypeVar

from isthmus.objectives import LOCAL_SCORES, Capabilities, Objective
from isthmus.objectives.local import Recipe
from isthmus.statistics import Basis, Kind, Statistic

StatisticsT = TypeVar("StatisticsT", bound=Statistic)
ObjectiveT_co = TypeVar("ObjectiveT_co", bound=Objective, covariant=True)


class Score(ABC, Generic[StatisticsT, ObjectiveT_co]):
    """Base class of scores, which turn statistics into an objective for a search.

    Implementations are frozen dataclasses whose fields are the options of the score.

    Attributes
    ----------
    needs
        The statistics that the score is computed from.
    kind
        The type of variable that it supports; None if it supports both.
    gives
        Capabilities of its objectives; local scores by default.
    basis
        Basis functions of the columns that the score needs; None for most scores.
    """

    needs: ClassVar[type[Statistic]]
    kind: ClassVar[Kind | None]
    gives: ClassVar[Capabilities] = frozenset({LOCAL_SCORES})
    basis: Basis | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "bind" in cls.__dict__:
            cls.bind = _with_recipe(cls.__dict__["bind"])  # type: ignore[method-assign]

    @abstractmethod
    def bind(self, statistics: StatisticsT) -> ObjectiveT_co:
        """Bind the score to statistics and return the objective for a search.

        A local score keeps references to this score and the statistics, so that it can be pickled.
        """


def _with_recipe(bind: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(bind)
    def bound(self: Any, statistics: Any) -> Any:
        objective = bind(self, statistics)
        local = LOCAL_SCORES.of(objective)
        if local is not None and local.recipe is None:
            local.recipe = Recipe(self.bind, statistics)
        return objective

    return bound
