"""Sites and a coordinator as hosts of their own: delay, loss and a partition between them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.processes.hospitals import Hospitals, require_pooled

RELAY = Path(__file__).with_name("slow_relay.py")
DELAY, LOSS = "0.05", "0.02"
PARTITION = 5.0


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Hosts:
    """Network namespaces, each with one link to a relay in this one."""

    def __init__(self, names: list[str]) -> None:
        self.prefix, self.names = f"i{os.getpid() % 10**6}", names
        for i, name in enumerate(names):
            ip("netns", "add", self.host(name))
            ip(
                "link",
                "add",
                self.link(name),
                "type",
                "veth",
                "peer",
                "e",
                "netns",
                self.host(name),
            )
            ip("addr", "add", f"10.77.{i}.1/24", "dev", self.link(name))
            ip("link", "set", self.link(name), "up")
            inside = ("-n", self.host(name))
            ip(*inside, "addr", "add", f"10.77.{i}.2/24", "dev", "e")
            ip(*inside, "link", "set", "e", "up")
            ip(*inside, "link", "set", "lo", "up")

    def host(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def link(self, name: str) -> str:
        return f"{self.prefix}{name}"[:15]

    def inside(self, name: str) -> list[str]:
        return ["ip", "netns", "exec", self.host(name)]

    def close(self) -> None:
        for name in self.names:
            subprocess.run(["ip", "netns", "del", self.host(name)], check=False)


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    try:
        made = Hosts(["c", "s0", "s1", "s2"])
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("network namespaces need root and the command ip")
    yield made
    made.close()


def test_a_slow_network_and_a_partition(hosts: Hosts, hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(60, 70, 80)
    port = str(world.port)
    relay = subprocess.Popen([sys.executable, str(RELAY), port, "10.77.0.2", port, DELAY, LOSS])
    try:
        run = world.coordinate("--listen", "0.0.0.0", "-o", "network.csv", before=hosts.inside("c"))
        for i, name in enumerate(world.names):
            address = f"10.77.{i + 1}.1:{port}"
            world.start(name, "--coordinator", address, before=hosts.inside(name))
        world.await_text("s1", "connected to")
        ip("link", "set", hosts.link("s1"), "down")
        time.sleep(PARTITION)
        assert run.poll() is None  # nobody goes on without s1
        ip("link", "set", hosts.link("s1"), "up")
        assert run.wait(240) == 0, world.log("coordinator")
    finally:
        relay.kill()
        relay.wait()
    require_pooled(world)
    # The hosts were apart: a site does not reach the address of the coordinator itself.
    direct = "import socket; socket.create_connection(('10.77.0.2', 1), 2)"
    tried = subprocess.run(
        [*hosts.inside("s0"), sys.executable, "-c", direct], capture_output=True, check=False
    )
    assert b"unreachable" in tried.stderr
