"""A signed study of two companies from end to end, by the command line: CPU time and memory.

    nice python benchmarks/vertical/signed.py PEOPLE VARIABLES

Both companies have the same people, in different orders, so identifiers are compared, rows are
aligned and parents are chosen for all of them. The network must be that of K2 on the joined table.
CPU time and memory are sums over the processes of a company, looked at twice a second. Results are
appended to benchmarks/results/vertical-signed.jsonl.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
RESULTS = ROOT / "benchmarks" / "results" / "vertical-signed.jsonl"
BOTH = ("bank", "shop")
PARENTS = 2
PATIENCE = 4 * 3600.0
PAUSED = 25


class Meter:
    """Adds up what a process and all that it has started use, twice a second."""

    def __init__(self, process: int) -> None:
        self.gigabytes = 0.0
        self._process = process
        self._ticks: dict[int, int] = {}

    @property
    def cpu(self) -> float:
        return sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")

    def look(self) -> None:
        parents, pages, ticks = {}, {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            one = int(folder.name)
            parents[one], pages[one] = int(fields[1]), int(fields[21])
            ticks[one] = int(fields[11]) + int(fields[12])
        total = 0
        for one in pages:
            ancestor = one
            while ancestor not in (self._process, 0):
                ancestor = parents.get(ancestor, 0)
            if ancestor == self._process:
                total += pages[one]
                self._ticks[one] = ticks[one]
        self.gigabytes = max(self.gigabytes, total * os.sysconf("SC_PAGE_SIZE") / 1e9)


def watch(meters: Iterable[Meter], ended: threading.Event) -> None:
    while not ended.wait(0.5):
        for meter in meters:
            meter.look()


def main(people: int, variables: int) -> None:
    import numpy as np
    from plain import greedy
    from run import simulated
    from tests.processes.companies import Companies, World

    data, levels = simulated(people, variables)
    names = [f"x{i}" for i in range(variables)]
    columns = {"bank": names[::2], "shop": names[1::2]}
    rng = np.random.default_rng(0)
    orders = {name: rng.permutation(people) for name in BOTH}

    def table(rows: Sequence[int]) -> dict[str, Any]:
        chosen = data[np.array(rows)]
        parts = {name: chosen[:, i] for i, name in enumerate(names)}
        return {"person": [f"p{i}" for i in rows], **parts}

    ended = threading.Event()
    record: dict[str, Any] = {"people": people, "variables": variables}
    with tempfile.TemporaryDirectory() as folder:
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            world = Companies(
                Path(folder),
                **orders,
                world=World(columns, dict(zip(names, levels, strict=True)), table),
                draft=["--people", str(people), str(people), "--parents", str(PARENTS)]
                + ["--order", *names],
            )
        try:
            begun = time.monotonic()
            meters: list[dict[str, Meter]] = []
            codes = (PAUSED, PAUSED)
            # A run that was paused is resumed by the same command, as its message says.
            while PAUSED in codes and len(meters) < 3:
                meters.append({n: Meter(world.start(n, stand_in=False).pid) for n in BOTH})
                threading.Thread(target=watch, args=(meters[-1].values(), ended)).start()
                codes = world.ends(PATIENCE)
            if any(codes):
                logs = [path.read_text()[-3000:] for path in sorted(Path(folder).rglob("*.log"))]
                raise SystemExit("\n\n".join(logs))
            record["seconds"] = round(time.monotonic() - begun, 1)
        finally:
            ended.set()
            world.close()
        found = set(re.findall(r"^(x\d+) → (x\d+)$", world.log("bank"), re.MULTILINE))
    wanted = {
        (names[d["best"]], names[d["child"]])
        for d in greedy(data, levels, list(range(variables)), PARENTS)
        if d["best"] is not None
    }
    if found != wanted:
        raise SystemExit(f"not the network of the joined table: {sorted(found ^ wanted)}")
    for name in BOTH:
        record[name] = {
            "cpu": round(sum(attempt[name].cpu for attempt in meters), 1),
            "gigabytes": round(max(attempt[name].gigabytes for attempt in meters), 2),
        }
    record["attempts"] = len(meters)
    record["edges"] = len(wanted)
    print(json.dumps(record))
    with RESULTS.open("a") as file:
        print(json.dumps(record), file=file)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
