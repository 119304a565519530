"""The state of a run, on the terminal and in a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

from isthmus.watch import Progress
from isthmus_joint.commands.operation import Figure, labelled, log
from isthmus_joint.transport.base import SiteState

INTERVAL = 10.0
"""Seconds between lines of progress where there is no terminal."""


class RunState(StrEnum):
    """The state of a run. All but the first three are final."""

    GATHERING = "gathering"
    RUNNING = "running"
    WAITING = "waiting for silent sites"
    DONE = "done"
    PAUSED = "paused"
    ABORTED = "aborted"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@final
class RunDisplay:
    """Shows the state of each site: on a terminal as a live table, elsewhere line by line.

    Parameters
    ----------
    path
        A JSON file that always holds the current state of the run.
    as_json
        Log the states as JSON, and nothing that depends on data, such as scores.
    """

    def __init__(self, path: Path, sites: Sequence[str], *, as_json: bool = False) -> None:
        self._path, self._as_json = path, as_json
        self._run = RunState.GATHERING
        self._why = ""
        self._reason = ""
        self._sites = dict.fromkeys(sites, SiteState.AWAITED)
        self._answers = dict.fromkeys(sites, 0)
        self._text = ""
        self._next_line = 0.0
        self._said = ""
        self._live: Any = None
        self._logged: RunState | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty() and not self._as_json:
            from rich.console import Console  # which runs without a terminal do not need
            from rich.live import Live

            console = Console(stderr=True)
            self._live = Live(self._table(), console=console, auto_refresh=False)
            self._live.start()
        self._write()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def watch(self, site: str, state: SiteState) -> None:
        """Update the state of a site."""
        self._sites[site] = state
        self._answers[site] += state is SiteState.ANSWERED
        if self._run is not RunState.GATHERING:
            waiting = SiteState.AWAITED in self._sites.values()
            self._run = RunState.WAITING if waiting else RunState.RUNNING
        if self._as_json:
            log("site", site=site, state=state.value)
        quiet = self._text and state in (SiteState.ASKED, SiteState.ANSWERED)
        self._show(None if quiet else f"{site}: {state.value}")

    def state(self, run: RunState) -> None:
        """Update the state of the run."""
        self._run = run
        self._show(run.value)

    def say(self, line: str) -> None:
        """Show a message that is not a state."""
        self._said = line
        if self._live is None:
            self._show(line)
        else:
            self._live.console.print(line)

    def progress(self, state: Progress) -> None:
        """Show the progress of a search. From then on, answers of single sites are not shown."""
        self._text = state.text
        due = state.seconds >= self._next_line
        new = state.text != self._said
        if due:
            self._next_line = state.seconds + INTERVAL
            self._said = ""
        self._show(state.text if due and new else None)

    def end(self, run: RunState, why: str, reason: str = "") -> None:
        """Show and save how the run ended: a sentence, and a short name for programs."""
        self._run, self._why, self._reason = run, why, reason
        self._show(run.value)

    def problem(self) -> str:
        """Return why the run does not go on; nothing if it does."""
        return "" if self._run is RunState.RUNNING else self._run.value

    def figures(self) -> list[Figure]:
        """Return the metrics."""
        runs = {run.value: float(run is self._run) for run in RunState}
        sites = dict(self._sites)
        states: dict[tuple[tuple[str, str], ...], float] = {
            (("site", name), ("state", each.value)): float(state is each)
            for name, state in sites.items()
            for each in SiteState
        }
        answers = {name: float(number) for name, number in self._answers.items()}
        return [
            labelled("isthmus_run_state", "1 for the state of the run.", "state", runs),
            Figure("isthmus_run_site_state", "1 for the state of each site.", states),
            labelled("isthmus_run_answers_total", "Answers of each site.", "site", answers),
        ]

    def _show(self, line: str | None) -> None:
        self._write()
        if self._as_json:
            if self._run is not self._logged:
                self._logged = self._run
                log("run", state=self._run.value, why=self._reason)
        elif self._live is not None:
            self._live.update(self._table(), refresh=True)
        elif line is not None:
            sys.stderr.write(f"{datetime.now():%H:%M:%S} {line}\n")
            sys.stderr.flush()

    def _table(self) -> Any:
        from rich.table import Table

        text = f", {self._text}" if self._text else ""
        table = Table(title=f"run: {self._run.value}{text}", title_justify="left")
        for column in ("site", "state", "answers"):
            table.add_column(column)
        for name, state in self._sites.items():
            table.add_row(name, state.value, str(self._answers[name]))
        return table

    def _write(self) -> None:
        plain = {
            "state": self._run.value,
            "why": self._why,
            "reason": self._reason,
            "progress": self._text,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "sites": {name: state.value for name, state in self._sites.items()},
            "answers": self._answers,
        }
        beside = self._path.with_suffix(".new")
        beside.write_text(json.dumps(plain, indent=1), encoding="utf-8")
        beside.replace(self._path)
