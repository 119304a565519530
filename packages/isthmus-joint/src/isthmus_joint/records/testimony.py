"""What one ledger knows of another, so that a restored ledger counts what it lacks."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, final

from isthmus.errors import LedgerError
from isthmus_joint.agreement.identity import KEY, Identity, Verifier, digest
from isthmus_joint.noise.accounting import Spending
from isthmus_joint.records.journal import RESTORED, FolderLock
from isthmus_joint.records.ledger import FileLedger, LedgerIndex
from isthmus_joint.records.ledger_entries import HASH, Entry, signed_bytes

FORMAT = "isthmus-testimony/1"
EVERYTHING = "*"
"""Stands for the study of an entry that counts a whole budget as spent."""


@final
@dataclass(frozen=True)
class WitnessStatement:
    """What one site states about the ledger of another one, signed.

    Attributes
    ----------
    of, by
        Keys of the two sites, as hexadecimal digits.
    head
        The last entry of the other ledger that this one remembers: its hash and the signature of
        its owner. Empty if there is none.
    rounds
        Numbers of the rounds that both took part in, by study.
    budgets
        The whole budget of each of these studies that has noise, as ρ.
    """

    of: str
    by: str
    head: str
    rounds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    budgets: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def about(cls, of: bytes, by: bytes, entries: Iterable[Entry]) -> Self:
        """Collect what the entries of a ledger say about the site of a key."""
        index, key = LedgerIndex(), of.hex()
        met, opened, budgets = set[str](), dict[str, set[int]](), dict[str, float]()
        for entry in entries:
            index.add(entry)
            study = entry.get("study", "")
            if key in (*entry.get("keys", ()), *entry.get("seen", ()), *entry.get("heads", ())):
                met.add(study)
            if entry["event"] == "opened":
                opened.setdefault(study, set()).add(entry.get("round", 0))
            if "rho" in entry:
                known = entry.get("budget", budgets.get(study, 0.0) + entry["rho"])
                budgets[study] = max(budgets.get(study, 0.0), known)
        return cls(
            key,
            by.hex(),
            index.signed_heads.get(key, ""),
            {study: tuple(sorted(opened.get(study, ()))) for study in sorted(met)},
            {study: budgets[study] for study in sorted(met & budgets.keys())},
        )

    def _text(self) -> bytes:
        plain = {"format": FORMAT, **vars(self)}
        return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()

    def write(self, path: str | os.PathLike[str], identity: Identity) -> None:
        """Sign the statement, and write it to a file."""
        signature = identity.sign(digest(b"isthmus testimony", self._text())).hex()
        Path(path).write_bytes(self._text() + b"\n" + signature.encode() + b"\n")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that `write` wrote, and check the two signatures in it."""
        text, _, signature = Path(path).read_bytes().strip().partition(b"\n")
        try:
            plain: dict[str, Any] = json.loads(text)
            rounds = {str(s): tuple(map(int, own)) for s, own in plain["rounds"].items()}
            budgets = {str(s): float(rho) for s, rho in plain["budgets"].items()}
            own = cls(str(plain["of"]), str(plain["by"]), str(plain["head"]), rounds, budgets)
            of, by, head = map(bytes.fromhex, (own.of, own.by, own.head))
            valid = own._text() == text and all(0 <= r < math.inf for r in budgets.values())
            message = digest(b"isthmus testimony", text)
            valid &= Verifier().verify(by, bytes.fromhex(signature.decode()), message)
            entry = signed_bytes(own.head[:HASH])
            valid &= not head or Verifier().verify(of, head[KEY:], entry)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            valid = False
        if not valid:
            raise LedgerError(
                f"{path} is not a statement that a site has signed. Ask the site for another one: "
                "isthmus ledger testify HOME NAME -o FILE."
            )
        return own


def restore(
    path: str | os.PathLike[str],
    identity: Identity,
    testimonies: Iterable[WitnessStatement],
    everything: float = 0.0,
) -> list[str]:
    """Count in a restored ledger what left after its backup was taken.

    Of every study in which others remember a round that the ledger lacks, the whole budget counts
    as spent, and every such round as asked and answered. The site answers no more in these studies.

    Parameters
    ----------
    everything
        A budget, as ρ, to count as spent because not all others have stated what they remember.

    Returns
    -------
    list
        The studies in which something was missing.
    """
    testimonies = list(testimonies)
    with FolderLock(Path(path).parent, "the restoration of the ledger"):
        ledger = FileLedger(path)
        ledger.bind(identity)
        entries = ledger.entries()
        own: dict[str, set[int]] = {}
        for entry in entries:
            own.setdefault(entry.get("study", ""), set()).add(entry.get("round", 0))
        spent, hashes = Spending.of(entries).costs, {e["hash"] for e in entries}
        lost = {e["missing"] for e in entries if "missing" in e}
        heads = sorted(({t.head[:HASH] for t in testimonies} | lost) - hashes - {""})
        missing: dict[str, set[int]] = {}
        for testimony in testimonies:
            for study, rounds in testimony.rounds.items():
                if more := set(rounds) - own.get(study, set()):
                    missing.setdefault(study, set()).update(more)
        for study, more in missing.items():
            budget = max(t.budgets.get(study, 0.0) for t in testimonies)
            rest = max(budget - spent.get(study, 0.0), 0.0)
            for number in sorted(more):
                costs = {"rho": rest, "answer": RESTORED.name} if rest else {}
                asked = f"{RESTORED.name} {number}"
                ledger.append(RESTORED.name, study=study, round=number, asked=asked, **costs)
                rest = 0.0
        counted = {"rho": everything, "answer": RESTORED.name} if everything else {}
        ledger.append(
            RESTORED.name, study=EVERYTHING, round=0, asked=RESTORED.name, restored=heads, **counted
        )
        return sorted(missing)
