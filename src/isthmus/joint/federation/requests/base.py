"""The interface of requests that secure sums answer."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Generic, TypeVar

from isthmus.joint.agreement.requests import Request
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.secure_sum.limbs import LimbArray
from isthmus.joint.secure_sum.protocol import NAME
from isthmus.sources.base import Source

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
