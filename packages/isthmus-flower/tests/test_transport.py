"""Flower between a coordinator and one site: messages, silence, kills. It takes minutes."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path

import pytest

from isthmus.joint.records.private_files import write_private
from isthmus.joint.transport.base import PING, SiteState, Timeouts
from isthmus.joint.transport.certificates import node_key, own_certificate
from isthmus.joint.transport.child_process import free_port
from isthmus_flower.flower_transport import FlowerTransport
from isthmus_flower.sockets import Service
from isthmus_flower.superlink import FlowerSuperLink
from isthmus_flower.supernode import FlowerSuperNode
from isthmus_flower.supervised_process import SupervisedProcess

if find_spec("flwr") is None or "ISTHMUS_LONG" not in os.environ:
    pytest.skip("needs Flower, and ISTHMUS_LONG", allow_module_level=True)
LONGEST = 2**24
TIMES = Timeouts(120.0, 600.0, 300.0)
pytestmark = pytest.mark.timeout(1800)


class World:
    """A SuperLink, a SuperNode, and a service that reverses messages."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        port, files = free_port(), (folder / "server.crt", folder / "server.pem")
        for path, data in zip(files, own_certificate("test", ["127.0.0.1"]), strict=True):
            path.write_bytes(data)
        private, public = node_key()
        self.home = folder / "a"
        self.home.mkdir(mode=0o700)
        write_private(self.home / "node.pem", private)
        self.states: list[tuple[str, SiteState]] = []
        nodes = {"a": public.decode()}
        self.link = FlowerSuperLink(folder / "lead", "127.0.0.1", port, files, nodes)
        stack.callback(self.link.stop)
        self.transport = FlowerTransport(
            self.link, TIMES, lambda site, state: self.states.append((site, state))
        )
        path = self.home / "socket"
        self.node = FlowerSuperNode(
            self.home, path, f"127.0.0.1:{port}", files[0], self.home / "node.pem"
        )
        stack.callback(self.node.stop)
        over = threading.Event()
        keeper = threading.Thread(target=self.node.run, args=(over.is_set,))
        keeper.start()
        stack.callback(keeper.join)
        stack.callback(over.set)
        self.serve(lambda data: data[::-1])
        stack.callback(lambda: self.service.close())
        self.gather()

    def serve(self, handle: Callable[[bytes], bytes]) -> None:
        self.service = Service(self.home / "socket", handle, LONGEST)
        self.service.start()

    def gather(self) -> None:
        end = time.monotonic() + TIMES.gather
        while "a" not in self.transport._online():
            assert time.monotonic() < end, self.node.log.read_text(errors="replace")[-2000:]
            time.sleep(0.2)

    def ask(self, message: bytes) -> list[bytes]:
        return list(self.transport.exchange({"a": message}))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with ExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="ist", ignore_cleanup_errors=True)
        )
        yield World(Path(folder), stack)


def test_messages_of_all_sizes(world: World) -> None:
    for message in (PING, b"1", bytes(range(256)) * 2**13):
        assert world.ask(message) == [message[::-1]]
    assert world.states[-1] == ("a", SiteState.ANSWERED)


def test_a_message_that_is_too_long_for_the_site(world: World) -> None:
    assert world.ask(bytes(LONGEST + 1)) == []
    assert world.states[-1] == ("a", SiteState.SILENT)
    assert world.ask(b"12") == [b"21"]


def test_a_site_that_is_not_running_is_silent_and_waited_for(world: World) -> None:
    world.service.close()
    assert world.ask(b"12") == []
    assert world.states[-1] == ("a", SiteState.SILENT)
    world.serve(lambda data: data[::-1])
    assert world.transport.wait(("a",))
    assert world.ask(b"12") == [b"21"]


def killed(process: SupervisedProcess) -> None:
    """Kill a process and all that it has started."""
    running = process.process
    assert running is not None
    os.killpg(running.pid, signal.SIGKILL)
    while running.code is None:
        time.sleep(0.05)


@pytest.mark.parametrize("which", ["the node", "the executor", "the link", "the app's executor"])
def test_killed_processes_are_restarted(world: World, which: str) -> None:
    """Each of Flower's processes in turn, with SIGKILL; then messages arrive again."""
    processes = {
        "the node": world.node._processes[0],
        "the executor": world.node._processes[1],
        "the link": world.link._server,
        "the app's executor": world.link._executor,
    }
    killed(processes[which])
    end = time.monotonic() + TIMES.answer
    while processes[which].starts < 2:
        world.link.ensure_running()
        assert time.monotonic() < end
        time.sleep(0.2)
    while True:
        world.gather()
        if world.ask(b"12") == [b"21"]:
            return
        assert time.monotonic() < end + TIMES.answer
