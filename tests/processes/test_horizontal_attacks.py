"""Attacks on real sites over gRPC: refused, recorded, nothing revealed, service up."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.processes.hospitals import (
    NAMES,
    PATIENCE,
    Hospitals,
    run,
)

import isthmus as ist
from isthmus.cli import ExitCode
from isthmus.errors import AbortedError, StudyError
from isthmus_joint import ADMM, Federation, Transport, verify
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.methods.admm import AskConsensus
from isthmus_joint.records.journal import FileJournal
from isthmus_joint.secure_sum.envelopes import (
    COORDINATOR,
    EnvelopeKind,
    Refusal,
    RoundRequest,
    pack,
    parse,
    read_refusal,
)
from isthmus_joint.secure_sum.protocol import secure_sums
from isthmus_joint.transport.base import PING

FUZZING = 10.0
"""Seconds, at least; a longer run is made by hand with ISTHMUS_FUZZ=frames."""


class Recorder(Transport):
    """Keeps all frames that go out."""

    def __init__(self, world: Hospitals) -> None:
        self._inner = world.transport()
        self.sent: list[tuple[str, bytes]] = []

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        self.sent += outgoing.items()
        return self._inner.exchange(outgoing)


def federation(world: Hospitals, transport: Transport | None = None, first: int = 1) -> Federation:
    transport = world.transport() if transport is None else transport
    return Federation(world.study, world.signatures, world.boss, transport, first_round=first)


def said(world: Hospitals, name: str, frame: bytes) -> Refusal:
    """What a site says to a frame that it must refuse."""
    answer = world.ask(name, frame)
    assert answer is not None
    found = parse(answer)
    assert found.kind is EnvelopeKind.REFUSE
    return read_refusal(found.body)[0]


def refusals(world: Hospitals, name: str) -> list[dict[str, Any]]:
    entries = verify(world.home(name) / "ledger.jsonl")
    return [dict(e) for e in entries if e["event"] == "refused"]


def test_garbage(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(30, 40, 20)
    world.serve(*world.names)
    recorder = Recorder(world)
    assert federation(world, recorder).moments().n == 90
    genuine = [frame for name, frame in recorder.sent if name == "s0"]
    rng = np.random.default_rng(0)
    many = int(os.environ.get("ISTHMUS_FUZZ", "0"))
    sent, end = 0, time.monotonic() + FUZZING
    before = verify(world.home("s0") / "ledger.jsonl")
    while sent < many if many else sent <= 500 or time.monotonic() < end:
        answer = world.ask("s0", garbage(rng, genuine))
        assert answer is not None
        assert parse(answer).kind is EnvelopeKind.REFUSE
        sent += 1
    print(f"{sent} frames")
    entries = verify(world.home("s0") / "ledger.jsonl")
    assert {e["event"] for e in entries[len(before) :]} == {"refused"}
    assert len(entries) - len(before) < 500 + 60  # nobody can fill the disk
    assert world.processes["s0"].poll() is None
    assert federation(world, first=2).moments().n == 90


def garbage(rng: np.random.Generator, genuine: list[bytes]) -> bytes:
    """Bytes of any kind, mostly near to frames that were once right."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.bytes(int(rng.integers(1, 400)))
    frame = bytearray(genuine[rng.integers(len(genuine))])
    if kind == 1:
        for _ in range(int(rng.integers(1, 4))):
            frame[rng.integers(len(frame))] ^= 1 << int(rng.integers(8))
    elif kind == 2:
        frame = frame[: rng.integers(1, len(frame))]
    else:
        frame[5] = rng.integers(0, 24)  # another kind of frame
    return bytes(frame)


def test_replay(hospitals: Callable[..., Hospitals]) -> None:
    """In the same round, after a restart, and in another study."""
    world = hospitals(30, 40, 20)
    world.serve(*world.names)
    recorder = Recorder(world)
    assert federation(world, recorder).moments().n == 90
    mine = [frame for name, frame in recorder.sent if name == "s1"]
    assert [said(world, "s1", f) for f in mine] == [Refusal.REPLAY] * 5
    world.kill("s1")
    world.serve("s1")
    assert [said(world, "s1", f) for f in mine] == [Refusal.REPLAY] * 5
    world.kill("s1")
    world.await_gone("s1")  # Flower keeps who is connected in a file
    other(world)
    world.freeze("s1")
    world.stop_listening()
    world.serve("s1")
    assert [said(world, "s1", f) for f in mine] == [Refusal.OTHER_STUDY] * 5
    whys = [r["why"] for r in refusals(world, "s1")]
    assert whys.count("replay") == 10
    assert "other_study" in whys


def other(world: Hospitals) -> None:
    """Put another study in the place of this one."""
    world.study_folder.rename(world.folder / "first study")
    cards: list[str | Path] = []
    for name in world.names:
        cards += ["--card", world.home(name) / "card.toml"]
    run(
        *("coordinator", "draft", world.folder / "board", world.study_folder, *cards),
        *("--author", world.home("s0") / "identity.pem"),
        *("--title", "Another", "--purpose", "testing"),
        *("--variables", world.folder / "variables.toml", "--rounds", 9, "--exact"),
        *("--address", f"{world.host}:{world.port}"),
    )
    for name in world.names:
        world.sign(name)


def test_a_number_of_four_hundred_digits_does_not_raise_in_a_site_that_serves(
    hospitals: Callable[..., Hospitals],
) -> None:
    """Five signed questions. Each is answered, is in the ledger, and leaves no traceback."""
    world = hospitals(60, 80, 70, method="admm")
    world.serve("s0")
    question = {"consensus": ["a"], "step": 1, "rows": 100, "weights": [[0.0]], "centre": None}
    data = json.dumps(question | {"rho": 10**400}, separators=(",", ":")).encode()
    terms = secure_sums(world.study.protocol).terms(world.study.roster)
    for number in range(1, 6):
        body = RoundRequest(number, data, 1, 4).body()
        frame = pack(EnvelopeKind.OPEN, terms, number, COORDINATOR, body, world.boss)
        assert said(world, "s0", frame) is Refusal.REFUSED
    assert world.ask("s0", PING) == PING
    assert [r["why"] for r in refusals(world, "s0")] == ["bad_request"] * 5
    assert "Error" not in world.log("s0")
    assert "Traceback" not in world.log("s0")


def test_a_second_coordinator_does_not_replace_the_first(
    hospitals: Callable[..., Hospitals],
) -> None:
    world = hospitals(30, 40, 20)
    state = world.folder / "board" / f"study-{world.study.identity.hex()[:16]}"
    state.mkdir()
    first = FileJournal(state / "journal")
    assert world.coordinate().wait(PATIENCE) == ExitCode.LEDGER
    assert "Another process uses the journal" in world.log("coordinator")
    assert not [p for p in state.iterdir() if p.is_socket()]  # it opened nothing
    first.close()


def test_a_flipped_byte_in_the_study(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(30, 40, 20)
    path = world.study_folder / "study.toml"
    text = path.read_bytes()
    path.write_bytes(text.replace(b"high = 10.0", b"high = 11.0", 1))
    assert world.start("s0").wait(PATIENCE) == 23
    assert "no valid signature" in world.log("s0")
    assert world.coordinate().wait(PATIENCE) == 23
    path.write_bytes(text)
    world.serve("s0")


class Stopper(Transport):
    """Pulls the kill switch of a site in the middle of a round."""

    def __init__(self, world: Hospitals) -> None:
        self._world = world
        self._inner = world.transport()
        self._left = 2

    def exchange(self, outgoing: Mapping[str, bytes]) -> Iterable[bytes]:
        self._left -= 1
        if self._left == 0:
            (self._world.home("s2") / "STOP").touch()
        return self._inner.exchange(outgoing)


def test_the_kill_switch(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(30, 40, 20)
    world.serve(*world.names)
    with pytest.raises(AbortedError, match="'s2': 'refused'"):
        federation(world, Stopper(world)).moments()
    events = [e["event"] for e in verify(world.home("s2") / "ledger.jsonl")]
    assert events == ["opened", "refused"]
    (world.home("s2") / "STOP").unlink()
    assert federation(world, first=2).moments().n == 90


def test_a_changed_ledger_ends_the_site(hospitals: Callable[..., Hospitals]) -> None:
    world = hospitals(30, 40, 20)
    world.serve(*world.names)
    federation(world).moments()
    world.kill("s0", signal.SIGTERM)
    path = world.home("s0") / "ledger.jsonl"
    path.write_text(path.read_text().replace('"numbers":10', '"numbers":11'))
    assert world.start("s0").wait(PATIENCE) == 24


def test_questions_beyond_the_study(hospitals: Callable[..., Hospitals]) -> None:
    """A coordinator of the right name that asks for more than was agreed on."""
    world = hospitals(30, 40, 20)
    world.serve("s0", "s1", "s2")
    request = AskConsensus(NAMES, 0)
    size = request.size(FixedPointEncoding.of(world.study))
    opening = RoundRequest(1, request.to_bytes(), size, request.limbs)
    frame = pack(
        EnvelopeKind.OPEN,
        secure_sums(world.study.protocol).terms(world.study.roster),
        1,
        COORDINATOR,
        opening.body(),
        world.boss,
    )
    assert said(world, "s0", frame) is Refusal.REFUSED
    source = federation(world, first=2)
    with pytest.raises(StudyError, match="moments"):
        ist.learn(source, search=ADMM(rounds=1))
    with pytest.raises(AbortedError, match="refused"):
        source.ask(request)
