"""Private K2 of two processes that need not trust each other's program: figures and attacks.

    export MP_SPDZ=/path/to/MP-SPDZ            # with tinier-party.x, and semi-bin-party.x if wanted
    python benchmarks/vertical/malicious/run.py run ROWS VARIABLES [MACHINE]
    python benchmarks/vertical/malicious/run.py house ROWS VARIABLES
    python benchmarks/vertical/malicious/run.py attack [MACHINE]

`run` computes K2 of random 0/1 columns on the engine, and compares every decision with the joined
table. `house` is the semi-honest mode on the same columns; it needs the extra vertical. In
`attack`, the first party runs a changed program. Each prints one line of JSON; see
benchmarks/results/vertical-malicious.md.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]

from clear import decoded, pooled  # noqa: E402
from pairs import run_jobs, written  # noqa: E402
from plain import random_network  # noqa: E402

from isthmus_joint.transport.certificates import free_port  # noqa: E402

MINIMUM = 5
PATIENCE = 3600


def simulated(rows: int, variables: int) -> Any:
    rng = np.random.default_rng([rows, variables, 30])
    return random_network(rng, rows, [2] * variables)


def compiled(rows: int, variables: int, *more: str) -> str:
    """Compile the circuit if it is not there, and return its name."""
    arguments = [str(rows), str(variables), str(MINIMUM), *more]
    name = "-".join(["k2", *arguments])
    schedule = Path(os.environ["MP_SPDZ"]) / "Programs" / "Schedules" / f"{name}.sch"
    sources = [HERE / "k2.mpc", HERE / "pieces.py"]
    if schedule.exists() and all(f.stat().st_mtime < schedule.stat().st_mtime for f in sources):
        return name
    environment = os.environ | {"PYTHONPATH": str(HERE)}
    command = [sys.executable, "compile.py", "-B", "64", str(HERE / "k2.mpc"), *arguments]
    subprocess.run(command, cwd=os.environ["MP_SPDZ"], env=environment, check=True)
    return name


def parties(
    programs: tuple[str, str], machine: str, data: Any, folder: Path, ports: tuple[int, ...]
) -> list[subprocess.Popen[str]]:
    """Start both parties, each with its own program and columns."""
    started = []
    hosts = folder / "hosts"
    hosts.write_text("".join(f"127.0.0.1:{port}\n" for port in ports))
    for rank in (0, 1):
        own = data[:, rank::2]
        numbers = own @ (1 << np.arange(own.shape[1]))
        (folder / f"input-P{rank}-0").write_text(" ".join(map(str, numbers)))
        command = [f"./{machine}-party.x", "-p", str(rank), "-N", "2", "-v", "-OF", "."]
        command += ["-ip", str(hosts), "-IF", str(folder / "input"), programs[rank]]
        started.append(
            subprocess.Popen(
                command,
                cwd=os.environ["MP_SPDZ"],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    return started


def finished(processes: list[subprocess.Popen[str]], patience: float) -> list[str]:
    """Wait for both; a party whose partner has ended is given a moment."""
    texts = ["", ""]

    def read(rank: int) -> None:
        stream = processes[rank].stdout
        assert stream is not None
        texts[rank] = stream.read()

    threads = [threading.Thread(target=read, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + patience
    while any(p.poll() is None for p in processes) and time.monotonic() < end:
        if any(p.poll() is not None for p in processes):
            end = min(end, time.monotonic() + 20)
        time.sleep(0.05)
    for p in processes:
        p.kill()
        p.wait()
    for thread in threads:
        thread.join()
    return texts


def run(rows: int, variables: int, machine: str = "tinier") -> None:
    data = simulated(rows, variables)
    program = compiled(rows, variables)
    ports = free_port(), free_port()
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        processes = parties((program, program), machine, data, Path(folder), ports)
        texts = finished(processes, PATIENCE)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert [p.returncode for p in processes] == [0, 0], texts
    allowed, found = decoded(texts[0].splitlines())
    expected, margin = pooled(data)
    assert allowed
    assert found == expected, (found, expected)
    sent = re.search(r"Global data sent = ([\d.e+]+) MB", texts[0])
    rounds = re.search(r"in ~(\d+) rounds", texts[0])
    assert sent is not None
    figures = {
        "seconds": round(seconds, 1),
        "cpu": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "megabytes": float(sent[1]),
        "rounds": int(rounds[1]) if rounds else None,
        # The larger party; unknown if compiling has taken more.
        "gigabytes": round(after.ru_maxrss / 1e6, 2)
        if after.ru_maxrss > before.ru_maxrss
        else None,
        "closest": round(margin, 3),
    }
    size = {"machine": machine, "rows": rows, "variables": variables}
    print(json.dumps({**size, **figures, "edges": edges(found)}))


def edges(found: dict[int, list[int | None]]) -> int:
    return sum(p is not None for steps in found.values() for p in steps)


def house(rows: int, variables: int) -> None:
    data = simulated(rows, variables)
    names = [f"x{i}" for i in range(variables)]
    job = {"name": "house", "task": "k2", "score": "k2", "parents": 2, "order": names}
    owners = [i % 2 for i in range(variables)]
    with tempfile.TemporaryDirectory() as folder:
        (reports,) = run_jobs([written(job, names, data, [2] * variables, owners, Path(folder))])
    expected, _ = pooled(data)
    steps: dict[int, list[int | None]] = {}
    for child, parent in reports[0]["steps"]:
        steps.setdefault(int(child[1:]), []).append(None if parent is None else int(parent[1:]))
    assert {c: (s + [None])[:2] for c, s in steps.items()} == expected
    figures = {
        "seconds": round(max(r["seconds"] for r in reports), 1),
        "cpu": round(sum(r["cpu"] for r in reports), 1),
        "megabytes": round(sum(r["sent"] for r in reports) / 1e6, 1),
        "messages": sum(r["messages"] for r in reports),
        "gigabytes": round(max(r["memory"] for r in reports) / 1e6, 2),
    }
    size = {"machine": "house", "rows": rows, "variables": variables}
    print(json.dumps({**size, **figures, "edges": edges(expected)}))


def attack(machine: str = "tinier") -> None:
    """The first party inverts its share of a score, as it likes; the second one is unchanged."""
    data = simulated(100, 3)
    expected, _ = pooled(data)
    ports = free_port(), free_port()
    programs = (compiled(100, 3, "deviate"), compiled(100, 3))
    with tempfile.TemporaryDirectory() as folder:
        processes = parties(programs, machine, data, Path(folder), ports)
        text = finished(processes, 300)[1]
    outcome = f"no result: {text.strip().splitlines()[-1]}"
    if processes[1].returncode == 0:
        right = decoded(text.splitlines()) == (True, expected)
        outcome = "right result" if right else "wrong result"
    print(json.dumps({"machine": machine, "the unchanged party gets": outcome}))


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    arguments = [int(word) if word.isdigit() else word for word in words]
    {"run": run, "house": house, "attack": attack}[command](*arguments)
