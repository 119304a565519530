"""How many starts Boss makes by default, what they cost, and whether they agree.

Linear Gaussian tables with two edges per variable. ``work`` is the estimate by which the search
decides whether to start again; ``order`` is the CPDAG distance to the graph that is learned if the
columns come in another order.

    python benchmarks/orders/starts.py > benchmarks/results/boss-starts.md
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import isthmus as ist
from isthmus import simulate

TABLES = ((20, 500), (30, 100), (30, 1000), (60, 150), (100, 200), (100, 2000), (200, 300))
SEEDS = 3


def timed(table: object, search: ist.Boss) -> tuple[ist.Solution, float]:
    start = time.process_time()
    solution = ist.learn(table, search=search)
    return solution, time.process_time() - start


def main() -> None:
    warnings.simplefilter("ignore")
    print(
        "| variables | rows | starts | best reached | CPU s | CPU s of 4 starts | "
        "gain over 4 starts, nats | gain of 50 starts | order |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for d, n in (*TABLES, (200, 2000)):
        for seed in range(SEEDS):
            dag = simulate.erdos_renyi(d, 2 * d, seed=seed)
            table = simulate.linear(dag, n, seed=seed).data
            four, cpu_four = timed(table, ist.Boss(starts=4))
            default, cpu = timed(table, ist.Boss())
            names = list(table)
            turned = np.random.default_rng(seed).permutation(names).tolist()
            other = ist.learn({name: table[name] for name in turned}, search=ist.Boss())
            distance = ist.metrics.shd_cpdag(default.dag, other.dag.reorder(names))
            many = "–"
            if d < 200:
                gain = ist.learn(table, search=ist.Boss(starts=50)).score - default.score
                many = f"{gain:.1f}"
            details = default.details
            print(
                f"| {d} | {n} | {details.starts} | {details.reached} | {cpu:.2f} | {cpu_four:.2f} "
                f"| {default.score - four.score:.1f} | {many} | {distance} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
