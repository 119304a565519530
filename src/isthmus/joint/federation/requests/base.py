"""The interface of requests that secure sums answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Generic, Self, TypeVar

from isthmus.joint.agreement.requests import Request
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.secure_sum.limbs import LimbArray
from isthmus.joint.secure_sum.protocol import NAME
from isthmus.joint.secure_sum.quoted_answers import AnsweredRound
from isthmus.sources.base import Source
from isthmus.statistics import Statistic

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Contribution(Generic[T]):
    """Contribution of one site to a sum.

    Attributes
    ----------
    statistic
        The statistic that it was computed from. The site's rules on cohorts and small cells are
        applied to it.
    value
        Value that is added to the sum.
    """

    statistic: Statistic
    value: T


class MethodState(ABC):
    """State of a method at a site between its requests.

    Attributes
    ----------
    answered
        The round of the last request of the method, if later requests quote the answers to it.
    """

    answered: AnsweredRound | None = None

    @abstractmethod
    def copy(self) -> Self:
        """Return a copy for a dry run, which must not change the original."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Return the state, to be kept over a restart."""

    @abstractmethod
    def restore(self, data: bytes) -> None:
        """Continue from what `to_bytes` returned."""


class SumRequest(Request, Generic[T]):
    """A request to all sites that is answered by one secure sum.

    ``T`` is the type of a site's contribution, and of the sum.

    Attributes
    ----------
    limbs
        Length of each number in limbs of 32 bits.
    needs_all_sites
        Whether it is one of many requests that all need the same sites. The sites then agree on
        keys once, and each request takes one message per site.
    method
        Name of the method whose state at the site the answer depends on, or nothing. Requests of
        one method share the state.
    is_quoted
        Whether later requests quote the answers to this one.
    releases_columns
        Whether the answer contains or depends on sums or products of columns. Otherwise it
        consists of planned tables.
    """

    protocol: ClassVar[str] = NAME
    limbs: ClassVar[int]
    needs_all_sites: ClassVar[bool] = False
    method: ClassVar[str] = ""
    is_quoted: ClassVar[bool] = False
    releases_columns: ClassVar[bool] = True

    @property
    def quoted(self) -> tuple[bytes, ...]:
        """The signed answers of all sites to the last request of the method, if it needs them."""
        return ()

    def continue_from(
        self, state: MethodState | None, total: LimbArray, grid: FixedPointEncoding
    ) -> None:
        """Take the sum of the quoted answers, which the site has checked, into the state."""

    @abstractmethod
    def size(self, grid: FixedPointEncoding) -> int:
        """Return how many numbers the answer has; `DataError` if it does not fit the study."""

    @abstractmethod
    def contribute(self, source: Source, state: MethodState | None) -> Contribution[T]:
        """Compute what one site contributes."""

    @abstractmethod
    def new_state(self) -> MethodState | None:
        """Return the state of the method before its first request; ``None`` if it keeps none."""

    @abstractmethod
    def encode(self, value: T, grid: FixedPointEncoding) -> LimbArray:
        """Return a site's contribution as integers."""

    def integers(self, value: T, source: Source, grid: FixedPointEncoding) -> LimbArray:
        """Return a site's contribution as integers that do not depend on the split over sites.

        This default encodes the contribution, and suits requests whose numbers are integers
        anyway, or are functions of the site's own data.
        """
        _ = source
        return self.encode(value, grid)

    @abstractmethod
    def decode(self, total: LimbArray, grid: FixedPointEncoding) -> T:
        """Read the sum over all sites."""

    @abstractmethod
    def show(self, value: T) -> list[str]:
        """Return a site's contribution in lines for people."""


class StatisticRequest(SumRequest[T], Generic[T]):
    """A request for a statistic of the data, whatever was requested before."""

    def new_state(self) -> None:
        """Return ``None``: no state is kept."""
        return
