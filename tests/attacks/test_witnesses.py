"""Attacks on what sites and the coordinator remember of each other: cut ledgers, two results."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.cli import ExitCode, main
from isthmus.errors import AbortedError
from isthmus.statistics import Schema
from isthmus_joint import (
    AskMoments,
    Federation,
    FileLedger,
    InProcess,
    Journal,
    MemoryJournal,
    verify,
)
from isthmus_joint.agreement.identity import Identity
from isthmus_joint.federation.received_results import sign_result
from isthmus_joint.methods.admm import AskConsensus
from isthmus_joint.secure_sum.envelopes import EnvelopeKind
from isthmus_joint.secure_sum.protocol import secure_sums
from isthmus_joint.secure_sum.sides import ResultRound

NAMES = ("a", "b")
SITES = ("x", "y", "z")
HASH = 32


class Witnessed:
    """Three sites with files, which can be stopped, changed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.journal = folder, MemoryJournal()
        rng = np.random.default_rng(1)
        tables = {n: {k: rng.normal(size=100) for k in NAMES} for n in SITES}
        requests = (AskMoments.name, AskConsensus.name)
        self.world = Attacked(
            tables, Schema.continuous(NAMES), dict.fromkeys(NAMES, (-9, 9)), requests=requests
        )
        self.kept = {n: MemoryJournal() for n in SITES}
        self.start()

    def path(self, site: str) -> Path:
        return self.folder / f"{site}.jsonl"

    def start(self) -> None:
        world = self.world
        world.ledgers = {n: FileLedger(self.path(n)) for n in SITES}
        world.join()
        world.sites = {n: c.site(journal=self.kept[n]) for n, c in world.controllers.items()}

    def cut(self, site: str, lines: int) -> str:
        """Remove lines from the end of a ledger; returns the hash of the first of them."""
        whole = self.path(site).read_bytes().splitlines(keepends=True)
        self.path(site).write_bytes(b"".join(whole[:-lines]))
        verify(self.path(site), keys=[self.world.keys[site].public])  # alone it looks intact
        self.start()
        return str(json.loads(whole[-lines])["hash"])

    def transport(self) -> InProcess:
        return InProcess({n: s.handle for n, s in self.world.sites.items()})

    def federation(self, journal: Journal | None = None) -> Federation:
        world, journal = self.world, self.journal if journal is None else journal
        return Federation(
            world.study, world.signatures, world.boss, self.transport(), journal=journal
        )

    def steps(self, numbers: Iterable[int], journal: Journal | None = None) -> None:
        """Steps of ADMM; earlier ones are in the journal."""
        federation = self.federation(journal)
        for step in numbers:
            federation.ask(AskConsensus(NAMES, step))

    def refusal(self, site: str) -> dict[str, Any]:
        return dict(self.world.ledgers[site].entries()[-1])


@pytest.fixture
def three(tmp_path: Path) -> Witnessed:
    return Witnessed(tmp_path)


# --- the end of a ledger -----------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("lines", [2, 3, 5])
def test_a_ledger_that_was_cut_shows_at_the_next_round(three: Witnessed, lines: int) -> None:
    """The lines count towards the budget of rounds and queries: they must not disappear.

    The last line of all, which says that the sum was unmasked, has not been shown to anybody yet.
    """
    three.steps(range(3))
    *_, sent, last = verify(three.path("x"))
    assert (sent["event"], last["event"]) == ("sent", "unmasked")
    three.cut("x", lines)
    for _ in range(2):  # nor at the next attempt
        with pytest.raises(AbortedError, match="'x': 'refused'"):
            three.steps(range(4))
        assert three.refusal("x")["why"] == "witness"
        assert three.refusal("x")["missing"] == sent["hash"]
        assert three.refusal("x")["told_by"] in ("y", "z")


def test_sites_that_kept_their_ledgers_go_on(three: Witnessed) -> None:
    three.steps(range(2))
    three.start()
    three.steps(range(3))
    entries = verify(three.path("x"))
    mine = {e["hash"] for e in entries}
    (last,) = [e for e in verify(three.path("y")) if e["event"] == "unmasked"][-1:]
    assert last["heads"][three.world.keys["x"].public.hex()] in mine


def test_a_site_with_a_new_key_goes_on_with_its_ledger(tmp_path: Path) -> None:
    """The last entry has the signature of the key that was replaced."""
    ledger = FileLedger(tmp_path / "x.jsonl")
    ledger.bind(Identity.generate())
    ledger.append("refused", study="00", round=1, why="stopped")
    three = Witnessed(tmp_path)
    three.steps(range(2))
    seen = [e["seen"] for e in verify(three.path("y")) if e.get("seen")]
    assert seen[0][three.world.keys["x"].public.hex()] == ledger.head()


def test_a_coordinator_that_has_forgotten_everything_hides_no_cut(three: Witnessed) -> None:
    """The other sites have not."""
    three.federation().ask(AskMoments(NAMES))
    three.cut("x", 2)
    journal = MemoryJournal()
    journal.append({"event": "open", "study": three.world.study.identity.hex(), "round": 9})
    with pytest.raises(AbortedError, match="'x': 'refused'"):
        three.steps([0], journal)
    assert three.refusal("x")["why"] == "witness"


# --- two results -------------------------------------------------------------------------------


def delivered(three: Witnessed, results: dict[str, bytes]) -> dict[str, ResultRound]:
    """Give each site a result of its own, which the coordinator signs; no confirmations yet."""
    world, rounds = three.world, {}
    for position, name in enumerate(SITES):
        result = results[name]
        signature = sign_result(world.boss, world.study.identity, result)
        rounds[name] = ResultRound(
            secure_sums(world.study.protocol).terms(world.study.roster),
            world.boss,
            1,
            frozenset({position}),
            result,
            signature,
        )
        rounds[name].receive(world.sites[name].handle(rounds[name].begin()[name]))
    return rounds


def test_a_coordinator_that_sends_two_results_is_found_out(
    three: Witnessed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    three.federation().ask(AskMoments(NAMES))
    lie = {"x": b'{"dag": 1}', "y": b'{"dag": 2}', "z": b'{"dag": 2}'}
    rounds = delivered(three, lie)
    receipts = {i: f for r in rounds.values() for i, f in r._got.items()}
    for name, round_ in rounds.items():
        round_._got = dict(receipts)  # it shows all confirmations, which it cannot forge
        three.world.sites[name].handle(round_.advance()[name])
    for name in SITES:
        assert three.refusal(name)["why"] == "other_result"
    assert set(three.refusal("x")["other_results"]) == {"y", "z"}
    assert set(three.refusal("y")["other_results"]) == {"x"}
    # Or it shows only those that fit: then they are too few, and the ledger says so.
    home = tmp_path / "home"
    home.mkdir()
    three.path("x").rename(home / "ledger.jsonl")
    assert main(["ledger", "show", str(home)]) == ExitCode.DONE
    assert "y, z got another result" in capsys.readouterr().out


def test_confirmations_that_are_left_out_are_missed(
    three: Witnessed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    three.federation().ask(AskMoments(NAMES))
    rounds = delivered(three, {"x": b'{"dag": 1}', "y": b'{"dag": 2}', "z": b'{"dag": 2}'})
    rounds["y"]._got |= rounds["z"]._got
    fitting = rounds["y"].advance()
    for name in ("y", "z"):
        three.world.sites[name].handle(fitting[name])
    assert "confirmed" not in three.world.events("x")
    home = tmp_path / "home"
    home.mkdir()
    three.path("x").rename(home / "ledger.jsonl")
    assert main(["ledger", "show", str(home)]) == ExitCode.DONE
    assert "no other site has confirmed" in capsys.readouterr().out
    three.path("y").rename(home / "ledger.jsonl")
    assert main(["ledger", "show", str(home)]) == ExitCode.DONE
    assert "confirmed by y, z" in capsys.readouterr().out


def test_an_honest_result_is_confirmed_by_all_once(three: Witnessed) -> None:
    federation = three.federation()
    federation.ask(AskMoments(NAMES))
    for _ in range(2):
        assert federation.send_result(b'{"dag": 1}') == SITES
    for name in SITES:
        (entry,) = [e for e in verify(three.path(name)) if e["event"] == "confirmed"]
        assert entry["sites"] == list(SITES)


def test_a_confirmation_of_a_stranger_or_of_another_round_counts_for_nobody(
    three: Witnessed,
) -> None:
    three.federation().ask(AskMoments(NAMES))
    rounds = delivered(three, dict.fromkeys(SITES, b'{"dag": 1}'))
    mine, theirs = rounds["x"]._got[0], rounds["y"]._got[1]
    forged = bytearray(theirs.raw)
    forged[-1] ^= 1
    for body in (mine.raw + bytes(forged), theirs.raw, mine.raw + mine.raw, b""):
        (frame,) = rounds["x"]._sent(EnvelopeKind.RECEIPTS, body).values()
        three.world.sites["x"].handle(frame)
        assert "confirmed" not in three.world.events("x")


@pytest.mark.long
def test_a_folder_that_was_copied_to_a_second_machine_is_noticed(three: Witnessed) -> None:
    """Both copies have the key of the site. Only one of them can go on."""
    federation = three.federation()
    federation.ask(AskMoments(NAMES))
    copy = three.path("x").read_bytes()
    federation.ask(AskMoments(("a",)))
    original = three.path("x").read_bytes()
    three.path("x").write_bytes(copy)
    three.start()
    again = three.federation(MemoryJournal())  # a coordinator that has forgotten everything
    again._scheduler._next = 9
    with pytest.raises(AbortedError, match="'x': 'refused'"):
        again.ask(AskMoments(("b",)))
    assert three.refusal("x")["why"] == "witness"
    three.path("x").write_bytes(original)
    three.start()
    again = three.federation(MemoryJournal())
    again._scheduler._next = 10
    assert again.ask(AskMoments(("b",))).n == 300


def test_an_earlier_result_does_not_come_back_with_its_old_confirmations(three: Witnessed) -> None:
    federation = three.federation()
    federation.ask(AskMoments(NAMES))
    for result in (b'{"dag": 1}', b'{"dag": 2}'):
        assert federation.send_result(result) == SITES
    delivered(three, {"x": b'{"dag": 1}', "y": b'{"dag": 2}', "z": b'{"dag": 2}'})
    assert three.refusal("x")["why"] == "replay"


def test_a_site_cannot_block_another_one_by_an_invented_memory(
    three: Witnessed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only an entry that a site has signed itself can be missing in its ledger."""
    three.federation().ask(AskMoments(NAMES))
    inner = three.world.controllers["z"].heads
    theirs = inner()[0][HASH:]  # of another entry
    for i, signature in enumerate((bytes(64), bytes([7]) * 64, theirs)):
        invented = {0: bytes([7]) * HASH + signature}
        monkeypatch.setattr(
            three.world.controllers["z"], "heads", lambda h=invented: dict(inner()) | h
        )
        federation = three.world.federation(three.world.round + 10 * (i + 1))
        assert federation.ask(AskMoments(NAMES)).n > 0
        assert "refused" not in three.world.events("x")


@pytest.mark.long
@pytest.mark.parametrize("changed", [0, HASH, HASH + 63])
def test_a_head_that_its_site_has_not_signed_is_refused(
    three: Witnessed, monkeypatch: pytest.MonkeyPatch, changed: int
) -> None:
    """Else nobody could prove later what a site had in its ledger before it was cut."""
    federation = three.federation()
    federation.ask(AskMoments(NAMES))
    inner = three.world.controllers["z"].heads

    def wrong() -> dict[int, bytes]:
        head = bytearray(inner()[2])
        head[changed] ^= 1
        return dict(inner()) | {2: bytes(head)}

    monkeypatch.setattr(three.world.controllers["z"], "heads", wrong)
    with pytest.raises(AbortedError):
        federation.ask(AskMoments(("a",)))
    assert three.refusal("x")["why"] == "bad_signature"
