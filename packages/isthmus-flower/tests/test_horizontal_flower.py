"""A federation over Flower: real processes, TLS, authenticated nodes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.processes.hospitals import LONG, Hospitals, require_pooled

from isthmus.errors import FederationError
from isthmus.joint.agreement.cards import Folder
from isthmus.joint.records.private_files import write_private
from isthmus.joint.transport.certificates import node_key, own_certificate
from isthmus.joint.transport.child_process import free_port
from isthmus_flower.programs import flower_environment, flower_program
from isthmus_flower.superlink import FlowerSuperLink
from isthmus_flower.supernode import FlowerSuperNode

pytest.importorskip("flwr")
FLOWER = ("--carrier", "flower")
TIMES = ("--gather", "240", "--answer", "120", "--pause", "300")


@contextmanager
def stranger(
    world: Hospitals, name: str, key: Path, certificate: Path
) -> Iterator[FlowerSuperNode]:
    """A node that should not get in."""
    state = world.folder / name
    state.mkdir()
    node = FlowerSuperNode(state, state / "socket", f"127.0.0.1:{world.port}", certificate, key)
    try:
        yield node
    finally:
        node.stop()


EVIL = """
import sys
import time
from pathlib import Path
Path({mark!r} + Path(sys.argv[0]).name).touch()
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import ServerApp
from flwr.clientapp import ClientApp
server = ServerApp()
client = ClientApp()

@client.query()
def steal(message, context):
    return Message(content=message.content, reply_to=message)

@server.main()
def send(grid, context):
    while not (nodes := list(grid.get_node_ids())):
        time.sleep(0.5)
    content = RecordDict({{"x": ConfigRecord({{"y": 1}})}})
    messages = [Message(content, n, "query") for n in nodes]
    replies = list(grid.send_and_receive(messages, timeout=120))
    Path({mark!r}).write_text(str([r.has_error() for r in replies]))
"""
PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "evil"
version = "1.0.0"
license = "Apache-2.0"
dependencies = []
[tool.flwr.app]
publisher = "stranger"
[tool.flwr.app.components]
serverapp = "{package}.server:app"
clientapp = "{package}.client:app"
"""


def control(world: Hospitals, *arguments: str | Path) -> dict[str, Any]:
    """Run a command of Flower at the coordinator's SuperLink, as anyone can who reaches it."""
    home = world.folder / "stranger's home"
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(
        f'[superlink.x]\naddress = "127.0.0.1:{world.port}"\n'
        f'root-certificates = "{world.study_folder / "coordinator.crt"}"\n'
    )
    done = subprocess.run(
        [flower_program("flwr"), *map(str, arguments), "x", "--format", "json"],
        env=flower_environment(home),
        cwd=world.folder,
        capture_output=True,
        check=False,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["success"], done.stdout + done.stderr
    return found


def hand_in(world: Hospitals, mark: Path, *, only_evil: bool = False) -> None:
    """Submit two apps; Flower takes them. The second has the names of our own app."""
    for package in ("evil",) if only_evil else ("evil", "isthmus_relay"):
        app = world.folder / f"{package} app"
        (app / package).mkdir(parents=True)
        (app / "pyproject.toml").write_text(PROJECT.format(package=package))
        (app / package / "__init__.py").touch()
        for name in ("server", "client"):
            text = f"{EVIL.format(mark=str(mark))}\napp = {name}\n"
            (app / package / f"{name}.py").write_text(text)
        control(world, "run", app)


@LONG
@pytest.mark.slow
def test_three_sites_over_tls_and_strangers(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(60, 80, 2)
    unknown, other = world.folder / "unknown.pem", world.folder / "other.crt"
    write_private(unknown, node_key()[0])
    other.write_bytes(own_certificate("another")[0])
    certificate = world.study_folder / "coordinator.crt"
    for name in world.names:
        world.start(name, *FLOWER)
    running = world.coordinate(*FLOWER, *TIMES, "-o", str(world.folder / "network.csv"))
    with (
        stranger(world, "stranger", unknown, certificate) as first,
        stranger(world, "misled", world.home("s0") / "node.pem", other) as second,
    ):
        tried, mark = False, world.folder / "mark"
        while running.poll() is None:
            first.ensure_running()
            second.ensure_running()
            time.sleep(0.5)
            if not tried and " running" in world.log("coordinator"):
                hand_in(world, mark)
                tried = True
        assert running.returncode == 0, world.log("coordinator")
        assert tried
        assert list(world.folder.glob("mark*")) == []  # the code that came with it was not run
        said = first.log.read_text(errors="replace"), second.log.read_text(errors="replace")
    assert "DONE" in world.log("coordinator")
    assert world.status()["state"] == "done"
    require_pooled(world)
    assert "2004" in said[0] or "registered" in said[0].lower(), said[0][-2000:]
    assert "certificate" in said[1].lower(), said[1][-2000:]
    for name in ("stranger", "misled"):
        assert not (world.folder / name / "ledger.jsonl").exists()


@LONG
@pytest.mark.slow
def test_a_site_does_not_run_the_code_of_its_coordinator(
    hospitals: Callable[..., Hospitals], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coordinator that uses Flower as it is sends an app. Its own half runs, the site's not."""
    world = hospitals(60, 80, 70)
    board, mark = world.folder / "board", world.folder / "mark"
    files = board / "server.crt", board / "server.pem"
    nodes = {n: c.node for n, c in Folder(world.study_folder).cards().items()}
    link = FlowerSuperLink(board / "link", "127.0.0.1", world.port, files, nodes)
    monkeypatch.setattr(link, "_run", lambda: None)
    link._executor._environment = flower_environment(board / "link" / "flower")
    try:
        link.ensure_running()
        world.start("s0", *FLOWER)
        hand_in(world, mark, only_evil=True)
        end = time.monotonic() + 200
        while not mark.exists():
            assert time.monotonic() < end, world.log("s0")
            time.sleep(0.2)
        assert mark.read_text() == "[True]"  # an error, and no answer
        assert [p.name for p in world.folder.glob("mark?*")] == ["markflwr-serverapp"]
    finally:
        link.stop()


@LONG
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_stranger_registers_a_node_and_removes_a_member(
    hospitals: Callable[..., Hospitals],
) -> None:
    """It can, with nothing but coordinator.crt. It gets no message, and the member comes back."""
    world = hospitals(60, 80, 2)
    private, public = node_key()
    unknown = world.folder / "unknown.pem"
    write_private(unknown, private)
    (world.folder / "unknown.pub").write_bytes(public)
    world.start("s0", *FLOWER)
    world.start("s1", *FLOWER)
    times = ("--gather", "600", *TIMES[2:])
    running = world.coordinate(*FLOWER, *times, "-o", str(world.folder / "network.csv"))
    world.await_text("coordinator", "s1: answered")
    own = json.loads(next((world.folder / "board").glob("study-*/nodes.json")).read_text())
    control(world, "supernode", "register", world.folder / "unknown.pub")
    control(world, "supernode", "unregister", own["s1"]["node"])
    with stranger(world, "stranger", unknown, world.study_folder / "coordinator.crt") as first:
        first.ensure_running()
        world.start("s2", *FLOWER)
        assert running.wait(900) == 0, world.log("coordinator")
        received = "Receiving: query"
        assert received in (world.home("s0") / "flower.log").read_text(errors="replace")
        assert received not in first.log.read_text(errors="replace")
    require_pooled(world)


def test_an_expired_certificate_is_refused(folder: Path) -> None:
    files = folder / "server.crt", folder / "server.pem"
    for path, data in zip(files, own_certificate("test", ["127.0.0.1"], days=-1), strict=True):
        path.write_bytes(data)
    nodes = {"s0": node_key()[1].decode()}
    link = FlowerSuperLink(folder / "state", "127.0.0.1", free_port(), files, nodes)
    try:
        with pytest.raises(FederationError, match="certificate has expired"):
            link.ensure_running()
    finally:
        link.stop()


@LONG
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_ten_sites_over_tls(hospitals: Callable[..., Hospitals]) -> None:
    """Took 205 and 248 seconds on two busy cores."""
    world = hospitals(60, 80, 2, 50, 90, 30, 40, 70, 20, 100)
    for name in world.names:
        world.start(name, *FLOWER)
    long = ("--gather", "600", "--answer", "300", "--pause", "300")
    running = world.coordinate(*FLOWER, *long, "-o", str(world.folder / "network.csv"))
    assert running.wait(1100) == 0, world.log("coordinator")
    require_pooled(world)


@LONG
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_kills_over_flower(hospitals: Callable[..., Hospitals]) -> None:
    """A site and then the coordinator are killed; the same command goes on to the same result.

    Took 59 seconds on two busy cores.
    """
    world = hospitals(60, 80, 70)
    for name in world.names:
        world.start(name, *FLOWER)
    out = ("-o", str(world.folder / "network.csv"))
    running = world.coordinate(*FLOWER, *TIMES, *out)
    world.await_text("s1", "shares")
    world.kill("s1")
    world.await_text("coordinator", "s1: silent")
    world.start("s1", *FLOWER)
    end = time.monotonic() + 60
    while world.status()["state"] != "waiting for silent sites":
        assert time.monotonic() < end
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait(60)
    again = world.coordinate(*FLOWER, *TIMES, *out)
    assert again.wait(600) == 0, world.log("coordinator")
    require_pooled(world)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def far() -> Iterator[tuple[str, str, str]]:
    """A network namespace behind a cable: its name, our end of the cable, our address."""
    name, ours, theirs = f"ist{os.getpid()}", f"ista{os.getpid()}"[:15], f"istb{os.getpid()}"[:15]
    try:
        ip("netns", "add", name)
    except (subprocess.CalledProcessError, FileNotFoundError):
        pytest.skip("network namespaces are not permitted here")
    try:
        ip("link", "add", ours, "type", "veth", "peer", "name", theirs)
        ip("link", "set", theirs, "netns", name)
        ip("addr", "add", "10.213.7.1/24", "dev", ours)
        ip("link", "set", ours, "up")
        for more in (
            ["addr", "add", "10.213.7.2/24", "dev", theirs],
            ["link", "set", theirs, "up"],
        ):
            ip("-n", name, *more)
        ip("-n", name, "link", "set", "lo", "up")
        yield name, ours, "10.213.7.1"
    finally:
        ip("netns", "del", name)


@LONG
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_cut_cable(hospitals: Callable[..., Hospitals], far: tuple[str, str, str]) -> None:
    """The cable to a site is pulled in the middle of a round and put back.

    Took 152 and 173 seconds on two busy cores.
    """
    name, cable, address = far
    world = hospitals(60, 80, 70, host=address)
    world.start("s0", *FLOWER)
    world.start("s1", *FLOWER)
    world.start("s2", *FLOWER, before=["ip", "netns", "exec", name])
    out = ("-o", str(world.folder / "network.csv"))
    short = ("--gather", "240", "--answer", "30", "--pause", "400")
    running = world.coordinate(*FLOWER, "--listen", "0.0.0.0", *short, *out)
    world.await_text("s2", "shares")
    ip("link", "set", cable, "down")
    world.await_text("coordinator", "s2: silent")
    ip("link", "set", cable, "up")
    assert running.wait(600) == 0, world.log("coordinator")
    require_pooled(world)
