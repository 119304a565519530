"""What programs watch a site or a coordinator by: metrics, health, and logs as JSON.

Nothing here carries data: a log line has only the fields of `LOGGED`, and metrics count entries and
answers. Metrics are off unless a port is named.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, final

from isthmus.cli.parsing import host_and_port
from isthmus_joint.commands.arguments import LOOPBACK

LOGGED = ("number", "event", "round", "why")
"""Fields of a ledger entry that a log line may have: none of them depends on a value of a table."""

TYPES = {"_total": "counter"}
SILENCE = 30.0
"""Seconds for a program to send its request."""


class Figure(NamedTuple):
    """A metric: its name, its meaning, and its value for each set of labels."""

    name: str
    meaning: str
    values: Mapping[tuple[tuple[str, str], ...], float]


def single(name: str, meaning: str, value: float) -> Figure:
    """Return a metric without labels."""
    return Figure(name, meaning, {(): value})


def labelled(name: str, meaning: str, label: str, values: Mapping[str, float]) -> Figure:
    """Return a metric with one label."""
    return Figure(name, meaning, {((label, key),): value for key, value in values.items()})


def exposition(figures: Iterable[Figure]) -> str:
    """Return metrics in the text format of Prometheus, version 0.0.4."""
    lines = []
    for name, meaning, values in figures:
        kind = next((t for end, t in TYPES.items() if name.endswith(end)), "gauge")
        lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
        for labels, value in values.items():
            shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels)
            lines.append(f"{name}{{{shown}}} {value!r}" if shown else f"{name} {value!r}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def process_figures() -> list[Figure]:
    """Return what Prometheus expects of every process, under its usual names."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    kilobytes = pages * os.sysconf("SC_PAGE_SIZE")
    return [
        single("process_resident_memory_bytes", "Resident memory.", kilobytes),
        single("process_cpu_seconds_total", "CPU time.", time.process_time()),
        single("process_start_time_seconds", "When the process started.", _STARTED),
    ]


_STARTED = time.time()


@final
class SiteWatch:
    """What is known about the process of a site.

    Parameters
    ----------
    as_json
        Write log lines in JSON to standard error, instead of lines for people to standard output.
    """

    def __init__(
        self, home: Path, study: Any, stop_file: Path, say: Callable[[str], None], *, as_json: bool
    ) -> None:
        self._home, self._study, self._stop_file = home, study, stop_file
        self._say, self._as_json = say, as_json
        self._entries: dict[str, float] = {}
        self._refused: dict[str, float] = {}
        self._connected = False
        self._last = 0.0

    def say(self, text: str) -> None:
        """Take a line about the connection, or for people."""
        if text.startswith(("connected to", "not connected to")):
            self._connected = text.startswith("connected")
            if self._as_json:
                log("connected" if self._connected else "disconnected", why=text)
        if not self._as_json:
            self._say(text)

    def entry(self, entry: Mapping[str, Any]) -> None:
        """Take an entry of the ledger."""
        from isthmus_joint.records.ledger import readable

        event = str(entry["event"])
        self._entries[event] = self._entries.get(event, 0.0) + 1.0
        if event == "refused":
            why = str(entry.get("why", ""))
            self._refused[why] = self._refused.get(why, 0.0) + 1.0
        self._last = time.time()
        self.say(readable([entry]))
        if self._as_json:
            study = self._study.identity.hex()[:16]
            log("ledger", study=study, **{k: entry[k] for k in LOGGED if k in entry})

    def problem(self) -> str:
        """Return why the site does not answer; nothing if it does."""
        if self._stop_file.exists():
            return "stop file"
        if datetime.now(UTC) >= self._study.expires:
            return "study expired"
        return "" if self._connected else "not connected"

    def figures(self) -> list[Figure]:
        """Return the metrics."""
        free = shutil.disk_usage(self._home).free
        expires = self._study.expires.timestamp()
        return [
            single("isthmus_site_connected", "1 with a connection.", float(self._connected)),
            single("isthmus_site_stopped", "1 with a stop file.", float(self._stop_file.exists())),
            labelled(
                *("isthmus_site_ledger_entries_total", "Entries since the start."),
                *("event", dict(self._entries)),
            ),
            labelled(
                *("isthmus_site_refusals_total", "Refusals since the start."),
                *("why", dict(self._refused)),
            ),
            single("isthmus_site_last_entry_timestamp_seconds", "Last ledger entry.", self._last),
            single("isthmus_site_study_expires_timestamp_seconds", "End of the study.", expires),
            single("isthmus_site_free_bytes", "Free space for the ledger.", float(free)),
        ]


def log(kind: str, /, **fields: Any) -> None:
    """Write a line of the log: a JSON document."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = json.dumps({"time": now, "log": kind, **fields}, ensure_ascii=False, default=str)
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def add_operation_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of processes that programs watch."""
    parser.add_argument(
        "--metrics",
        type=metrics_address,
        metavar="[HOST:]PORT",
        help="serve metrics for Prometheus at /metrics, and /health and /ready; on this machine "
        "only, unless HOST is given",
    )
    parser.add_argument(
        "--log",
        choices=["text", "json"],
        default="text",
        help="json: a line of JSON to standard error per event, without any data; by default text",
    )


def metrics_address(given: str) -> tuple[str, int]:
    """Read an address to serve metrics at; only this machine reaches a port without a host."""
    address = host_and_port(f"{LOOPBACK}:{given}" if given.isdecimal() else given)
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


@contextmanager
def watched(
    address: tuple[str, int] | None,
    figures: Callable[[], list[Figure]],
    problem: Callable[[], str],
) -> Iterator[None]:
    """Serve metrics while the context is open, if there is an address.

    ``/health`` answers 200 as long as the process runs: a supervisor must not restart a site
    because its coordinator is away. ``/ready`` answers 503 with the reason if nothing is answered.
    """
    if address is None:
        yield
        return
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Pages(BaseHTTPRequestHandler):
        timeout = SILENCE

        def do_GET(self) -> None:
            why = problem()
            pages = {
                "/metrics": (200, exposition([*figures(), *process_figures()])),
                "/health": (200, "running\n"),
                "/ready": (503, f"{why}\n") if why else (200, "ready\n"),
            }
            code, text = pages.get(self.path, (404, "/metrics, /health and /ready are served\n"))
            self.send_response(code)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            """Write no line per scrape."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing about programs that leave early."""

    server = Server(address, Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
