"""Exact searches beside each other, and beside causal-learn's.

    python benchmarks/exact/exact.py networks [--dp 20]
    python benchmarks/exact/exact.py peers --peers PYTHON

The first solves samples of 5000 rows of known networks by every exact search we have; the second
solves linear Gaussian data of growing size, where causal-learn's exact search works.
CPU seconds of one thread, compiling not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[3] / "shared" / "data"))

CAUSAL_LEARN = """
import json, sys, time
import numpy as np
from causallearn.search.ScoreBased.ExactSearch import bic_exact_search
x = np.load(sys.argv[1])
for method in ("astar", "dp"):
    begun = time.process_time()
    dag, _ = bic_exact_search(x, search_method=method)
    seconds = time.process_time() - begun
    print(json.dumps({"method": method, "seconds": seconds, "dag": dag.tolist()}))
"""


def solve(search: Any, objective: Any, limit: float) -> tuple[Any, Any, float]:
    import isthmus as ist
    from isthmus.searches import drive

    known = ist.Knowledge().bind(objective.nodes)
    begun = time.process_time()
    found, status = drive(
        partial(search.search, objective, known, np.random.default_rng(0)),
        "exact",
        time_limit=limit,
    )
    return found, status, time.process_time() - begun


def networks(names: list[str], dp: int, limit: float) -> None:
    import isthmus as ist
    from isthmus.io import read_bif
    from isthmus.objectives.table import TableBuilder
    from isthmus.searches import SubsetDP

    print("| network | nodes | scored | listed | parent sets s | search | s | score | proven gap |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in ["asia", *names]:  # the first compiles
        sample = read_bif(DATA / "networks" / f"{name}.bif.gz").sample_codes(5000, seed=1)
        kinds = dict.fromkeys(sample, ist.Kind.DISCRETE)
        counts: Any = ist.summarise(sample, plan=ist.CountPlan.everything(), kinds=kinds)
        begun = time.process_time()
        builder = TableBuilder(ist.BIC().bind(counts))
        while not builder.step():
            pass
        table = builder.table()
        listing = time.process_time() - begun
        d = len(table.nodes)
        searches: list[Any] = [ist.AStar(), ist.ILP()] + ([SubsetDP()] if d <= dp else [])
        for search in searches:
            found, status, seconds = solve(search, table, limit)
            print(
                f"| {name} | {d} | {builder.scored:,} | {len(table):,} | {listing:.2f} "
                f"| {type(search).__name__} | {seconds:.2f} | {found.score:.6f} | {found.gap} "
                f"({status.ending}) |",
                flush=True,
            )


def peers(python: str, sizes: list[int]) -> None:
    import isthmus as ist

    print("| nodes | isthmus A* s | causal-learn A* s | causal-learn DP s | same best score |")
    print("| --- | --- | --- | --- | --- |")
    for turn, d in enumerate([sizes[0], *sizes]):  # the first compiles
        rng = np.random.default_rng(d)
        x = rng.normal(size=(500, d))
        for v in range(1, d):
            weights = rng.uniform(0.5, 2.0, v) * rng.choice([-1, 0, 0, 1], v)
            x[:, v] += x[:, :v] @ weights
        x = x[:, rng.permutation(d)]
        x -= x.mean(axis=0)
        data = {f"v{i}": column for i, column in enumerate(x.T)}
        moments: Any = ist.summarise(data)
        found, _, ours = solve(ist.AStar(), ist.GaussianBIC().bind(moments), 1e6)
        if turn == 0:
            continue
        seconds, same = {}, []
        with tempfile.TemporaryDirectory() as home:
            np.save(f"{home}/x.npy", x)
            done = subprocess.run(
                [python, "-c", CAUSAL_LEARN, f"{home}/x.npy"],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                one = json.loads(line)
                seconds[one["method"]] = one["seconds"]
                dag = ist.DAG.from_adjacency(list(data), np.array(one["dag"]))
                theirs = ist.score(data, dag, ist.GaussianBIC())
                same.append(abs(theirs - found.score) < 1e-6 * abs(found.score))
        print(
            f"| {d} | {ours:.3f} | {seconds.get('astar', float('nan')):.2f} "
            f"| {seconds.get('dp', float('nan')):.2f} | {same} |",
            flush=True,
        )
        if not seconds:
            print(done.stderr[-1000:], file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["networks", "peers"])
    parser.add_argument("--names", default="asia,sachs,child,insurance,alarm")
    parser.add_argument("--dp", type=int, default=20)
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--sizes", default="5,6,7,8,9,10,11,12")
    options = parser.parse_args()
    if options.what == "networks":
        networks(options.names.split(","), options.dp, options.limit)
    else:
        peers(options.peers, [int(size) for size in options.sizes.split(",")])


if __name__ == "__main__":
    main()
