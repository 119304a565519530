"""At a site: Flower's SuperNode with two changes.

After each message Flower's loop waits for a reply, and accepts any. If a coordinator was killed
while a site was working, the reply to its last message is mistaken for the reply to the next one,
and from then on every reply would be delayed until another message arrives. Here, replies that are
left over are sent before the next message is taken.

It also looks for messages more often, which is most of the time in methods with many rounds.

    python -m isthmus_relay.node OPTIONS-OF-FLOWER-SUPERNODE
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from flwr.supernode import start_client_internal as inner
from flwr.supernode.cli import flower_supernode

PAUSE = 1.0
"""Longest time between two requests for messages, in seconds."""


class ShortSleep:
    """Replaces the module `time` in Flower's loop."""

    @staticmethod
    def sleep(seconds: float) -> None:
        """Sleep, but not longer than `PAUSE`."""
        time.sleep(min(seconds, PAUSE))


class WithReplies:
    """The state of a node that contains exactly these replies."""

    def __init__(self, state: Any, replies: Sequence[Any]) -> None:
        self._state = state
        self._replies = replies

    def get_messages_legacy(self, **_: Any) -> Sequence[Any]:
        """Return the replies."""
        return self._replies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


class Loop:
    """Flower's two steps, with left-over replies sent before the first."""

    def __init__(self, pull: Callable[..., int | None], push: Callable[..., None]) -> None:
        self._pull = pull
        self._push = push
        self._options: dict[str, Any] | None = None

    def pull(self, *, state: Any, **rest: Any) -> int | None:
        """Take a message if there is one."""
        if self._options is not None and (left := state.get_messages_legacy(is_reply=True)):
            self._push(state=WithReplies(state, left), **self._options)
        return self._pull(state=state, **rest)

    def push(self, *, state: Any, **options: Any) -> None:
        """Wait for replies and send them."""
        self._options = options
        self._push(state=state, **options)


if __name__ == "__main__":
    loop = Loop(inner._pull_and_store_message, inner._push_messages)  # noqa: SLF001 - Flower has no other hook
    vars(inner).update(_pull_and_store_message=loop.pull, _push_messages=loop.push, time=ShortSleep)
    flower_supernode()
