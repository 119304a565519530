"""An afternoon with N hospitals: enrolment and the first network, by the documented commands.

    python benchmarks/federation/enrolment.py 30 [ROWS]

Every command is a process. The script plays the people: it waits until all of them see a code,
checks that it is the same, and types it. It prints how many commands there were, the seconds of
both parts, and the memory of the processes: the largest resident memory, and the proportional
share (PSS), which divides pages that several processes map by their number.
"""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from isthmus_joint.transport.certificates import free_port

COMMAND = [sys.executable, "-c", "from isthmus.cli import main; raise SystemExit(main())"]
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
BOUNDS = {"age": (0, 120), "weight": (0, 300), "pressure": (0, 300), "stay": (-100, 400)}
CODE = re.compile(r"The code of this roster is (\S+)")


class Afternoon:
    """Folders and processes of hospitals and a coordinator, all on this machine."""

    def __init__(self, folder: Path, number: int, rows: int) -> None:
        self.folder, self.commands = folder, 0
        self.names = [f"h{i:03}" for i in range(number)]
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for name in self.names:
            (folder / name).mkdir()
            write_table(folder / name / "table.csv", name, rows)

    def start(self, name: str, *arguments: object) -> subprocess.Popen[bytes]:
        """Start a command in the folder of a party; it writes to NAME.log."""
        self.commands += 1
        with (self.folder / f"{name}.log").open("ab") as log:
            found = subprocess.Popen(
                [*COMMAND, *map(str, arguments)],
                cwd=self.folder / name if name in self.names else self.folder,
                env=os.environ | ONE_THREAD,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        self.running[name] = found
        return found

    def run(self, name: str, *arguments: object) -> None:
        self.ended(name, self.start(name, *arguments))

    def ended(self, name: str, process: subprocess.Popen[bytes]) -> None:
        if process.wait(1800) != 0:
            raise SystemExit(f"{name}: {self.log(name)}")

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def enrol(self, port: int) -> None:
        """Three commands of the leading site, one of each site, and one call of all people."""
        variables = [a for n, b in BOUNDS.items() for a in ("--continuous", n, *b)]
        self.run("lead", "study", "variables", "-o", "variables.toml", *variables)
        self.run("lead", "coordinator", "new", "lead", "--host", "127.0.0.1", "--port", port)
        invitation = (self.folder / "lead" / "invitation").read_text().strip()
        desk = self.start(
            *(
                "lead",
                "coordinator",
                "draft",
                "lead",
                "study",
                "--author",
                f"{self.names[0]}/home/identity.pem",
            ),
            *("--title", "Stay", "--purpose", "a measurement", "--variables", "variables.toml"),
            *("--exact", "--sites", len(self.names)),
        )
        sites = {
            name: self.start(
                *(
                    name,
                    "site",
                    "enrol",
                    "home",
                    "study",
                    invitation,
                    "--data",
                    "table.csv",
                    "--exact",
                ),
                *("--name", name, "--organisation", f"Hospital {name}"),
            )
            for name in self.names
        }
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
            self.start(name, "site", "join", "home", "study")
        run = self.start("lead", "coordinator", "run", "lead", "study", "-o", "network.csv")
        memory: dict[str, int] = {}
        while run.poll() is None:
            memory = memory_of(run.pid) or memory
            time.sleep(0.2)
        self.ended("lead", run)
        found = [memory_of(self.running[name].pid) for name in self.names]
        return {
            "coordinator": [memory["VmHWM"], memory["Pss"]],
            "largest site": [max(m["VmHWM"] for m in found), max(m["Pss"] for m in found)],
        }

    def close(self) -> None:
        for process in self.running.values():
            if process.poll() is None:
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


def main(number: int, rows: int = 200) -> None:
    with tempfile.TemporaryDirectory(prefix="ist") as folder:
        world = Afternoon(Path(folder), number, rows)
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
            "resident and proportional MB": {
                who: [round(kb / 1024) for kb in sizes] for who, sizes in memory.items()
            },
        }
        print(json.dumps(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
