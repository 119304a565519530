"""Two parties as real processes, with an engine that stands in: ends, crashes, lies, limits.

The connection, the alignment and everything that supervises the engine are real.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.processes.companies import Companies, table
from tests.processes.killed_party import COMMAND
from tests.processes.stand_in_engine import STEPS

from isthmus.cli import ExitCode
from isthmus_joint.agreement.cards import Card
from isthmus_joint.shares.two_party import address_of
from isthmus_joint.transport.certificates import fingerprint, own_certificate
from isthmus_joint.transport.pinned_channel import PinnedChannel
from isthmus_joint.transport.pinned_connection import Credentials

DECISIONS = [f"decision {i}" for i in range(STEPS)]
MINUTE = 60.0


def test_a_run_a_second_one_and_the_budget(companies: Callable[..., Companies]) -> None:
    world = companies(draft=["--runs", "1"])
    assert world.both() == (ExitCode.DONE, ExitCode.DONE)
    for name in ("bank", "shop"):
        events = [event for event, _ in world.ledger(name)]
        assert events == ["aligning", "aligned", "sharing", *["revealing"] * STEPS, "ended"]
        assert world.revealed(name) == DECISIONS
        assert "200 people in common; both parties learn" in world.ledger(name)[1][1]
        assert world.status(name)["state"] == "done"
        assert "a → b\nb → c\nc → d" in world.log(name)
        assert "shop learned that (private set intersection, 200 numbers)" in world.log(name)
        assert "how many people each of them brought (to both, 2 numbers)" in world.log(name)
        assert not [p for p in world.state(name).iterdir() if "hash" in p.name]
    assert world.both() == (ExitCode.REFUSED, ExitCode.REFUSED)
    assert "1 rounds were opened in this study; 1 are allowed" in world.log("bank")


def test_crashes_and_resumption(companies: Callable[..., Companies], tmp_path: Path) -> None:
    """Kill -9 where it hurts most: each value is opened once, and both have the same in the end.

    More points, and the real engine: `benchmarks/vertical/crashes.py`.
    """
    world = companies(draft=["--runs", "1"])
    for name, point in (("shop", "journal share"), ("bank", "journal commitment")):
        extra = {"KILL_AFTER": point, "STAND_IN": "1"}
        for each in ("bank", "shop"):
            killed = {"command": COMMAND, "extra": extra} if each == name else {}
            world.start(each, **killed)  # type: ignore[arg-type]
        ends = dict(zip(("bank", "shop"), world.ends(), strict=True))
        assert ends.pop(name) == -signal.SIGKILL
        ((other, code),) = ends.items()
        assert code == ExitCode.PAUSED
        assert world.status(other)["reason"] == "disconnected"
        assert set(world.revealed("bank")) <= set(DECISIONS[:1])
    values = [tmp_path / name for name in ("bank", "shop")]
    for name, path in zip(("bank", "shop"), values, strict=True):
        world.start(name, extra={"STAND_IN_VALUES": str(path)})
    assert world.ends() == (ExitCode.DONE, ExitCode.DONE)
    assert values[0].read_text() == values[1].read_text()
    for name in ("bank", "shop"):
        events = [event for event, _ in world.ledger(name)]
        assert events.count("aligning") == events.count("aligned") == 1
        assert [r["opening"] for r in world.journal(name) if "commitment" in r] == DECISIONS
        assert world.revealed(name) == DECISIONS
        assert "resumed: 1 values" in world.log(name)


def test_a_party_that_is_killed_after_the_end_has_the_result(
    companies: Callable[..., Companies],
) -> None:
    """The run is over, and its values cannot be opened again."""
    world = companies(draft=["--runs", "1"])
    world.start("bank", command=COMMAND, extra={"KILL_AFTER": "journal end", "STAND_IN": "1"})
    world.start("shop")
    assert world.ends() == (-signal.SIGKILL, ExitCode.DONE)
    path = world.state("bank") / "result.json"
    assert json.loads(path.read_text())["parents"]["d"] == ["c"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert world.both() == (ExitCode.REFUSED, ExitCode.REFUSED)
    assert f"the result of the last run is in {path}" in world.log("bank")


def test_a_stopped_party_is_silent(companies: Callable[..., Companies]) -> None:
    world = companies()
    world.start("bank")
    shop = world.start("shop", extra={"STAND_IN_PAUSE": "3"})
    world.await_text("bank", "decision 1")
    children = [int(p) for p in children_of(shop.pid)]
    for each in (shop.pid, *children):
        os.kill(each, signal.SIGSTOP)
    assert world.processes["bank"].wait(MINUTE) == ExitCode.PAUSED
    assert world.status("bank")["reason"] == "silent"
    assert len(world.revealed("bank")) < STEPS
    for each in (shop.pid, *children):
        os.kill(each, signal.SIGCONT)
    assert shop.wait(MINUTE) in (ExitCode.PAUSED, ExitCode.ABORTED)


def test_a_stopped_engine(companies: Callable[..., Companies]) -> None:
    """The shop is alive, but its engine hangs: the bank's engine does not wait for ever."""
    world = companies()
    world.start("bank", "--message-timeout", "5")
    shop = world.start("shop", "--message-timeout", "5", extra={"STAND_IN_STOP": "2"})
    # The engine misses a confirmation, or the party a commitment, whatever comes first.
    assert world.processes["bank"].wait(MINUTE) in (ExitCode.PAUSED, ExitCode.ABORTED)
    for child in children_of(shop.pid):
        os.kill(int(child), signal.SIGCONT)
    assert shop.wait(MINUTE) == ExitCode.ABORTED
    reason = world.status("bank")["reason"]
    assert reason in ("silent", "engine")
    assert world.status("shop")["reason"] == f"ended: {reason}"
    assert world.revealed("bank") == DECISIONS[:2]


def children_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@pytest.mark.parametrize(
    ("claim", "reason", "theirs", "text"),
    [
        ("{'study': '0' * 64}", "another study", "ended: another study", "0000"),
        ("{'sessions': 7}", "broken message", "ended: broken message", "not complete"),
    ],
)
def test_claims(
    companies: Callable[..., Companies], claim: str, reason: str, theirs: str, text: str
) -> None:
    world = companies()
    assert world.both(shop={"CLAIM": claim})[0] == ExitCode.ABORTED
    assert world.status("bank")["reason"] == reason
    assert text in world.status("bank")["why"]
    assert world.status("shop")["reason"].startswith(theirs)
    assert world.ledger("bank") == []


@pytest.mark.parametrize(
    ("lie", "reason", "text"),
    [
        ("rows=x+1", "other number of rows", "states 201 people"),
        ("hello={**x,'signature':'00'*64}", "wrong identity", "did not sign"),
    ],
)
def test_lies(companies: Callable[..., Companies], lie: str, reason: str, text: str) -> None:
    world = companies()
    assert world.both(shop={"LIE": lie})[0] == ExitCode.ABORTED
    assert world.status("bank")["reason"] == reason
    assert text in world.status("bank")["why"]
    assert world.status("shop")["reason"].startswith(f"ended: {reason}")


def test_more_people_than_stated(companies: Callable[..., Companies]) -> None:
    world = companies()
    assert world.both(shop={"CLAIM": "{'people': 199}"})[0] == ExitCode.ABORTED
    assert world.status("bank")["reason"] == "other identifiers"
    assert "another number of people than it has stated" in world.status("bank")["why"]
    assert [event for event, _ in world.ledger("bank")] == ["aligning"]


def test_a_withheld_share_is_opened_to_nobody_again(companies: Callable[..., Companies]) -> None:
    """z01, z15: the shop takes the bank's share, keeps its own, and comes back with other data."""
    world = companies(draft=["--runs", "1"])
    bank, _ = world.both(shop={"LIE": "share=__import__('os')._exit(9)"})
    assert bank == ExitCode.PAUSED
    assert world.revealed("bank") == DECISIONS[:1]
    assert world.both(shop={"CLAIM": "{'sessions': {}}"})[0] == ExitCode.REFUSED
    assert "'decision 0', and 'shop' does not have the share any more" in world.log("bank")
    assert world.revealed("bank") == DECISIONS[:1]
    assert world.journal("bank")[-1] == {"run": 1, "end": "an opening was interrupted"}


def test_another_result_is_noticed(companies: Callable[..., Companies]) -> None:
    world = companies()
    assert world.both(shop={"LIE": "done='0'"})[0] == ExitCode.FEDERATION
    assert "has another result" in world.status("bank")["why"]


def test_too_few_people(companies: Callable[..., Companies]) -> None:
    world = companies(bank=range(100), shop=range(60, 160), draft=["--runs", "1"])
    assert world.both() == (ExitCode.REFUSED, ExitCode.REFUSED)
    for name, other in (("bank", "shop"), ("shop", "bank")):
        why = world.status(name)["why"]
        assert "have 40 people in common, which is fewer than 50 people" in why or other in why
        events = [event for event, _ in world.ledger(name)]
        assert events[:4] == ["aligning", "aligned", "ended", "refused"]
    # This run cannot be resumed, and it was the only one.
    assert world.both() == (ExitCode.REFUSED, ExitCode.REFUSED)


def test_stop_file_and_interrupt(companies: Callable[..., Companies]) -> None:
    world = companies()
    world.start("bank")
    world.start("shop", extra={"STAND_IN_PAUSE": "1"})
    world.await_text("bank", "decision 1")
    (world.home("bank") / "STOP").touch()
    assert world.ends() == (ExitCode.REFUSED, ExitCode.ABORTED)
    assert "stopped" in world.status("bank")["why"]
    assert world.status("shop")["reason"] == "ended: refused"
    (world.home("bank") / "STOP").unlink()
    world.start("bank")
    world.start("shop", extra={"STAND_IN_LATE": "20"})
    world.await_text("bank", "resumed")
    (world.home("bank") / "STOP").touch()  # while the engine waits for the other one
    assert world.processes["bank"].wait(10) == ExitCode.REFUSED
    assert world.ends() == (ExitCode.REFUSED, ExitCode.ABORTED)
    assert world.ledger("bank")[-1] == ("refused", "stopped")
    (world.home("bank") / "STOP").unlink()
    (world.folder / "bank.log").unlink()
    world.start("bank")
    world.start("shop", extra={"STAND_IN_PAUSE": "1"})
    world.await_text("bank", "resumed")
    world.await_text("bank", "decision 4")
    world.processes["bank"].send_signal(signal.SIGINT)
    assert world.ends() == (ExitCode.INTERRUPTED, ExitCode.ABORTED)
    assert world.status("shop")["reason"] == "ended: interrupted"
    world.write("shop", table(world.people["shop"][1:]))
    assert world.both("--gather", "5")[1] == ExitCode.REFUSED
    assert "over another table" in world.status("shop")["why"]


def test_a_wrong_certificate(companies: Callable[..., Companies]) -> None:
    world = companies()
    certificate, key = own_certificate("shop")
    card = Card.read(world.home("shop") / "card.toml")
    replace(card, certificate=certificate.decode()).write(world.home("shop") / "card.toml")
    (world.home("shop") / "connection.pem").write_bytes(key)
    world.start("bank", "--gather", "15")
    world.start("shop", extra={"STRANGERS": "3"})
    assert world.ends() == (ExitCode.ABORTED, ExitCode.ABORTED)
    for name in ("bank", "shop"):
        assert world.status(name)["reason"] == "wrong certificate"
        assert world.ledger(name) == []


def test_garbage_of_the_right_party(companies: Callable[..., Companies]) -> None:
    """Someone with the shop's key sends bytes that are no message."""
    world = companies()
    world.start("bank")
    cards = [Card.read(world.home(name) / "card.toml") for name in ("shop", "bank")]
    own, trusted = world.folder / "own.crt", world.folder / "trusted.crt"
    for path, card in zip((own, trusted), cards, strict=True):
        path.write_text(card.certificate)
    pin = fingerprint(cards[1].certificate)
    pinned = Credentials(own, world.home("shop") / "connection.pem", trusted, pin)
    host, port = address_of(cards[1].address)
    channel = PinnedChannel.dial((host, port + 1), pinned, "bank", 30.0)
    channel._outbox.put(os.urandom(1000))
    assert world.processes["bank"].wait(MINUTE) == ExitCode.ABORTED
    assert world.status("bank")["reason"] == "broken message"
    channel.close()
    assert world.ledger("bank") == []
