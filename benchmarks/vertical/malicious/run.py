"""Private K2 of two processes that need not trust each other's program: figures and attacks.

    export MP_SPDZ=/path/to/MP-SPDZ            # with tinier-party.x, and semi-bin-party.x if wanted
    python benchmarks/vertical/malicious/run.py run ROWS VARIABLES [MACHINE]
    python benchmarks/vertical/malicious/run.py house ROWS VARIABLES
    python benchmarks/vertical/malicious/run.py attack [TRIES] [MACHINE]

`run` computes K2 of random 0/1 columns on the engine, and compares every decision with the joined
table. `house` is the semi-honest mode on the same columns; it needs the extra vertical (Python
3.11). `attack` changes one byte of what the first party sends, at a random place: this is a party
that deviates. Each prints one line of JSON; see benchmarks/results/vertical-malicious.md.
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
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path += [str(HERE), str(HERE.parent)]

from clear import decoded, pooled  # noqa: E402
from pairs import connected, free_ports, run_jobs, written  # noqa: E402
from plain import random_network  # noqa: E402

MINIMUM = 5
PATIENCE = 3600


def simulated(rows: int, variables: int) -> Any:
    rng = np.random.default_rng([rows, variables, 30])
    return random_network(rng, rows, [2] * variables)


def compiled(rows: int, variables: int) -> str:
    """Compile the circuit if it is not there, and return its name."""
    arguments = [str(rows), str(variables), str(MINIMUM)]
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
    program: str, machine: str, data: Any, folder: Path, seen: list[tuple[int, int]], *options: str
) -> list[subprocess.Popen[str]]:
    """Start both parties, each with its own columns and the ports that it knows."""
    started = []
    for rank in (0, 1):
        own = data[:, rank::2]
        numbers = own @ (1 << np.arange(own.shape[1]))
        (folder / f"input-P{rank}-0").write_text(" ".join(map(str, numbers)))
        (folder / f"hosts{rank}").write_text("".join(f"127.0.0.1:{port}\n" for port in seen[rank]))
        command = [f"./{machine}-party.x", "-p", str(rank), "-N", "2", "-v", "-OF", ".", *options]
        command += ["-ip", str(folder / f"hosts{rank}"), "-IF", str(folder / "input"), program]
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
    ports = tuple(free_ports(2))
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        processes = parties(program, machine, data, Path(folder), [ports, ports])
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
        "gigabytes": round(after.ru_maxrss / 1e6, 2),
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


class Tampering:
    """Hands on what two parties send, and changes one bit of what the first one sends.

    Parameters
    ----------
    place
        The byte, counted over all connections; none is changed if it is negative.
    """

    def __init__(self, targets: tuple[int, int], place: int, rng: np.random.Generator) -> None:
        self.place, self.sent, self.flip = place, 0, 1 << int(rng.integers(8))
        self.lock = threading.Lock()
        self.ports = tuple(free_ports(2))
        for rank in (0, 1):
            thread = threading.Thread(target=self._serve, args=(rank, targets[rank]), daemon=True)
            thread.start()

    def _serve(self, rank: int, target: int) -> None:
        import socket

        with socket.create_server(("127.0.0.1", self.ports[rank])) as server:
            while True:
                here, _ = server.accept()
                there = connected(target)
                # Whoever connects to a party's port is the other party.
                for source, goal, sender in ((here, there, 1 - rank), (there, here, rank)):
                    arguments = (source, goal, sender == 0)
                    threading.Thread(target=self._pump, args=arguments, daemon=True).start()

    def _pump(self, source: Any, goal: Any, watched: bool) -> None:
        try:
            while piece := bytearray(source.recv(1 << 18)):
                if watched:
                    with self.lock:
                        if self.sent <= self.place < self.sent + len(piece):
                            piece[self.place - self.sent] ^= self.flip
                        self.sent += len(piece)
                goal.sendall(piece)
        except OSError:
            pass
        finally:
            goal.close()
            source.close()


def attack(tries: int = 20, machine: str = "tinier") -> None:
    rows, variables = 100, 3
    data = simulated(rows, variables)
    program = compiled(rows, variables)
    expected, _ = pooled(data)
    rng = np.random.default_rng(30)
    total, patience, outcomes = 0, 300.0, Counter[str]()
    for attempt in range(tries + 1):
        own = tuple(free_ports(2))
        place = -1 if attempt == 0 else int(rng.integers(total))
        between = Tampering(own, place, rng)
        seen = [(own[0], between.ports[1]), (between.ports[0], own[1])]
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            processes = parties(program, machine, data, Path(folder), seen)
            text = finished(processes, patience)[1]
        if processes[1].returncode == 0 and "allowed" in text:
            right = decoded(text.splitlines()) == (True, expected)
            outcome = "right result" if right else "wrong result"
        else:
            outcome = "no result"
        if attempt == 0:
            assert outcome == "right result", text
            total, patience = between.sent, 3 * (time.perf_counter() - started)
        else:
            outcomes[outcome] += 1
    print(json.dumps({"machine": machine, "bytes": total, "tries": tries, **outcomes}))


if __name__ == "__main__":
    command, *words = sys.argv[1:]
    arguments = [int(word) if word.isdigit() else word for word in words]
    {"run": run, "house": house, "attack": attack}[command](*arguments)
