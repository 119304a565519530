"""What a party remembers of its runs, so that a crash reveals nothing twice in different ways."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import AbortedError
from isthmus.joint.records.journal import Journal

Decisions = dict[str, Any]
"""Each revealed value by the name of the decision, in the order in which they were revealed."""


@final
@dataclass(frozen=True)
class PastRun:
    """The latest run of a party.

    Attributes
    ----------
    number
        Its number; zero before the first run.
    finished
        Whether it came to its end, or can never be resumed.
    rows
        How many people both parties have; zero before that is known.
    """

    number: int = 0
    finished: bool = True
    rows: int = 0
    decisions: Decisions = field(default_factory=dict)


@final
@dataclass(frozen=True)
class NextRun:
    """The run that both parties agree on.

    Attributes
    ----------
    known
        Values that an earlier attempt at this run revealed to one of the parties.
    rows
        How many people both parties have, if both of them still know who they are; else zero.
    """

    number: int
    known: Decisions
    rows: int


@final
class RunJournal:
    """The journal of a party's runs in one study."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def past(self) -> PastRun:
        """Return the latest run."""
        run = PastRun()
        for record in self._journal.records():
            number = int(record["run"])
            if number != run.number:
                run = PastRun(number, finished=False)
            rows = int(record.get("rows", run.rows))
            finished = run.finished or "end" in record
            decisions = run.decisions
            if "decision" in record:
                decisions = decisions | {str(record["decision"]): record["value"]}
            run = PastRun(number, finished, rows, decisions)
        return run

    def open(self, number: int) -> None:
        """Write that a run begins."""
        if self.past().number != number:
            self._journal.append({"run": number})

    def align(self, number: int, positions: NDArray[np.intp], people: int) -> None:
        """Write how rows are aligned, and how many people are common."""
        text = base64.b64encode(positions.astype("<i8").tobytes()).decode()
        self._journal.append({"run": number, "rows": people, "positions": text})

    def positions(self, number: int) -> NDArray[np.intp] | None:
        """Return how rows are aligned, if that is known for this run."""
        for record in reversed(self._journal.records()):
            if record["run"] == number and "positions" in record:
                data = base64.b64decode(record["positions"])
                return np.frombuffer(data, dtype="<i8").astype(np.intp)
        return None

    def decide(self, number: int, decision: str, value: Any) -> None:
        """Write what was revealed."""
        if decision not in self.past().decisions:
            self._journal.append({"run": number, "decision": decision, "value": value})

    def end(self, number: int, how: str) -> None:
        """Write that a run is over and cannot be resumed."""
        self._journal.append({"run": number, "end": how})


def next_run(own: PastRun, other: PastRun, name: str) -> NextRun:
    """Return the run that follows from what both parties remember.

    Raises
    ------
    AbortedError
        The two journals contradict each other.
    """
    open_runs = {run.number for run in (own, other) if not run.finished}
    latest = max(own.number, other.number)
    if not open_runs:
        return NextRun(latest + 1, {}, 0)
    if open_runs != {latest}:
        raise AbortedError(
            f"This party and {name!r} remember different runs ({own.number} and {other.number}). "
            "One of the journals was lost or replaced: restore it, or draft a new study.",
            reason="other journal",
        )
    runs = [run for run in (own, other) if run.number == latest]
    known: Decisions = {}
    for run in runs:
        for decision, value in run.decisions.items():
            if known.setdefault(decision, value) != value:
                raise AbortedError(
                    f"This party and {name!r} remember different results of {decision!r}. Nothing "
                    "more is revealed. One of the journals was replaced: draft a new study.",
                    reason="other journal",
                )
    rows = {run.rows for run in runs}
    if len(rows) == 2 and 0 not in rows:
        raise AbortedError(
            f"This party and {name!r} remember different numbers of common people "
            f"({own.rows} and {other.rows}). Draft a new study.",
            reason="other number of rows",
        )
    return NextRun(latest, known, rows.pop() if len(runs) == 2 and len(rows) == 1 else 0)
