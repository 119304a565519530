"""What the rules of a site ask about the entries of a ledger, without reading all of them again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Self, final

from isthmus.joint.agreement.protocol_catalogue import known_event
from isthmus.joint.noise.spending import Spending
from isthmus.joint.records.events import RESTORED
from isthmus.joint.records.ledger_entries import Entry, remember

Place = tuple[Any, Any]


@final
class LedgerTally:
    """Numbers of rounds and queries in the entries of a ledger, for limits on them.

    A question is counted once until its answer is known to somebody, and then once per answer. So a
    question that is asked again after a round without a result does not count again: a site that is
    silent at a bad moment cannot use up what the others allow.

    Attributes
    ----------
    questions
        Number of questions, including refused ones.
    openings
        How often a round was opened, including repeated questions.
    statistics
        How many statistics were sent; as for questions, once until there is a result.
    last_round
        The highest round that was opened, or zero.
    earliest
        The time of the earliest entry; ``None`` if there are none.
    """

    def __init__(self) -> None:
        self.questions = 0
        self.openings = 0
        self.statistics = 0
        self.last_round = 0
        self.earliest: str | None = None
        self._asked: dict[Place, Place] = {}
        self._known: set[Place] = set()
        self._answers: Counter[Place] = Counter()
        self._pending: set[Place] = set()

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Self:
        """Count entries."""
        tally = cls()
        for entry in entries:
            tally.add(entry)
        return tally

    def add(self, entry: Entry) -> None:
        """Count one more entry."""
        event, time = known_event(entry["event"]), entry["time"]
        self.earliest = time if self.earliest is None else min(time, self.earliest)
        place = entry.get("study"), entry.get("round")
        if event.opens_round or entry.get("counted") is True:
            self.openings += 1
            self.last_round = max(self.last_round, entry.get("round", 0))
            question = place[0], entry.get("asked", place)
            self._asked[place] = question
            if question not in self._known:
                self._known.add(question)
                self.questions += max(self._answers[question], 1)
        question = self._asked.get(place, place)
        if event.sends_statistic and (event.opens_round or question not in self._pending):
            self._pending.add(question)
            self.statistics += 1
            self._answers[question] += 1
            if question in self._known and self._answers[question] > 1:
                self.questions += 1
        if event.reveals_result:
            self._pending.discard(question)


@final
class LedgerIndex:
    """Facts about entries, which each new entry updates.

    Every question to a site needs these facts. Collecting them from all entries would make each
    question slower than the one before.

    Attributes
    ----------
    heads
        The last head of each other party's ledger, by key.
    signed_heads
        The last of these that its owner has signed, with the signature behind it.
    fingerprints
        Fingerprints of the data of statistics, by the name of the event.
    received
        The entries about results that the site received.
    results
        The keys of the sites behind each result.
    studies
        The studies in which a statistic was sent.
    exact_rows
        Number of rows of the extract of each study in which exact sums were sent.
    columns
        Fingerprints of the columns shared with another party, by its organisation and by column.
    answers
        Hash of the kept answer with noise to each question.
    restored
        Whether something left that is known from others only.
    """

    def __init__(self) -> None:
        self.tally = LedgerTally()
        self.hashes: set[str] = set()
        self.heads: dict[str, str] = {}
        self.signed_heads: dict[str, str] = {}
        self.fingerprints: dict[str, set[str]] = {}
        self.received: list[Entry] = []
        self.results: set[frozenset[str]] = set()
        self.studies: set[str] = set()
        self.exact_rows: dict[str, int] = {}
        self.columns: dict[str, dict[str, set[str]]] = {}
        self.noisy: list[Entry] = []
        self.answers: dict[str, str] = {}
        self.restored = False

    def add(self, entry: Entry) -> None:
        """Add one more entry."""
        self.tally.add(entry)
        self.hashes |= {entry["hash"], *entry.get("restored", ())}
        self.restored |= entry["event"] == RESTORED.name
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
        if "result" in entry:
            self.received.append(entry)
        if known_event(entry["event"]).reveals_result:
            self.results.add(frozenset(entry.get("keys", ())))
        if known_event(entry["event"]).sends_statistic:
            self.studies.add(entry["study"])
        if "rows" in entry and "rho" not in entry:
            self.exact_rows[entry["study"]] = entry["rows"]
        if "columns" in entry:
            shared = self.columns.setdefault(entry["with"], {})
            for name, fingerprint in entry["columns"].items():
                shared.setdefault(name, set()).add(fingerprint)
        if "rho" in entry:
            self.noisy.append(entry)
        if "answer" in entry:
            self.answers.setdefault(entry["asked"], entry["answer"])

    def rho(self) -> float:
        """Return the cost of all answers with noise; repetitions cost nothing."""
        return Spending.of(self.noisy).total
