"""Two processes with an engine each, which run functions of a module side by side."""

from __future__ import annotations

import importlib
import multiprocessing
import socket
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

PATIENCE = 240.0


def free_ports() -> tuple[int, int]:
    """Return two ports that nobody listens at."""
    sockets = [socket.socket() for _ in range(2)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    first, second = (s.getsockname()[1] for s in sockets)
    for s in sockets:
        s.close()
    return first, second


class Pair:
    """Two processes, each with one end of a link."""

    def __init__(self, log: Path | None = None) -> None:
        context = multiprocessing.get_context("spawn")
        ports = free_ports()
        self._ends: list[Connection] = []
        self._processes = []
        for rank in range(2):
            ours, theirs = context.Pipe()
            target = None if log is None else log.with_suffix(f".{rank}")
            process = context.Process(target=serve, args=(rank, ports, theirs, target), daemon=True)
            process.start()
            theirs.close()
            self._ends.append(ours)
            self._processes.append(process)

    def __call__(self, task: str, *arguments: Any, own: Any = ((), ())) -> list[Any]:
        """Run ``module:function(engine, *arguments, *own[rank])`` at both; return both results."""
        for end, private in zip(self._ends, own, strict=True):
            end.send((task, (*arguments, *private)))
        results = []
        for end in self._ends:
            assert end.poll(PATIENCE), "no answer"
            failed, result = end.recv()
            assert not failed, result
            results.append(result)
        return results

    def close(self) -> None:
        for end in self._ends:
            end.send(None)
        for process in self._processes:
            process.join(20)
            process.kill()


def serve(rank: int, ports: tuple[int, int], end: Connection, log: Path | None) -> None:
    """Run tasks until there are no more."""
    from isthmus.joint.shares.engine import SecretSharingRuntime, connect_local

    engine = SecretSharingRuntime(connect_local(rank, ports), log=log)
    while (message := end.recv()) is not None:
        task, arguments = message
        module, _, name = task.partition(":")
        try:
            end.send((False, getattr(importlib.import_module(module), name)(engine, *arguments)))
        except Exception:  # noqa: BLE001 - told to the test
            end.send((True, traceback.format_exc()))
    engine.close()
