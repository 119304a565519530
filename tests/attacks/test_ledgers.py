"""Attacks on the ledger of a site: erased, cut, reset, forged and torn."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.cli import ExitCode, main
from isthmus.errors import AbortedError, FederationError, LedgerError
from isthmus.statistics import Schema
from isthmus_joint import FileLedger, Identity, repair, rotate, verify
from isthmus_joint.agreement.protocol_catalogue import known_event
from isthmus_joint.agreement.study import code_hash, dependency_hash
from isthmus_joint.records.journal import FolderLock
from isthmus_joint.records.ledger_entries import remembered_heads

NAMES = ("a", "b")
SITES = ("x", "y", "z")
RNG = np.random.default_rng(1)
TABLES = {n: {k: RNG.normal(size=100) for k in NAMES} for n in SITES}


def world_in(folder: Path, earlier: Attacked | None = None) -> Attacked:
    bounds = dict.fromkeys(NAMES, (-9, 9))
    if earlier is not None:  # every site reads its file anew, as after a restart
        earlier.ledgers = {n: FileLedger(folder / f"{n}.jsonl") for n in SITES}
    world = Attacked(TABLES, Schema.continuous(NAMES), bounds, earlier=earlier)
    if earlier is not None:
        world.study, world.signatures = earlier.study, earlier.signatures
        world.extracts = dict(earlier.extracts)
    world.ledgers = {n: FileLedger(folder / f"{n}.jsonl") for n in SITES}
    world.join()
    return world


def rechained(lines: list[bytes], keep: Callable[[dict[str, Any]], bool]) -> bytes:
    """A forged ledger without some entries, whose chain is right again."""
    previous, out = "0" * 64, []
    for number, entry in enumerate(filter(keep, map(json.loads, lines)), start=1):
        entry |= {"number": number, "previous": previous}
        rest = {k: v for k, v in entry.items() if k not in ("hash", "signature")}
        text = json.dumps(rest, ensure_ascii=True, separators=(",", ":")).encode()
        entry["hash"] = previous = hashlib.sha256(text).hexdigest()
        out.append(json.dumps(entry, ensure_ascii=True, separators=(",", ":")).encode())
    return b"".join(line + b"\n" for line in out)


def test_a_round_that_was_erased_is_noticed(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    world.federation(1).moments(("a",))
    world.federation(2).moments(("b",))
    path = tmp_path / "x.jsonl"
    forged = rechained(path.read_bytes().splitlines(), lambda e: e["round"] != 1)
    path.write_bytes(forged)
    with pytest.raises(LedgerError, match="not signed by this site"):
        verify(path, keys=[world.keys["x"].public])
    with pytest.raises(LedgerError, match=r"changed the ledger .* while it was open"):
        world.ledgers["x"].entries()
    with pytest.raises(LedgerError, match="not signed by this site"):
        world_in(tmp_path, world)


@pytest.mark.long
@pytest.mark.parametrize("left", [0, 2, 3, 4])
def test_a_ledger_that_was_cut_or_reset_shows_at_the_next_round(tmp_path: Path, left: int) -> None:
    """Even with the site's own key nobody brings the budget back: the others remember."""
    world = world_in(tmp_path)
    world.federation(1).moments(("a",))
    world.federation(2).moments(("b",))
    path = tmp_path / "x.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:left]))
    verify(path, keys=[world.keys["x"].public])  # alone it looks intact
    again = world_in(tmp_path, world)
    for number in (3, 4, 5):  # nor do the others forget when the site tries again
        with pytest.raises(AbortedError):
            again.federation(number).moments()
        assert again.why("x")[-1] == "witness"
    assert "sent" not in again.events("x")[left:]


def test_the_last_line_of_a_round_counts_towards_no_budget(tmp_path: Path) -> None:
    """It is the only one that the others have not seen. Cutting it brings nothing back."""
    world = world_in(tmp_path)
    world.federation(1).moments(("a",))
    world.federation(2).moments(("b",))
    path = tmp_path / "x.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    again = world_in(tmp_path, world)
    writer = again.controllers["x"]._writer
    tally = writer.here.tally
    assert (tally.questions, tally.openings, tally.last_round) == (2, 2, 2)
    assert writer.count_since(datetime(2000, 1, 1, tzinfo=UTC)) == (2, 2)
    # The result is forgotten at this site only: the others still refuse other sites.
    with pytest.raises(AbortedError):
        again.federation(3, lost=[("z", 0)]).moments()


def test_a_ledger_that_was_written_anew_with_the_key_of_the_site_shows(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    world.federation(1).moments(("a",))
    kept = verify(tmp_path / "x.jsonl")
    (tmp_path / "x.jsonl").unlink()
    forged = FileLedger(tmp_path / "x.jsonl")
    forged.bind(world.keys["x"])
    for entry in kept:
        forged.append("opened", study=entry["study"], round=0)
    again = world_in(tmp_path, world)
    with pytest.raises(AbortedError):
        again.federation(3).moments()
    assert again.why("x") == ["witness"]


@pytest.mark.long
def test_what_the_others_remember_is_in_their_ledgers(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    world.federation(1).moments()
    mine = {e["hash"] for e in verify(tmp_path / "x.jsonl")}
    for other in ("y", "z"):
        last = verify(tmp_path / f"{other}.jsonl")[-1]
        assert last["event"] == "unmasked"
        assert last["heads"][world.keys["x"].public.hex()] in mine
    again = world_in(tmp_path, world)  # an honest restart goes on
    assert again.federation(2).moments().n == 300


def test_every_entry_says_which_policy_and_which_code_were_running(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    world.federation(1).moments()
    for entry in verify(tmp_path / "x.jsonl", keys=[world.keys["x"].public]):
        assert entry["code"] == code_hash()
        assert entry["dependencies"] == dependency_hash()
        assert len(entry["policy"]) == 64


@pytest.mark.long
def test_a_torn_last_line_is_put_aside(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    world.federation(1).moments()
    path, key = tmp_path / "x.jsonl", world.keys["x"]
    whole = path.read_bytes()
    assert repair(path, key) == 0
    path.write_bytes(whole + b'{"format":"isthmus-led')
    with pytest.raises(LedgerError, match="ledger repair"):
        FileLedger(path)
    assert repair(path, key) == 22
    entries = verify(path, keys=[key.public])
    assert [e["event"] for e in entries][-2:] == ["unmasked", "repaired"]
    (torn,) = tmp_path.glob("x.jsonl.torn-*")
    assert torn.read_bytes() == b'{"format":"isthmus-led'
    assert not known_event("repaired").opens_round  # repairs use up no budget
    assert world_in(tmp_path, world).federation(2).moments().n == 300


@pytest.mark.long
def test_a_ledger_goes_on_in_a_new_file(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    world.federation(1).moments()
    path, key = tmp_path / "x.jsonl", world.keys["x"].public
    before = len(verify(path, keys=[key]))
    for _ in range(2):
        aside = rotate(path)
        assert path.read_bytes() == b""
    again = world_in(tmp_path, world)
    assert again.federation(2).moments().n == 300
    assert len(verify(path, keys=[key])) == 2 * before
    first = sorted(tmp_path.glob("x.jsonl.part-*"))[0]
    assert aside.exists()
    first.unlink()
    with pytest.raises(LedgerError, match="line 1"):
        verify(path)


def test_an_entry_of_another_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = FileLedger(path)
    ledger.bind(Identity.generate())
    ledger.append("sent", round=1)
    with pytest.raises(LedgerError, match="not signed by this site"):
        verify(path, keys=[Identity.generate().public])


def test_entries_of_another_format_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = FileLedger(path)
    ledger.bind(Identity.generate())
    ledger.append("sent", round=1)
    lines = path.read_bytes().replace(b"isthmus-ledger/2", b"isthmus-ledger/1").splitlines()
    path.write_bytes(rechained(lines, lambda _: True))
    with pytest.raises(LedgerError, match="line 1"):
        verify(path)


# --- careless operators ------------------------------------------------------------------------


def test_a_ledger_is_not_rotated_or_repaired_beside_its_site(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A site that goes on writing to a file that was put aside would break the chain."""
    path, key = tmp_path / "ledger.jsonl", Identity.generate()
    key.save(tmp_path / "identity.pem")
    FileLedger(path).append("sent", round=1)
    before = sorted(tmp_path.iterdir())
    with FolderLock(tmp_path, "the service of the site"):
        for change in (lambda: rotate(path), lambda: repair(path, key)):
            with pytest.raises(FederationError, match=f"process {os.getpid()} on .*the service"):
                change()
        for action in ("rotate", "repair"):
            assert main(["ledger", action, str(tmp_path)]) == ExitCode.FEDERATION
        assert main(["site", "rotate", str(tmp_path)]) == ExitCode.FEDERATION
        assert f"process {os.getpid()}" in capsys.readouterr().err
        assert sorted(tmp_path.iterdir()) == sorted({*before, tmp_path / "lock"})
    rotate(path)


def test_a_line_that_was_removed_is_not_taken_for_a_torn_one(tmp_path: Path) -> None:
    world = world_in(tmp_path)
    world.federation(1).moments()
    path, key = tmp_path / "x.jsonl", world.keys["x"]
    whole = path.read_bytes()
    head = remembered_heads(verify(tmp_path / "y.jsonl"))[key.public.hex()]
    lines = whole.splitlines(keepends=True)
    at = [json.loads(line)["hash"] for line in lines].index(head)
    # Somebody cuts in the middle of a line that others have seen: it looks like a crash.
    cut = b"".join(lines[:at]) + lines[at][:100]
    path.write_bytes(cut)
    with pytest.raises(LedgerError, match=f"{head[:16]}.*not repaired"):
        repair(path, key, heads=[head])
    assert path.read_bytes() == cut
    # A crash tears the line after it, which nobody has seen.
    path.write_bytes(b"".join(lines[: at + 1]) + b'{"format":')
    assert repair(path, key, heads=[head]) == 10
    assert verify(path, head=[head], keys=[key.public])[-1]["event"] == "repaired"


@pytest.mark.long
def test_a_site_says_which_entry_it_has_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = world_in(tmp_path)
    world.federation(1).moments(("a",))
    path = tmp_path / "x.jsonl"
    head = remembered_heads(verify(tmp_path / "y.jsonl"))[world.keys["x"].public.hex()]
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:1]))
    again = world_in(tmp_path, world)
    with pytest.raises(AbortedError):
        again.federation(3).moments()
    assert again.ledgers["x"].entries()[-1]["missing"] == head
    (tmp_path / "home").mkdir()
    path.rename(tmp_path / "home" / "ledger.jsonl")
    for action in ("show", "verify"):
        assert main(["ledger", action, str(tmp_path / "home")]) == ExitCode.LEDGER
        assert head[:16] in capsys.readouterr().err
    (tmp_path / "y.jsonl").rename(tmp_path / "home" / "ledger.jsonl")
    assert main(["ledger", "heads", str(tmp_path / "home")]) == ExitCode.DONE
    assert head in capsys.readouterr().out
