"""At a site: Flower's SuperNode, changed in two things.

After each message its loop waits for a reply, and takes any. If a coordinator was killed while a
site worked, the reply to its last message is taken for that to the next; from then on every reply
would lie there until another message comes. Here what is left over is sent before the next look.

And it looks for messages more often: in a method of many rounds that is most of the time.

    python -m isthmus_relay.node OPTIONS-OF-FLOWER-SUPERNODE
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from flwr.supernode import start_client_internal as inner
from flwr.supernode.cli import flower_supernode

PAUSE = 1.0
"""Most seconds between two looks for messages."""


class Brief:
    """Stands for the module `time` in Flower's loop."""

    @staticmethod
    def sleep(seconds: float) -> None:
        """Sleep, but not long."""
        time.sleep(min(seconds, PAUSE))


class Handed:
    """A state of a node from which these replies are taken, and no others."""

    def __init__(self, state: Any, replies: Sequence[Any]) -> None:
        self._state = state
        self._replies = replies

    def get_messages_legacy(self, **_: Any) -> Sequence[Any]:
        """The replies."""
        return self._replies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._state, name)


class Loop:
    """Flower's two steps, with what is left over sent before the first."""

    def __init__(self, pull: Callable[..., int | None], push: Callable[..., None]) -> None:
        self._pull = pull
        self._push = push
        self._how: dict[str, Any] | None = None

    def pull(self, *, state: Any, **rest: Any) -> int | None:
        """Take a message, if there is one."""
        if self._how is not None and (left := state.get_messages_legacy(is_reply=True)):
            self._push(state=Handed(state, left), **self._how)
        return self._pull(state=state, **rest)

    def push(self, *, state: Any, **how: Any) -> None:
        """Wait for replies, and send them."""
        self._how = how
        self._push(state=state, **how)


if __name__ == "__main__":
    loop = Loop(inner._pull_and_store_message, inner._push_messages)  # noqa: SLF001 - no other way
    vars(inner).update(_pull_and_store_message=loop.pull, _push_messages=loop.push, time=Brief)
    flower_supernode()
