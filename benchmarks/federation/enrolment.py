"""An afternoon with N hospitals: enrolment and the first network, by the documented commands.

    python benchmarks/federation/enrolment.py 30 [ROWS]
    python benchmarks/federation/enrolment.py 100 [ROWS] threads

Every command is a process, or a thread of this one. The script plays the people: it waits until all
of them see a code, checks that it is the same, and types it. It prints how many commands there
were, the seconds of both parts, and the memory of the processes: the largest resident memory, and
the proportional share (PSS), which divides pages that several processes map by their number.
"""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import IO, Any

from isthmus_joint.transport.certificates import free_port

COMMAND = [sys.executable, "-c", "from isthmus.cli import main; raise SystemExit(main())"]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
BOUNDS = {"age": (0, 120), "weight": (0, 300), "pressure": (0, 300), "stay": (-100, 400)}
CODE = re.compile(r"The code of this roster is (\S+)")


class Streams(threading.local):
    """The standard streams of a command in a thread."""

    stdin: IO[str] = sys.stdin
    log: IO[str] = Path(os.devnull).open("w")  # noqa: SIM115 - until the end


class OwnStream(io.TextIOBase):
    """Stands for a standard stream of every thread."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]
        return self._streams.stdin.readline(-1 if size is None else size)

    def write(self, text: str, /) -> int:
        return self._streams.log.write(text)

    def flush(self) -> None:
        self._streams.log.flush()


class Thread(threading.Thread):
    """A command in a thread, with as much of the interface of a process as is needed here."""

    streams = Streams()
    pid = os.getpid()

    def __init__(self, arguments: list[str], log: Path) -> None:
        super().__init__(daemon=True)
        from isthmus.cli import main as command

        self._command, self._arguments, self._log = command, arguments, log
        read, write = os.pipe()
        self._input, self.stdin = os.fdopen(read), os.fdopen(write, "wb")
        self.code: int | None = None
        self.start()

    @classmethod
    def prepare(cls) -> None:
        """Give each thread streams of its own; signals belong to the main thread."""
        sys.stdin = sys.stdout = sys.stderr = OwnStream(cls.streams)
        signal.signal = lambda *_: None

    def run(self) -> None:
        with self._log.open("a") as log, self._input:
            self.streams.stdin, self.streams.log = self._input, log
            self.code = self._command(self._arguments)

    def poll(self) -> int | None:
        return self.code

    def wait(self, timeout: float) -> int | None:
        self.join(timeout)
        return self.code


class Afternoon:
    """Folders and processes of hospitals and a coordinator, all on this machine."""

    def __init__(self, folder: Path, number: int, rows: int, *, threads: bool) -> None:
        self.folder, self.commands, self._threads = folder, 0, threads
        self.names = [f"h{i:03}" for i in range(number)]
        self.running: dict[str, subprocess.Popen[bytes] | Thread] = {}
        for name in self.names:
            (folder / name).mkdir()
            write_table(folder / name / "table.csv", name, rows)

    def start(self, name: str, *arguments: object) -> subprocess.Popen[bytes] | Thread:
        """Start a command of a party; it writes to NAME.log."""
        self.commands += 1
        given, path = [str(a) for a in arguments], self.folder / f"{name}.log"
        if self._threads:
            self.running[name] = Thread(given, path)
            return self.running[name]
        with path.open("ab") as log:
            found = subprocess.Popen(
                [*COMMAND, *given],
                cwd=self.folder,
                env=os.environ | ONE_THREAD,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        self.running[name] = found
        return found

    def run(self, name: str, *arguments: object) -> None:
        self.ended(name, self.start(name, *arguments))

    def ended(self, name: str, process: subprocess.Popen[bytes] | Thread) -> None:
        if process.wait(1800) != 0:
            raise SystemExit(f"{name}: {self.log(name)}")

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def enrol(self, port: int) -> None:
        """Three commands of the leading site, one of each site, and one call of all people."""
        variables = [a for n, b in BOUNDS.items() for a in ("--continuous", n, *b)]
        lead, study, file = (self.folder / n for n in ("lead", "study", "variables.toml"))
        self.run("lead", "study", "variables", "-o", file, *variables)
        self.run("lead", "coordinator", "new", lead, "--host", "127.0.0.1", "--port", port)
        invitation = (lead / "invitation").read_text().strip()
        author = self.folder / self.names[0] / "home" / "identity.pem"
        desk = self.start(
            *("lead", "coordinator", "draft", lead, study, "--author", author, "--exact"),
            *("--title", "Stay", "--purpose", "a measurement", "--variables", file),
            *("--sites", len(self.names)),
        )
        sites = {}
        for name in self.names:
            own = self.folder / name
            sites[name] = self.start(
                *(name, "site", "enrol", own / "home", own / "study", invitation, "--exact"),
                *("--data", own / "table.csv", "--name", name, "--organisation", f"Org {name}"),
            )
        self.call()
        for name, process in sites.items():
            self.ended(name, process)
        self.ended("lead", desk)

    def call(self) -> None:
        """Everybody reads the code aloud, and types it if all codes are the same."""
        codes: set[str] = set()
        for name in self.names:
            while (found := CODE.search(self.log(name))) is None:
                if self.running[name].poll() is not None:
                    raise SystemExit(f"{name}: {self.log(name)}")
                time.sleep(0.1)
            codes.add(found[1])
        (code,) = codes
        for name in self.names:
            stdin = self.running[name].stdin
            assert stdin is not None
            stdin.write(f"{code}\n".encode())
            stdin.close()

    def learn(self) -> dict[str, list[int]]:
        """One command of each site and one of the coordinator; return memory in kB."""
        for name in self.names:
            own = self.folder / name
            self.start(name, "site", "join", own / "home", own / "study")
        lead, study, network = (self.folder / n for n in ("lead", "study", "network.csv"))
        run = self.start("lead", "coordinator", "run", lead, study, "-o", network)
        memory: dict[str, int] = {}
        while run.poll() is None:
            memory = memory_of(run.pid) or memory
            time.sleep(0.2)
        self.ended("lead", run)
        if self._threads:
            return {"everything": [memory["VmHWM"], memory["Pss"]]}
        found = [memory_of(self.running[name].pid) for name in self.names]
        return {
            "coordinator": [memory["VmHWM"], memory["Pss"]],
            "largest site": [max(m["VmHWM"] for m in found), max(m["Pss"] for m in found)],
        }

    def close(self) -> None:
        for process in self.running.values():
            if isinstance(process, subprocess.Popen) and process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def memory_of(process: int) -> dict[str, int]:
    """Return the largest resident memory, and the proportional share, in kB."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
        text += Path(f"/proc/{process}/smaps_rollup").read_text()
    except (OSError, ProcessLookupError):
        return {}
    found = {k: re.search(rf"^{k}:\s+(\d+)", text, re.MULTILINE) for k in ("VmHWM", "Pss")}
    return {k: int(v[1]) for k, v in found.items() if v is not None}


def write_table(path: Path, name: str, rows: int) -> None:
    draw = random.Random(name)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(BOUNDS)
        for _ in range(rows):
            age, weight = draw.gauss(60, 12), draw.gauss(80, 15)
            pressure = 80 + 0.6 * age + 0.3 * weight + draw.gauss(0, 8)
            table.writerow([age, weight, pressure, 0.05 * pressure + draw.gauss(0, 1.5)])


def main(number: int, rows: int, *, threads: bool) -> None:
    out = sys.stdout
    if threads:
        Thread.prepare()
    with tempfile.TemporaryDirectory(prefix="ist", ignore_cleanup_errors=True) as folder:
        world = Afternoon(Path(folder), number, rows, threads=threads)
        try:
            begun = time.monotonic()
            world.enrol(free_port())
            enrolled = time.monotonic()
            memory = world.learn()
            ended = time.monotonic()
        finally:
            world.close()
        found: dict[str, Any] = {
            "sites": number,
            "commands": world.commands,
            "enrolment s": round(enrolled - begun, 1),
            "network s": round(ended - enrolled, 1),
            "CPU s": round(sum(os.times()[:4]), 1),
            "resident and proportional MB": {
                who: [round(kb / 1024) for kb in sizes] for who, sizes in memory.items()
            },
        }
        print(json.dumps(found), file=out, flush=True)
    os._exit(0)  # sites in threads keep running


if __name__ == "__main__":
    given = [a for a in sys.argv[1:] if a != "threads"]
    main(int(given[0]), int(given[1]) if given[1:] else 200, threads="threads" in sys.argv)
