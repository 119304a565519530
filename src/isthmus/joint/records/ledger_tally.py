"""Counts over the entries of a ledger, which each new entry updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Self, final

from isthmus.joint.agreement.protocol_catalogue import known_event
from isthmus.joint.records.ledger_entries import Entry

Place = tuple[Any, Any]


@final
class LedgerTally:
    """Numbers of rounds and queries in the entries of a ledger, for limits on them.

    A question is counted once until it has been answered, and then once per answer. So a question
    that is asked again after a round in which nothing was sent does not count again.

    Attributes
    ----------
    questions
        Number of questions, including refused ones.
    openings
        How often a round was opened, including repeated questions.
    statistics
        How many statistics were sent.
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
        if event.sends_statistic:
            self.statistics += 1
            question = self._asked.get(place, place)
            self._answers[question] += 1
            if question in self._known and self._answers[question] > 1:
                self.questions += 1
