"""What transports to other processes have in common: they gather sites and wait for silent ones."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping

from isthmus.errors import AbortedError
from isthmus.joint.transport.base import PING, SiteState, Timeouts, Transport, Watcher


def ignore(_site: str, _state: SiteState) -> None:
    """Watch nothing."""


class RemoteTransport(Transport):
    """A transport to sites that come and go.

    Parameters
    ----------
    timeouts
        How long to wait.
    watch
        Called when the state of a site changes.
    """

    look = 0.1
    """Seconds between two checks of which sites are connected."""

    probe = 60.0
    """Seconds for a site to answer whether it is running."""

    def __init__(self, timeouts: Timeouts = Timeouts(), watch: Watcher = ignore) -> None:
        self._timeouts = timeouts
        self._watch = watch
        self._deadline: float | None = None

    @abstractmethod
    def _online(self) -> set[str]:
        """Return the sites that can be asked."""

    @abstractmethod
    def _deliver(
        self, outgoing: Mapping[str, bytes], seconds: float, watch: Watcher
    ) -> Iterator[bytes]:
        """Deliver messages and return the answers that arrive in time."""

    def gather(self, names: Iterable[str]) -> None:
        """Wait until all of these sites are connected.

        Raises
        ------
        AbortedError
            Some sites did not connect in time; the message names them.
        """
        missing = set(names)
        for name in sorted(missing):
            self._watch(name, SiteState.AWAITED)
        end = time.monotonic() + self._timeouts.gather
        while missing and time.monotonic() < end:
            here = self._online()
            for name in sorted(missing & here):
                self._watch(name, SiteState.ANSWERED)
            missing -= here
            if missing:
                time.sleep(self.look)
        if missing:
            raise AbortedError(
                f"The sites {sorted(missing)} did not connect within {self._timeouts.gather:.0f} "
                "seconds. No request was sent; run again when they can connect.",
                silent=tuple(sorted(missing)),
            )

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterator[bytes]:
        answered = 0
        for answer in self._deliver(outgoing, self._timeouts.answer, self._watch):
            answered += 1
            yield answer
        if answered == len(outgoing):
            self._deadline = None

    def wait(self, silent: tuple[str, ...]) -> bool:
        if self._deadline is None:
            self._deadline = time.monotonic() + self._timeouts.pause
        for name in silent:
            self._watch(name, SiteState.AWAITED)
        while (left := self._deadline - time.monotonic()) > 0:
            if set(silent) <= self._online():
                pings = dict.fromkeys(silent, PING)
                answers = list(self._deliver(pings, min(self.probe, left), ignore))
                if answers == [PING] * len(silent):
                    return True
            time.sleep(min(self.look, max(left, 0.0)))
        return False
