"""How frames reach the sites; and within one process, for research and tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias, final

from isthmus.errors import AbortedError
from isthmus.sources.horizontal.secure_sum.coordinator import Coordinator
from isthmus.sources.horizontal.secure_sum.frames import BrokenFrameError, Refusal
from isthmus.sources.horizontal.secure_sum.gathering import SingleRound
from isthmus.sources.horizontal.secure_sum.words import Words


class Round(Protocol):
    """What drives the frames of one round: `Coordinator`, `KeyRound`, `SingleRound`."""

    @property
    def waiting(self) -> tuple[str, ...]:
        """The sites that have not answered yet."""

    def begin(self) -> dict[str, bytes]:
        """The first frame for each site."""

    def receive(self, data: bytes) -> None:
        """Take a frame of a site. One that cannot be accepted raises and changes nothing."""

    def advance(self) -> dict[str, bytes]:
        """Go on with the sites that answered, or raise `AbortedError`."""

    def again(self) -> dict[str, bytes]:
        """Frames that may be sent once more to sites that are silent; mostly none."""


@final
@dataclass(frozen=True)
class Timeouts:
    """How long to wait, in seconds. There are no others.

    Attributes
    ----------
    answer
        For the answer of a site to one message. A site that takes longer is silent.
    gather
        For all sites to come at the beginning.
    pause
        For silent sites to come back, where a round cannot go on without them.
    """

    answer: float = 300.0
    gather: float = 3600.0
    pause: float = 86400.0


class SiteState(StrEnum):
    """What a coordinator knows of a site."""

    AWAITED = "awaited"
    ASKED = "asked"
    ANSWERED = "answered"
    SILENT = "silent"


Watcher: TypeAlias = Callable[[str, SiteState], None]
"""Is told of every site whose state changes."""


class Transport(ABC):
    """Carries a frame to each of some sites, and brings back what they answer."""

    @abstractmethod
    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        """Deliver, and give the answers that came in time, in any order."""

    def wait(self, silent: tuple[str, ...]) -> bool:
        """Wait until silent sites may be back; ``False`` means that it is no use to wait."""
        return False


@final
class InProcess(Transport):
    """Sites as objects in this process.

    Parameters
    ----------
    sites
        What handles the frames of each site.
    lost
        Deliveries that fail: pairs of a site and the number of the exchange, counted from zero.
        The site does not get the frame.
    muted
        As above, but the site gets the frame and its answer is lost.
    """

    def __init__(
        self,
        sites: Mapping[str, Callable[[bytes], bytes]],
        *,
        lost: Iterable[tuple[str, int]] = (),
        muted: Iterable[tuple[str, int]] = (),
    ) -> None:
        self._sites = dict(sites)
        self._lost = frozenset(lost)
        self._muted = frozenset(muted)
        self._dead: set[str] = set()
        self.exchanges = 0
        self.sent = 0
        self.received = 0

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        """Deliver one by one."""
        at, self.exchanges = self.exchanges, self.exchanges + 1
        for name, frame in outgoing.items():
            if (name, at) in self._lost:
                self._dead.add(name)
            if name in self._dead:
                continue
            self.sent += len(frame)
            answer = self._sites[name](frame)
            if (name, at) in self._muted:
                self._dead.add(name)
                continue
            self.received += len(answer)
            yield answer


def drive(led: Round, transport: Transport) -> None:
    """Drive a round to its end.

    Raises
    ------
    AbortedError
        Too few sites were left; nothing but the names of the silent ones is known.
    """
    outgoing = led.begin()
    rejected: list[Refusal] = []
    while outgoing:
        for answer in transport.exchange(outgoing):
            try:
                led.receive(answer)
            except BrokenFrameError as broken:
                rejected.append(broken.why)
        outgoing = led.again()
        if outgoing and transport.wait(led.waiting):
            continue
        try:
            outgoing = led.advance()
        except AbortedError as error:
            if rejected:
                kinds = sorted({why.name.lower() for why in rejected})
                error.add_note(f"{len(rejected)} frames were rejected: {kinds}.")
            raise


def run_round(coordinator: Coordinator | SingleRound, transport: Transport) -> Words:
    """Drive a round to its end.

    Returns
    -------
    Words
        The sum over the coordinator's `active` sites.

    Raises
    ------
    AbortedError
        Too few sites were left; nothing but the names of the silent ones is known.
    """
    drive(coordinator, transport)
    return coordinator.total
