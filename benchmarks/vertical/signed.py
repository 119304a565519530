"""A signed study of two companies from end to end, by the command line: CPU time and memory.

    nice python benchmarks/vertical/signed.py PEOPLE VARIABLES

Both companies have the same people, in different orders, so identifiers are compared, rows are
aligned and parents are chosen for all of them. The network must be that of K2 on the joined table.
Memory is the largest sum over the processes of a company, looked at twice a second. Results are
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
from collections.abc import Sequence
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


def gigabytes(process: int) -> float:
    """Sum the memory of a process and of all that it has started."""
    parents, pages = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            pages[int(folder.name)] = int((folder / "statm").read_text().split()[1])
        except OSError:
            continue
        parents[int(folder.name)] = parent
    total = 0
    for one in pages:
        ancestor = one
        while ancestor not in (process, 0):
            ancestor = parents.get(ancestor, 0)
        total += pages[one] if ancestor == process else 0
    return total * os.sysconf("SC_PAGE_SIZE") / 1e9


def watch(processes: dict[str, Any], most: dict[str, float], ended: threading.Event) -> None:
    while not ended.wait(0.5):
        for name, process in processes.items():
            most[name] = max(most[name], gigabytes(process.pid))


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

    most, ended = dict.fromkeys(BOTH, 0.0), threading.Event()
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
            for name in BOTH:
                world.start(name, stand_in=False)
            watcher = threading.Thread(target=watch, args=(world.processes, most, ended))
            watcher.start()
            for name in BOTH:
                _, status, used = os.wait4(world.processes[name].pid, 0)
                if status:
                    raise SystemExit(world.log(name)[-3000:])
                record[name] = {"cpu": round(used.ru_utime + used.ru_stime, 1)}
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
        record[name]["gigabytes"] = round(most[name], 2)
    record["edges"] = len(wanted)
    print(json.dumps(record))
    with RESULTS.open("a") as file:
        print(json.dumps(record), file=file)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
