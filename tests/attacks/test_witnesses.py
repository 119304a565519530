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
from isthmus.joint import (
    AskConsensus,
    AskTotals,
    Federation,
    FileLedger,
    FileSlot,
    InProcess,
    Journal,
    MemoryJournal,
    RoundRequest,
    verify,
)
from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus.joint.federation.study_terms import terms_of
from isthmus.joint.records.results import sign_result
from isthmus.joint.secure_sum.heads import HeadStatement
from isthmus.joint.secure_sum.limbs import LimbAccumulator, from_bytes, to_ints
from isthmus.joint.secure_sum.one_message_coordinator import KeyRound, OneMessageRound
from isthmus.joint.secure_sum.result_round import ResultRound
from isthmus.joint.transport.base import drive
from isthmus.statistics import Schema

NAMES = ("a", "b")
SITES = ("x", "y", "z")
ZERO = ((0.0, 0.0), (0.0, 0.0))
HASH = 32


class Witnessed:
    """Three sites with files, which can be stopped, changed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.journal = folder, MemoryJournal()
        rng = np.random.default_rng(1)
        tables = {n: {k: rng.normal(size=100) for k in NAMES} for n in SITES}
        requests = (AskTotals.name, AskConsensus.name)
        self.world = Attacked(
            tables, Schema.continuous(NAMES), dict.fromkeys(NAMES, (-9, 9)), requests=requests
        )
        self.start()

    def path(self, site: str) -> Path:
        return self.folder / f"{site}.jsonl"

    def start(self) -> None:
        world = self.world
        world.ledgers = {n: FileLedger(self.path(n)) for n in SITES}
        world.join()
        world.sites = {
            n: c.site(slot=FileSlot(self.folder / f"{n}.slot"))
            for n, c in world.controllers.items()
        }

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
        """Steps of ADMM, each one message; earlier ones are in the journal."""
        federation = self.federation(journal)
        for step in numbers:
            federation.ask(AskConsensus(NAMES, step, 300, 0.1, ZERO, None))

    def refusal(self, site: str) -> dict[str, Any]:
        return dict(self.world.ledgers[site].entries()[-1])


@pytest.fixture
def three(tmp_path: Path) -> Witnessed:
    return Witnessed(tmp_path)


# --- the end of a ledger -----------------------------------------------------------------------


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_a_ledger_that_was_cut_after_one_message_shows_at_the_next_one(
    three: Witnessed, lines: int
) -> None:
    """The line counts towards the budget of rounds and queries: it must not disappear."""
    three.steps([1, 2, 3])
    last = verify(three.path("x"))[-1]
    assert last["event"] == "single"
    three.cut("x", lines)
    for _ in range(2):  # nor at the next attempt
        with pytest.raises(AbortedError, match="'x': 'refused'"):
            three.steps([1, 2, 3, 4])
        assert three.refusal("x")["why"] == "witness"
        assert three.refusal("x")["missing"] == last["hash"]


def test_sites_that_kept_their_ledgers_go_on(three: Witnessed) -> None:
    three.steps([1, 2])
    three.start()
    three.steps([1, 2, 3])
    entries = verify(three.path("x"))
    mine = {e["hash"] for e in entries}
    (last,) = [e for e in verify(three.path("y")) if e["event"] == "single"][-1:]
    assert last["heads"][three.world.keys["x"].public.hex()] in mine


@pytest.mark.parametrize("lines", [1, 2, 5])
def test_the_last_line_of_a_ledger_is_missed_at_the_next_round(
    three: Witnessed, lines: int
) -> None:
    """Nobody but the coordinator has seen it. It shows the site what the site has signed."""
    federation = three.federation()
    federation.ask(AskTotals(NAMES))
    last = verify(three.path("x"))[-1]
    assert last["event"] == "unmasked"
    three.cut("x", lines)
    again = three.federation()
    again.ask(AskTotals(NAMES))  # from the journal
    with pytest.raises(AbortedError, match="'x': 'refused'"):
        again.ask(AskTotals(("a",)))
    assert three.refusal("x")["missing"] == last["hash"]


def test_a_coordinator_that_begins_with_one_message_rounds_hides_no_cut(three: Witnessed) -> None:
    """It has forgotten everything. The other sites have not."""
    three.federation().ask(AskTotals(NAMES))
    three.cut("x", 2)
    journal = MemoryJournal()
    journal.append({"event": "open", "study": three.world.study.identity.hex(), "round": 9})
    with pytest.raises(AbortedError, match="'x': 'refused'"):
        three.steps([1], journal)
    assert three.refusal("x")["why"] == "witness"


# --- a coordinator that shows heads as it likes ------------------------------------------------


class Led:
    """One-message rounds under the attacker's hands."""

    def __init__(self, three: Witnessed) -> None:
        self.three, self.terms = three, terms_of(three.world.study)
        self.members = frozenset(range(3))
        round_ = KeyRound(self.terms, three.world.boss, 1, self.members)
        drive(round_, three.transport())
        self.keys = round_.keys

    def round(self, number: int, heads: dict[int, bytes]) -> OneMessageRound:
        request, grid = (
            AskConsensus(NAMES, number - 1, 300, 0.1, ZERO, None),
            FixedPointEncoding.of(self.study),
        )
        opening = RoundRequest(number, request.to_bytes(), request.size(grid), request.limbs)
        boss = self.three.world.boss
        return OneMessageRound(self.terms, boss, opening, self.members, self.keys, heads=heads)

    @property
    def study(self) -> Any:
        return self.three.world.study


def test_heads_that_are_left_out_old_or_of_another_site_are_refused(three: Witnessed) -> None:
    led = Led(three)
    rounds = [led.round(2, {})]
    drive(rounds[0], three.transport())
    rounds.append(led.round(3, rounds[0].heads))
    drive(rounds[1], three.transport())
    first, second = rounds[0].heads, rounds[1].heads
    for wrong in (
        {},
        first,
        {i: h for i, h in second.items() if i != 0},
        {i: h for i, h in second.items() if i != 1},
        second | {1: first[1]},
        second | {1: second[2]},
    ):
        with pytest.raises(AbortedError):
            drive(led.round(4, wrong), three.transport())
    right = led.round(4, second)
    drive(right, three.transport())
    assert set(right.heads) == {0, 1, 2}


def test_sites_that_are_shown_different_heads_add_up_to_noise(three: Witnessed) -> None:
    """A site that signs two heads cannot show one to some sites and the other to the rest."""
    led = Led(three)
    first = led.round(2, {})
    drive(first, three.transport())
    assert max(map(abs, to_ints(first.total))) < 2**110
    key = three.world.keys["z"]
    other = first.heads | {2: HeadStatement.sign(key, led.terms, 2, bytes(96)).body()}
    views = {"x": led.round(3, first.heads), "y": led.round(3, other), "z": led.round(3, other)}
    sums = LimbAccumulator(first.opening.size, first.opening.limbs)
    for name, view in views.items():
        view.receive(three.world.sites[name].handle(view.begin()[name]))
        (frame,) = view._got.values()
        sums.add(from_bytes(frame.body[32 : -HeadStatement.SIZE], first.opening.limbs))
    assert max(map(abs, to_ints(sums.total()))) > 2**115


# --- two results -------------------------------------------------------------------------------


def delivered(three: Witnessed, results: dict[str, bytes]) -> dict[str, ResultRound]:
    """Give each site a result of its own, which the coordinator signs; no confirmations yet."""
    world, rounds = three.world, {}
    for position, name in enumerate(SITES):
        result = results[name]
        signature = sign_result(world.boss, world.study.identity, result)
        rounds[name] = ResultRound(
            terms_of(world.study), world.boss, 1, frozenset({position}), result, signature
        )
        rounds[name].receive(world.sites[name].handle(rounds[name].begin()[name]))
    return rounds


def test_a_coordinator_that_sends_two_results_is_found_out(
    three: Witnessed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    three.federation().ask(AskTotals(NAMES))
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
    three.federation().ask(AskTotals(NAMES))
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
    federation.ask(AskTotals(NAMES))
    for _ in range(2):
        assert federation.send_result(b'{"dag": 1}') == SITES
    for name in SITES:
        (entry,) = [e for e in verify(three.path(name)) if e["event"] == "confirmed"]
        assert entry["sites"] == list(SITES)


def test_a_confirmation_of_a_stranger_or_of_another_round_counts_for_nobody(
    three: Witnessed,
) -> None:
    three.federation().ask(AskTotals(NAMES))
    rounds = delivered(three, dict.fromkeys(SITES, b'{"dag": 1}'))
    mine, theirs = rounds["x"]._got[0], rounds["y"]._got[1]
    forged = bytearray(theirs.raw)
    forged[-1] ^= 1
    for body in (mine.raw + bytes(forged), theirs.raw, mine.raw + mine.raw, b""):
        frame = rounds["x"]._packed(23, body)  # type: ignore[arg-type]
        three.world.sites["x"].handle(frame)
        assert "confirmed" not in three.world.events("x")


def test_a_folder_that_was_copied_to_a_second_machine_is_noticed(three: Witnessed) -> None:
    """Both copies have the key of the site. Only one of them can go on."""
    federation = three.federation()
    federation.ask(AskTotals(NAMES))
    copy = three.path("x").read_bytes()
    federation.ask(AskTotals(("a",)))
    original = three.path("x").read_bytes()
    three.path("x").write_bytes(copy)
    three.start()
    again = three.federation(MemoryJournal())  # a coordinator that has forgotten everything
    again._scheduler._next = 9
    with pytest.raises(AbortedError, match="'x': 'refused'"):
        again.ask(AskTotals(("b",)))
    assert three.refusal("x")["why"] == "witness"
    three.path("x").write_bytes(original)
    three.start()
    again = three.federation(MemoryJournal())
    again._scheduler._next = 10
    assert again.ask(AskTotals(("b",))).n == 300


def test_an_earlier_result_does_not_come_back_with_its_old_confirmations(three: Witnessed) -> None:
    federation = three.federation()
    federation.ask(AskTotals(NAMES))
    for result in (b'{"dag": 1}', b'{"dag": 2}'):
        assert federation.send_result(result) == SITES
    delivered(three, {"x": b'{"dag": 1}', "y": b'{"dag": 2}', "z": b'{"dag": 2}'})
    assert three.refusal("x")["why"] == "replay"


def test_a_site_cannot_block_another_one_by_an_invented_memory(
    three: Witnessed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only an entry that a site has signed itself can be missing in its ledger."""
    three.federation().ask(AskTotals(NAMES))
    theirs = three.world.controllers["z"].remembered(0)[HASH:]  # of another entry
    for i, signature in enumerate((bytes(64), bytes([7]) * 64, theirs)):
        invented = bytes([7]) * HASH + signature
        monkeypatch.setattr(three.world.controllers["z"], "remembered", lambda _, h=invented: h)
        federation = three.world.federation(three.world.round + 10 * (i + 1))
        assert federation.ask(AskTotals(NAMES)).n > 0
        assert "refused" not in three.world.events("x")


@pytest.mark.parametrize("changed", [0, HASH, HASH + 63])
def test_a_head_that_its_site_has_not_signed_is_refused(
    three: Witnessed, monkeypatch: pytest.MonkeyPatch, changed: int
) -> None:
    """Else nobody could prove later what a site had in its ledger before it was cut."""
    inner = three.world.controllers["z"].head

    def wrong() -> bytes:
        head = bytearray(inner())
        head[changed] ^= 1
        return bytes(head)

    monkeypatch.setattr(three.world.controllers["z"], "head", wrong)
    with pytest.raises(AbortedError):
        three.federation().ask(AskTotals(NAMES))
    assert three.refusal("x")["why"] == "bad_signature"
