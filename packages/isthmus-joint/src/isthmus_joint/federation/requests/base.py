"""The interface of requests that secure sums answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar, final

import numpy as np

from isthmus.errors import RefusedError
from isthmus.tables.base import Source
from isthmus_joint.agreement.requests import Request
from isthmus_joint.agreement.study import Study
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.secure_sum.protocol import NAME, PublicRound
from isthmus_joint.secure_sum.terms import LimbArray

T = TypeVar("T")


class SumRequest(Request, Generic[T]):
    """A request to all sites that is answered by one secure sum.

    ``T`` is the type of the sum, and of what one site adds to it.

    Attributes
    ----------
    limbs
        Length of each number in limbs of 32 bits.
    """

    protocol: ClassVar[str] = NAME
    limbs: ClassVar[int]

    @abstractmethod
    def size(self, grid: FixedPointEncoding) -> int:
        """Return how many numbers the answer has; `DataError` if it does not fit the study."""

    @abstractmethod
    def decode(self, total: LimbArray, grid: FixedPointEncoding) -> T:
        """Read the sum over all sites, or what one site adds to it."""

    def require_plausible(self, total: LimbArray, grid: FixedPointEncoding) -> None:
        """Raise `DataError` if tables within the bounds of the study cannot have this sum.

        A site may send any numbers. This finds sums that could not be read, or make no sense.
        """

    @abstractmethod
    def show(self, numbers: LimbArray, grid: FixedPointEncoding) -> list[str]:
        """Describe what one site adds to the sum, in lines for people."""


class StatisticRequest(SumRequest[T], Generic[T]):
    """A request for a statistic of the data, whatever was requested before."""

    @abstractmethod
    def encode(self, source: Source, grid: FixedPointEncoding) -> LimbArray:
        """Return what one site adds to the sum."""


# --- Requests for the steps of a method: each step follows from the sums of all earlier ones ----
#
# A request says which method it is for, with which options, and the number of the step. It
# carries no parameters: every site computes them from the sums, which it has computed itself from
# what all sites signed. So nobody can choose them.


class SiteSteps(ABC):
    """A method at one site, before its next step.

    The contribution depends on the rows of the site and on the sums so far, and on nothing else.
    """

    @abstractmethod
    def contribution(self) -> LimbArray:
        """Return what the site adds to the sum of the next step; the same when called again."""

    @abstractmethod
    def take(self, total: LimbArray) -> None:
        """Take the sum of this step over all sites; `DataError` if no tables could have it."""


@dataclass(frozen=True)
class StepRequest(SumRequest[T], Generic[T]):
    """A request for one step of a method. Step 0 begins a run and fixes its options.

    Attributes
    ----------
    asked
        Names of the variables: all of the study.
    step
        Number of the step, from zero.
    """

    asked: tuple[str, ...]
    step: int

    @property
    def previous(self) -> Self | None:
        """The request from whose sum this one follows; ``None`` for step 0."""
        return replace(self, step=self.step - 1) if self.step else None

    @abstractmethod
    def begin(self, source: Source, grid: FixedPointEncoding) -> SiteSteps:
        """Return the method at a site before step 0."""

    @staticmethod
    @abstractmethod
    def steps_allowed(study: Study) -> int:
        """Return how many steps a study allows, after that with number zero."""

    def violations(self, study: Study) -> list[str]:
        broken = []
        if self.asked != study.schema.names:
            broken.append(f"steps of {self.name} are of all variables of the study")
        if not 0 <= self.step <= self.steps_allowed(study):
            broken.append("the number of the step is outside of what the study allows")
        return broken

    def preview(self, source: Source, grid: FixedPointEncoding) -> LimbArray:
        """Return the contribution of a site as if there were no other site, for a dry run."""
        site = self.begin(source, grid)
        for _ in range(self.step):
            site.take(site.contribution())
        return site.contribution()


@final
class MethodState:
    """A method at a site: the sums so far, and what follows from them.

    The sums are all that is kept over a restart. The rest is then computed again.

    Parameters
    ----------
    grid
        The units of the study.
    sums
        The sums that an earlier state had.

    Attributes
    ----------
    answered, followed
        The last round in which masked numbers left, and the round whose sum the request of that
        round followed from. A round that failed is asked again, with the same transcript, so that
        both are needed.
    follows
        The round whose sum the request follows from that is answered next.
    """

    def __init__(self, grid: FixedPointEncoding, sums: Iterable[LimbArray] = ()) -> None:
        self._grid = grid
        self.sums = list(sums)
        self.answered: PublicRound | None = None
        self.followed: PublicRound | None = None
        self.follows: PublicRound | None = None
        self._site: SiteSteps | None = None
        self._taken = 0

    def take(self, request: StepRequest[Any], total: LimbArray) -> None:
        """Take the sum of the step before a request; the same sum may be taken again."""
        if len(self.sums) == request.step - 1:
            self.sums.append(total)
        elif len(self.sums) != request.step or not np.array_equal(self.sums[-1], total):
            raise _wrong_order(request)

    def answer(self, request: StepRequest[Any], source: Source) -> LimbArray:
        """Compute the contribution of the site to a step. Step 0 begins a new run."""
        if request.step == 0:
            self.sums, self._site = [], None
        if len(self.sums) != request.step:
            raise _wrong_order(request)
        if self._site is None:  # a new run, or after a restart
            self._site, self._taken = request.begin(source, self._grid), 0
        try:
            while self._taken < request.step:
                self._site.take(self.sums[self._taken])
                self._taken += 1
        except Exception:
            del self.sums[self._taken :]  # a sum that was refused is refused again
            self._site = None
            raise
        return self._site.contribution()


def _wrong_order(request: StepRequest[Any]) -> RefusedError:
    return RefusedError(
        f"Step {request.step} was requested. Steps must follow each other, and each has one sum."
    )
