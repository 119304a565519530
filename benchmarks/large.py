"""Linear Gaussian networks of many variables: time, memory and errors.

    OPENBLAS_NUM_THREADS=1 python benchmarks/large.py --sizes 1000 2000 5000 10000 --dense 2000

Random graphs, weights of size 0.5 to 2, unit noise, 2,000 rows. `learn` reads the table and uses
`ScreenedBoss`; sizes after `--dense` are also learned with one start of `Boss` from all pairs, on
the same data. Each run has a process of its own, so that memory is its own; CPU time is that of
`learn` alone, and memory includes the data. Runs are added to results/large.json, and a run of the
same size, degree, seed and search replaces the one that is there; results/large.md shows all.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROWS = 2000
RESULTS = Path(__file__).parent / "results" / "large.md"
LEDGER = RESULTS.with_suffix(".json")
KEY = ("variables", "degree", "seed", "search")


def simulate(d: int, degree: float, seed: int) -> tuple[list[list[int]], Any]:
    """Draw a graph with exactly ``d * degree / 2`` edges, and columns, in rows of an array."""
    import numpy as np

    rng = np.random.default_rng(seed)
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < int(d * degree / 2):
        a, b = sorted(rng.integers(0, d, 2).tolist())
        if a != b:
            pairs.add((a, b))
    place = rng.permutation(d).tolist()
    parents: list[list[int]] = [[] for _ in range(d)]
    columns = rng.standard_normal((d, ROWS))
    for a, b in sorted(pairs, key=lambda pair: pair[1]):
        weight = rng.uniform(0.5, 2.0) * rng.choice([-1.0, 1.0])
        columns[place[b]] += weight * columns[place[a]]
        parents[place[b]].append(place[a])
    return parents, columns


def measure(d: int, degree: float, seed: int, *, dense: bool) -> dict[str, Any]:
    """Learn one network of ``d`` variables in this process."""
    import isthmus as ist

    small = {f"x{i}": column for i, column in enumerate(simulate(20, 2.0, 0)[1])}
    ist.learn(small, search=ist.ScreenedBoss())  # imports
    parents, columns = simulate(d, degree, seed)
    names = [f"x{i}" for i in range(d)]
    data = dict(zip(names, columns, strict=True))
    search = ist.Boss(starts=1) if dense else ist.ScreenedBoss()
    wall, cpu = time.perf_counter(), time.process_time()
    solution = ist.learn(data, score=ist.GaussianEBIC(), search=search)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    true = {frozenset((p, v)) for v, own in enumerate(parents) for p in own}
    own = {
        frozenset((p, v)) for v, group in enumerate(solution.dag.parent_indices()) for p in group
    }
    return {
        "variables": d,
        "degree": degree,
        "seed": seed,
        "search": type(search).__name__,
        "wall": round(wall, 1),
        "cpu": round(cpu, 1),
        "gigabytes": round(memory, 2),
        "precision": round(len(true & own) / max(len(own), 1), 4),
        "recall": round(len(true & own) / len(true), 4),
        "shd": ist.shd(solution.cpdag, ist.DAG.from_parents(names, parents).cpdag()),
        "score": round(solution.score, 2),
        "passes": getattr(solution.details, "passes", ""),
    }


def table(rows: list[dict[str, Any]]) -> str:
    """Return the results as Markdown, with the power of d by which CPU time grows."""
    import numpy as np

    keys = list(rows[0])
    lines = [
        f"# Many variables: GaussianEBIC, {ROWS} rows",
        "",
        "`OPENBLAS_NUM_THREADS=1 python benchmarks/large.py --sizes … --dense … --degree …`",
        "",
        f"| {' | '.join(keys)} |",
        f"|{' --- |' * len(keys)}",
        *(f"| {' | '.join(str(row[key]) for key in keys)} |" for row in rows),
        "",
    ]
    for name, degree in sorted({(row["search"], row["degree"]) for row in rows}):
        points = [
            (row["variables"], row["cpu"])
            for row in rows
            if (row["search"], row["degree"]) == (name, degree) and row["variables"] >= 1000
        ]
        if len({size for size, _ in points}) > 1:
            logs = np.log(points)
            power = np.polyfit(logs[:, 0], logs[:, 1], 1)[0]
            lines.append(f"CPU time of {name} at degree {degree:g} grows like d^{power:.2f}.")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure every size and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=[])
    parser.add_argument("--dense", type=int, nargs="*", default=[])
    parser.add_argument("--degree", type=float, default=4.0)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        d, degree, seed, dense = options.one
        print(json.dumps(measure(int(d), float(degree), int(seed), dense=dense == "1")))
        return
    found = json.loads(LEDGER.read_text())["runs"] if LEDGER.exists() else []
    rows = {tuple(row[key] for key in KEY): row for row in found}
    jobs = [(d, "0") for d in options.sizes] + [(d, "1") for d in options.dense]
    for d, dense in sorted(jobs):
        for seed in options.seeds:
            one = ["--one", str(d), str(options.degree), str(seed), dense]
            command = [sys.executable, "-W", "ignore", __file__, *one]
            out = subprocess.run(command, check=True, capture_output=True, text=True)
            row = json.loads(out.stdout.splitlines()[-1])
            rows[tuple(row[key] for key in KEY)] = row
            print(row, flush=True)
            lines = ",\n".join(json.dumps(rows[key]) for key in sorted(rows))
            LEDGER.write_text(f'{{"runs": [\n{lines}\n]}}\n')
    RESULTS.write_text(table([rows[key] for key in sorted(rows)]))


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    main()
