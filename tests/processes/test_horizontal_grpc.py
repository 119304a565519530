"""A federation over gRPC: real processes, mutual TLS, strangers, kills, results for the sites."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.joint.transport.flapping_proxy import FlappingProxy
from tests.processes.hospitals import NAMES, Hospitals, require_pooled, run

import isthmus as ist
from isthmus.cli import ExitCode
from isthmus.errors import StudyError
from isthmus.tables import Frame
from isthmus_joint import Study, verify
from isthmus_joint.federation.received_results import read_result, result_path
from isthmus_joint.transport.certificates import own_certificate

TIMES = ("--gather", "240", "--answer", "120", "--pause", "300")


def listening(pid: int) -> set[tuple[str, int]]:
    """The addresses on which a process listens for TCP connections."""
    inodes = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        target = str(handle.readlink()) if handle.is_symlink() else ""
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                host, port = fields[1].split(":")
                found.add((host[-8:], int(port, 16)))  # an IPv4 address within IPv6, too
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_three_sites_get_a_signed_result(hospitals: Callable[..., Hospitals]) -> None:
    """Only the coordinator listens, on loopback and one port; every site gets the result."""
    noise = 4.0 * np.random.default_rng(3).beta(0.3, 2.0, size=(1002, 3)) - 2.0
    tables = np.split(np.cumsum(noise, axis=1), [80, 1000])  # a → b → c
    world = hospitals(tables=tables, draft=["--search", "LiNGAM"])
    first, *others = world.names
    world.start(first)
    out = world.folder / "network.csv"
    running = world.coordinate(*TIMES, "-o", str(out))
    world.await_text(first, "connected")
    until = time.monotonic() + 60
    while not (open_ports := listening(running.pid)) and time.monotonic() < until:
        time.sleep(0.1)
    assert open_ports == {("0100007F", world.port)}  # while it waits for the others
    assert listening(world.processes[first].pid) == set()
    for name in others:
        world.start(name)
        assert not (world.home(name) / "socket").exists()
    assert running.wait(300) == 0, world.log("coordinator")
    require_pooled(world)
    for name in world.names:
        path = result_path(world.home(name), world.study)
        text = read_result(path, world.study)
        content = json.loads(text)
        assert (content["sites"], content["nodes"]) == (world.names, ["a", "b", "c"])
        edges = {tuple(e) for e in content["edges"]}
        lines = out.read_text().split()
        assert len(edges) == sum("," in line for line in lines) - 1  # the header
        received, confirmed = verify(world.home(name) / "ledger.jsonl")[-2:]
        assert (received["event"], confirmed["event"]) == ("result", "confirmed")
        assert received["result"] == confirmed["result"] == hashlib.sha256(text).hexdigest()
        assert confirmed["sites"] == world.names
    path.write_bytes(text.replace(b"Test", b"Best"))
    with pytest.raises(StudyError, match="has not signed"):
        read_result(path, world.study)
    before = verify(world.home("s0") / "ledger.jsonl")
    assert world.coordinate(*TIMES).wait(300) == 0  # sent again, and written down once
    assert verify(world.home("s0") / "ledger.jsonl") == before
    causes = world.folder / "causes.isthmus"  # from the same sums, without another round
    assert world.coordinate(*TIMES, "--search", "BossFCI", "-o", str(causes)).wait(300) == 0
    pooled = ist.learn(Frame(world.pooled(), names=NAMES), search=ist.BossFCI())
    assert ist.PAGSolution.load(causes).pag == pooled.pag
    content = json.loads(read_result(result_path(world.home("s0"), world.study), world.study))
    assert content["edges"] == [list(edge) for edge in pooled.pag.edges]
    directions = world.folder / "directions.isthmus"  # from a second sum, of squares and products
    assert world.coordinate(*TIMES, "--search", "LiNGAM", "-o", str(directions)).wait(300) == 0
    solution = ist.Solution.load(directions)
    powers = ist.IndependentNoise().basis
    sums = ist.summarise(ist.WithFeatures(Frame(world.pooled(), names=NAMES), powers))
    expected = ist.learn(sums, search=ist.LiNGAM())
    assert solution.identified == expected.identified != ()
    assert solution.cpdag == expected.cpdag
    assert solution.score == pytest.approx(expected.score, rel=1e-3)  # published with four digits
    assert "sums and products of 12 basis functions of 3 variables" in world.log("coordinator")


def test_kills_and_a_flapping_network(hospitals: Callable[..., Hospitals]) -> None:
    """A site and the coordinator are killed and the network breaks; the sum is the same."""
    world = hospitals(60, 80, 70)
    out = ("-o", str(world.folder / "network.csv"))
    with FlappingProxy(world.port, every=0.5, down=0.1) as proxy:
        for name in world.names:
            world.start(name, "--coordinator", f"127.0.0.1:{proxy.port}")
        first = world.coordinate(*TIMES, *out)
        world.await_text("s1", "opened")
        world.kill("s1")
        os.killpg(first.pid, signal.SIGKILL)
        first.wait(60)
        world.start("s1", "--coordinator", f"127.0.0.1:{proxy.port}")
        again = world.coordinate(*TIMES, *out)
        assert again.wait(300) == 0, world.log("coordinator")
        assert proxy.cuts > 0
    require_pooled(world)
    for name in world.names:
        verify(world.home(name) / "ledger.jsonl")


def test_strangers_and_changed_pins(hospitals: Callable[..., Hospitals]) -> None:
    """A site whose certificate the study does not name stays outside; so does a false server."""
    world = hospitals(60, 80, 70)
    cards = world.study_folder / "cards"
    (card,) = [p for p in cards.iterdir() if 'name = "s1"' in p.read_text()]
    text = card.read_text()
    run("site", "certify", world.home("s1"))
    card.write_text((world.home("s1") / "card.toml").read_text())
    assert world.start("s1").wait(60) == ExitCode.STUDY
    assert "not the one that the study names" in world.log("s1")
    assert world.coordinate().wait(60) == ExitCode.STUDY
    card.write_text(text)
    (world.study_folder / "coordinator.crt").write_bytes(own_certificate("false", ["localhost"])[0])
    assert world.start("s2").wait(60) == ExitCode.STUDY


def test_a_port_that_is_taken(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(60, 80, 70)
    with socket.create_server(("127.0.0.1", world.port)):
        assert world.coordinate().wait(60) not in (0, None)
    assert "cannot listen" in world.log("coordinator")


def test_a_study_without_certificates_is_refused(hospitals: Callable[..., Hospitals]) -> None:
    """It may be one that was drafted for a simulation."""
    world = hospitals(60, 80, 70)
    path = world.study_folder / "study.toml"
    lines = [
        line
        for line in path.read_text().splitlines()
        if not line.startswith(("certificates", "coordinator_certificate"))
    ]
    path.write_text("\n".join(lines) + "\n")
    Study.read(path)
    world.resign()
    world.freeze("s0")
    assert world.start("s0").wait(60) == ExitCode.STUDY
    assert "names no certificates" in world.log("s0")


def test_openssl_finds_tls_1_3_only(hospitals: Callable[..., Hospitals]) -> None:
    """The coordinator as a process: TLS 1.2 gets no handshake, whoever asks."""
    world = hospitals(60, 80, 70)
    world.coordinate("--gather", "60")
    world.await_text("coordinator", "awaited")

    def tried(version: str) -> str:
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{world.port}", version, "-alpn", "h2"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
        )
        return done.stdout.decode(errors="replace")

    try:
        new, old = tried("-tls1_3"), tried("-tls1_2")
    except FileNotFoundError:
        pytest.skip("needs the program openssl")
    assert "BEGIN CERTIFICATE" in new
    assert "BEGIN CERTIFICATE" not in old
