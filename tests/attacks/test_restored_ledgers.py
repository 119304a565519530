"""A ledger that is restored from a backup, so that something which left is not counted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.joint.consortium import NAMES, Consortium
from tests.joint.noise.private_group import consortium, renewed

from isthmus.errors import AbortedError, LedgerError, RefusedError
from isthmus_joint import DifferentialPrivacy, verify
from isthmus_joint.agreement.identity import Identity
from isthmus_joint.noise.accounting import Spending
from isthmus_joint.records.ledger import FileLedger, LedgerTally
from isthmus_joint.records.testimony import WitnessStatement, restore

pytest.importorskip("opendp")
pytestmark = [
    pytest.mark.filterwarnings("ignore:The noise", "ignore::isthmus.errors.NotesWarning"),
    pytest.mark.filterwarnings("ignore:.*rows for .*variables:isthmus.errors.DataWarning"),
]

PRIVACY = DifferentialPrivacy(0.5)


def study(earlier: Consortium, purpose: str) -> Consortium:
    """Another study of moments. Sites read their ledgers anew, as after a restart."""
    found = renewed(earlier, purpose=purpose, requests=["moments"], privacy=PRIVACY)
    found.ledgers = {n: FileLedger(found.folder / f"{n}.jsonl") for n in NAMES}
    found.policies = {n: replace(p, maximum_epsilon=9.0) for n, p in found.policies.items()}
    return found


def statements(group: Consortium, of: str) -> list[WitnessStatement]:
    """What each other site states, by way of a file."""
    found = []
    for name in NAMES:
        if name != of:
            path, key = group.folder / f"{name}-about-{of}.json", group.keys[name]
            entries = verify(group.folder / f"{name}.jsonl")
            WitnessStatement.about(group.keys[of].public, key.public, entries).write(path, key)
            found.append(WitnessStatement.read(path))
    return found


@pytest.fixture
def lost(tmp_path: Path) -> tuple[Consortium, float, int]:
    """The ledger of north is that of before the second study; what it counted before."""
    first = study(consortium(tmp_path, 2.5), "first")
    first.federation().moments()
    path = tmp_path / "north.jsonl"
    backup = path.read_bytes()
    second = study(first, "second")
    second.federation().moments()
    entries = verify(path)
    path.write_bytes(backup)
    return second, Spending.of(entries).total, LedgerTally.of(entries).statistics


@pytest.mark.long
def test_a_restored_ledger_counts_no_less_than_what_left(
    lost: tuple[Consortium, float, int],
) -> None:
    second, spent, statistics = lost
    path = second.folder / "north.jsonl"
    assert Spending.of(verify(path)).total < spent
    third = study(second, "third")
    with pytest.raises(AbortedError, match="'north': 'refused'"):
        third.federation(without=()).moments()  # the sum needs every site
    assert third.why("north") == ["witness"]
    assert restore(path, third.keys["north"], statements(third, "north")) == [
        second.study.identity.hex()
    ]
    assert Spending.of(verify(path)).total >= spent
    assert LedgerTally.of(verify(path)).statistics >= statistics
    with pytest.raises(RefusedError, match="its ledger was restored"):
        replace_ledgers(second).controller("north")
    fourth = study(second, "fourth")
    federation = fourth.federation()
    federation.moments()
    assert federation.active == NAMES
    assert restore(path, third.keys["north"], statements(third, "north")) == []  # only once


@pytest.mark.long
def test_without_statements_the_whole_budget_is_spent(
    lost: tuple[Consortium, float, int],
) -> None:
    second, spent, _ = lost
    path = second.folder / "north.jsonl"
    restore(path, second.keys["north"], [], everything=100.0)
    assert Spending.of(verify(path)).total > max(spent, 100.0)
    third = study(second, "third")
    with pytest.raises(AbortedError, match="'north': 'refused'"):
        third.federation(without=()).moments()
    assert third.why("north") == ["policy"]  # the budget, and not what others remember


@pytest.mark.long
def test_a_statement_that_was_changed_or_signed_by_another_is_refused(
    lost: tuple[Consortium, float, int],
) -> None:
    second, _, _ = lost
    (first, *_) = statements(second, "north")
    path = second.folder / "changed.json"
    replace(first, budgets={}).write(path, Identity.generate())
    with pytest.raises(LedgerError, match="not a statement"):
        WitnessStatement.read(path)
    replace(first, head="0" * len(first.head)).write(path, second.keys["south"])
    with pytest.raises(LedgerError, match="not a statement"):
        WitnessStatement.read(path)
    text = (second.folder / "south-about-north.json").read_text()
    plain = json.loads(text.splitlines()[0]) | {"budgets": {}}
    path.write_text(json.dumps(plain, sort_keys=True, separators=(",", ":")) + "\n" + "0" * 128)
    with pytest.raises(LedgerError, match="not a statement"):
        WitnessStatement.read(path)


def replace_ledgers(group: Consortium) -> Consortium:
    group.ledgers = {n: FileLedger(group.folder / f"{n}.jsonl") for n in NAMES}
    return group
