"""Five hundred variables and more: any-time runs of ours beside pyagrum with ten times the budget.

    python benchmarks/orders/large.py --budget 30 --peers PYTHON

CPU seconds of one thread; compiling and reading the data are not counted. pyagrum's hill climbing
runs to its own end: where that takes less than ten times our budget, more time would not help it,
and where it takes more, it was given more.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
import warnings
from typing import Any

import numpy as np
from data import load
from orders import PYAGRUM, RESULTS, bic

LEDGER = RESULTS / "orders-large.jsonl"


def ours(method: str, sets: int) -> Any:
    import isthmus as ist

    return {
        "ASOBS": ist.ASOBS(starts=10**9, window=1, kicks=10**9, max_parent_sets=sets),
        "BOSS": ist.Boss(starts=10**9),
        "XGES": ist.XGES(),
        "HC": ist.HillClimb(),
    }[method]


def add(one: dict[str, Any]) -> None:
    with LEDGER.open("a", encoding="utf-8") as file:
        file.write(json.dumps(one) + "\n")
    print(one, flush=True)


def pyagrum(codes: np.ndarray[Any, Any], python: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        np.savez(f"{home}/x.npz", codes=codes)
        done = subprocess.run(
            [python, "-c", PYAGRUM, f"{home}/x.npz"],
            capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", nargs="+", default=["madelon", "isolet"])
    parser.add_argument("--methods", nargs="*", default=["ASOBS", "BOSS", "XGES", "HC"])
    parser.add_argument("--budget", type=float, default=30.0)
    parser.add_argument("--sets", type=int, default=1000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--peers", help="a Python that has pyagrum")
    options = parser.parse_args()
    time.monotonic = time.process_time  # type: ignore[assignment]
    import isthmus as ist

    warnings.simplefilter("ignore")
    small = load("voting")
    for name in options.names:
        rows = load(name)
        codes = np.column_stack(list(rows.values()))
        place = {v: j for j, v in enumerate(rows)}
        for method in options.methods:
            search = ours(method, options.sets)
            for seed in options.seeds if method in ("ASOBS", "BOSS") else [0]:
                for data, limit in ((small, 0.5), (rows, options.budget)):  # the first compiles
                    kinds = dict.fromkeys(data, ist.Kind.DISCRETE)
                    begun = time.process_time()
                    found = ist.learn(
                        data, score=ist.BIC(), search=search, kinds=kinds, time_limit=limit,
                        seed=seed,
                    )  # fmt: skip
                    seconds = time.process_time() - begun
                edges = [(place[a], place[b]) for a, b in found.dag.edges]
                add({
                    "name": name, "method": method, "seed": seed, "budget": options.budget,
                    "sets": options.sets if method == "ASOBS" else None,
                    "seconds": seconds, "bic": float(bic(codes, edges)), "edges": len(edges),
                    "ending": str(found.status.ending),
                })  # fmt: skip
        if options.peers:
            peer = pyagrum(codes, options.peers)
            add({
                "name": name, "method": "pyagrum HC", "seconds": peer["seconds"],
                "bic": float(bic(codes, peer["edges"])), "edges": len(peer["edges"]),
            })  # fmt: skip


if __name__ == "__main__":
    main()
