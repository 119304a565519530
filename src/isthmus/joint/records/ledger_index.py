"""What the rules of a site ask about the entries of a ledger, without reading all of them again."""

from __future__ import annotations

from typing import final

from isthmus.joint.agreement.protocol_catalogue import known_event
from isthmus.joint.records.ledger_entries import Entry
from isthmus.joint.records.ledger_tally import LedgerTally
from isthmus.joint.records.ledger_verification import remember


@final
class LedgerIndex:
    """Facts about entries, which each new entry updates.

    Every question to a site needs these facts. Collecting them from all entries would make each
    question slower than the one before.

    Attributes
    ----------
    tally
        Counts of questions, openings and statistics.
    hashes
        The hashes of all entries.
    heads
        The last head of each other party's ledger, by key.
    signed_heads
        The last of these that its owner has signed, with the signature behind it.
    fingerprints
        Fingerprints of the data of statistics, by the name of the event.
    results
        The names of the sites behind each result.
    noisy
        The entries about answers with noise.
    answers
        Hash of the kept answer with noise to each question.
    """

    def __init__(self) -> None:
        self.tally = LedgerTally()
        self.hashes: set[str] = set()
        self.heads: dict[str, str] = {}
        self.signed_heads: dict[str, str] = {}
        self.fingerprints: dict[str, set[str]] = {}
        self.results: set[tuple[str, ...]] = set()
        self.noisy: list[Entry] = []
        self.answers: dict[str, str] = {}

    def add(self, entry: Entry) -> None:
        """Add one more entry."""
        self.tally.add(entry)
        self.hashes.add(entry["hash"])
        remember(self.heads, entry)
        signed = entry.get("head_signatures", {})
        remember(
            self.signed_heads,
            {
                field: {k: h + signed[h] for k, h in entry.get(field, {}).items() if h in signed}
                for field in ("seen", "heads")
            },
        )
        if "data" in entry:
            self.fingerprints.setdefault(entry["event"], set()).add(entry["data"])
        if known_event(entry["event"]).reveals_result:
            self.results.add(tuple(entry.get("sites", ())))
        if "rho" in entry:
            self.noisy.append(entry)
        if "answer" in entry:
            self.answers.setdefault(entry["asked"], entry["answer"])
