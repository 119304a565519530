"""Learn from thousands of discrete columns: screened candidates beside the unrestricted search.

    python benchmarks/large_discrete.py --sizes 1000 5000 10000 --levels 2 --searches screened
    python benchmarks/large_discrete.py --networks child insurance alarm hailfinder andes

Random graphs of average degree 2 (at most three parents), tables from Dirichlet distributions,
2,000 rows, the default score. Each run has a process of its own, for its peak of memory. Networks
are read from ``$ISTHMUS_DATA/networks``. Appends lines of JSON to ``results/large-discrete.jsonl``.
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

import numpy as np

import isthmus as ist

ROWS = 2000
LEDGER = Path(__file__).parent / "results" / "large-discrete.jsonl"
SEARCHES = {
    "screened": ist.ScreenedBoss(),
    "xges": ist.XGES(),
    "xges-6": ist.XGES(candidates=6),
    "xges-12": ist.XGES(candidates=12),
}


def random_table(d: int, levels: int, seed: int) -> tuple[ist.DAG, dict[str, Any]]:
    rng = np.random.default_rng([seed, d, levels])
    names = [f"v{j}" for j in range(d)]
    ends = np.sort(rng.integers(0, d, size=(2 * d, 2)), axis=1)
    edges = list(dict.fromkeys((a, b) for a, b in ends.tolist() if a < b))[:d]
    parents: list[list[int]] = [[] for _ in range(d)]
    for a, b in edges:
        if len(parents[b]) < 3:
            parents[b].append(a)
    codes = np.empty((d, ROWS), np.uint8)
    for j, own in enumerate(parents):
        place = np.zeros(ROWS, np.int64)
        for i in own:
            place = place * levels + codes[i]
        tables = rng.dirichlet(np.ones(levels), size=levels ** len(own)).cumsum(axis=1)
        codes[j] = (rng.random((ROWS, 1)) > tables[place, :-1]).sum(axis=1)
    order = rng.permutation(d)  # columns tell nothing of the order
    dag = ist.DAG(names, [(names[i], names[j]) for j, own in enumerate(parents) for i in own])
    return dag, {names[j]: codes[j] for j in order}


def network_table(name: str, seed: int) -> tuple[ist.DAG, dict[str, Any]]:
    network = ist.io.read_bif(Path(os.environ["ISTHMUS_DATA"]) / "networks" / f"{name}.bif.gz")
    drawn = ist.simulate.discrete(network, ROWS, seed=seed)
    return network.dag, dict(drawn.data)


def measure(what: str, levels: int, search: str, seed: int) -> dict[str, Any]:
    dag, data = (
        random_table(int(what), levels, seed) if what.isdigit() else network_table(what, seed)
    )
    used = SEARCHES[search]
    start = time.process_time()
    solution = ist.learn(data, kinds=dict.fromkeys(data, "discrete"), search=used)
    cpu = time.process_time() - start
    true, found = ({frozenset(edge) for edge in graph.edges} for graph in (dag, solution.dag))
    return {
        "data": what,
        "levels": levels if what.isdigit() else None,
        "search": search,
        "seed": seed,
        "cpu": round(cpu, 2),
        "gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "edges": len(true),
        "precision": round(len(true & found) / max(len(found), 1), 4),
        "recall": round(len(true & found) / max(len(true), 1), 4),
        "shd": ist.shd(solution.cpdag, dag.cpdag()),
        "score": round(solution.score, 2),
        "passes": getattr(solution.details, "passes", None),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="*", default=[])
    parser.add_argument("--networks", nargs="*", default=[])
    parser.add_argument("--levels", type=int, default=2)
    parser.add_argument("--searches", nargs="*", default=list(SEARCHES), choices=SEARCHES)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        what, levels, search, seed = given.one
        print(json.dumps(measure(what, int(levels), search, int(seed))))
        return
    for what in (*given.sizes, *given.networks):
        for seed in given.seeds:
            for search in given.searches:
                one = ["--one", what, str(given.levels), search, str(seed)]
                command = [sys.executable, "-W", "ignore", __file__, *one]
                out = subprocess.run(command, check=True, capture_output=True, text=True)
                line = out.stdout.splitlines()[-1]
                print(line, flush=True)
                with LEDGER.open("a") as ledger:
                    ledger.write(f"{line}\n")


if __name__ == "__main__":
    main()
