"""Who decides at a site what leaves it."""

from __future__ import annotations

from abc import ABC, abstractmethod

from isthmus.sources.horizontal.secure_sum.frames import FrameKind, Opening, Refusal
from isthmus.sources.horizontal.secure_sum.words import Words


class Keeper(ABC):
    """Who decides at a site what leaves it, and writes it down before it does."""

    @abstractmethod
    def last_round(self) -> int:
        """The highest round ever opened in this study, also before a restart; zero if none."""

    @abstractmethod
    def answer(self, opening: Opening) -> Words:
        """The numbers to be summed, or `BrokenFrameError` when the request is refused."""

    @abstractmethod
    def record(self, kind: FrameKind, opening: Opening, active: frozenset[int] | None) -> None:
        """Write down that a frame of this kind is about to leave, or raise to refuse it."""

    @abstractmethod
    def record_keys(self, number: int, sites: frozenset[int]) -> None:
        """Write down that a key for sums of one message each is about to leave, or refuse it."""

    @abstractmethod
    def record_again(self, number: int) -> None:
        """Write down that the same answer is about to leave once more, or refuse it."""

    @abstractmethod
    def refused(self, why: Refusal, number: int) -> None:
        """Write down that a frame was not answered."""

    def state(self) -> bytes:
        """What the next answer depends on, beside the data: to be kept over a restart."""
        return b""

    def restore(self, state: bytes) -> None:
        """Go on from what `state` gave."""
        assert not state
