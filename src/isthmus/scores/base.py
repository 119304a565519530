"""Base class of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar, final

from isthmus.errors import MismatchError
from isthmus.kernels.scoring import child_scores
from isthmus.objectives import LOCAL_SCORES, Capabilities, LocalScore, Objective
from isthmus.statistics import Basis, Counts, Kind, Moments, Regimes, Statistic, Summary
from isthmus.types import Floats

StatisticsT = TypeVar("StatisticsT", bound=Summary)
ObjectiveT_co = TypeVar("ObjectiveT_co", bound=Objective, covariant=True)


class Score(ABC, Generic[StatisticsT, ObjectiveT_co]):
    """Base class of scores, which turn statistics into an objective for a search.

    Implementations are frozen dataclasses whose fields are the options of the score.

    Attributes
    ----------
    needs
        The statistics that a source is asked for.
    kind
        The type of variable that it supports; None if it supports both.
    gives
        Capabilities of its objectives; local scores by default.
    of_columns
        Whether it can also be bound to `StandardisedColumns`, for tables of very many columns.
    basis
        Basis functions of the columns that the score needs; None for most scores.
    """

    needs: ClassVar[type[Statistic]]
    kind: ClassVar[Kind | None]
    gives: ClassVar[Capabilities] = frozenset({LOCAL_SCORES})
    of_columns: ClassVar[bool] = False
    basis: Basis | None = None

    @abstractmethod
    def bind(self, statistics: StatisticsT) -> ObjectiveT_co:
        """Bind the score to statistics and return the objective for a search."""

    def of_incomplete_rows(self, standard_errors: float = 1.0) -> Score[Any, LocalScore]:
        """Return the version of a criterion for incomplete rows; other scores have none."""
        del standard_errors
        if LOCAL_SCORES not in self.gives:
            raise MismatchError(
                f"{self!r} needs complete rows of discrete columns. Use DropRows() or "
                "MissingAsLevel(), or a search for a score, such as XGES()."
            )
        raise MismatchError(
            "Leaving missing values to the score works with BIC(), AIC(), EBIC() and other "
            f"criteria, and the score is {self!r}. Name one of these scores, or use DropRows() or "
            "MissingAsLevel()."
        )

    def posterior(self, moments: Moments) -> tuple[Floats, float, Floats | None] | None:
        """Return the posterior of linear networks, if the score has a prior of them; see `BGe`."""
        del moments
        return None

    @final
    def of_regimes(self) -> InterventionalScore:
        """Return the version of a local score for data of several regimes."""
        plain = self.needs in (Counts, Moments) and self.basis is None
        if not plain or LOCAL_SCORES not in self.gives:
            raise MismatchError(
                f"Data of several regimes need a local score of counts or moments without basis "
                f"functions, and the score is {self!r}. Use BIC(), BDeu(), GaussianBIC() or BGe(), "
                "for instance, and a search such as Boss()."
            )
        return InterventionalScore(self)


@final
@dataclass(frozen=True)
class InterventionalScore(Score[Regimes, LocalScore]):
    """A local score in which each child is scored on the rows where it was not a target.

    Parameters
    ----------
    base
        A local score of counts or moments.
    """

    base: Score[Any, Any]
    kind: ClassVar[Kind | None] = None

    @property
    def needs(self) -> type[Statistic]:  # type: ignore[override]
        """The statistics that are needed of each part of the rows."""
        return self.base.needs

    def bind(self, statistics: Regimes) -> LocalScore:
        parts = [LOCAL_SCORES.require(self.base.bind(part)) for part in statistics.parts]
        kernel = child_scores([parts[k].kernel for k in statistics.part_of])
        return LocalScore(
            statistics.schema.names,
            kernel,
            equivalent=False,
            equivalent_given_targets=parts[0].equivalent,
            cost=lambda parents: max(part.seconds(parents) for part in parts),
        )
