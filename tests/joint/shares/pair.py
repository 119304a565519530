"""Two engines that run functions side by side, each in a thread with one end of a link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.joint.shares.links import at_both, ends

from isthmus_joint.shares.engine import SecretSharingRuntime


class Pair:
    """Two parties that have set up their transfers once for many tests."""

    def __init__(self) -> None:
        self._links = ends()
        self._engines = [SecretSharingRuntime(link) for link in self._links]

    def __call__(self, task: Callable[..., Any], *arguments: Any, own: Any = ((), ())) -> list[Any]:
        """Run ``task(engine, *arguments, *own[rank])`` at both; return both results."""

        def run(link: Any) -> Any:
            return task(self._engines[link.rank], *arguments, *own[link.rank])

        results, _ = at_both(run, self._links)
        for link in self._links:
            link.seen.clear()
        for result in results:
            if isinstance(result, Exception):
                raise result
        return results
