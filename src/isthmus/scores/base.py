"""What a score is: a strategy that turns statistics into an objective."""

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
    """Options of a score; implementations are frozen dataclasses.

    Attributes
    ----------
    needs
        The statistics that the score is computed from.
    kind
        The kind of variable it is for; None if it accepts both.
    gives
        What its objectives can be asked; local scores unless a score says otherwise.
    basis
        Basis functions of the columns that the score needs beside them; None for most scores.
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

        A local score remembers this score and these statistics, so that it can be pickled.
        """

    def preferred_search(self) -> object | None:
        """Return the search that suits this score best; None to let `learn` choose.

        A score that comes with a search of its own returns it here.
        """
        return None


def _with_recipe(bind: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(bind)
    def bound(self: Any, statistics: Any) -> Any:
        objective = bind(self, statistics)
        local = LOCAL_SCORES.of(objective)
        if local is not None and local.recipe is None:
            local.recipe = Recipe(self.bind, statistics)
        return objective

    return bound
