"""The bootstrap: cost beside single runs, and calibration of the shares of edges.

    OPENBLAS_NUM_THREADS=1 python benchmarks/bootstrap.py time   # needs alarm, see CONTRIBUTING.md
    OPENBLAS_NUM_THREADS=1 python benchmarks/bootstrap.py calibration 30

Calibration uses the truths of ``posterior/calibration.py``: graphs and parameters from the prior of
the BGe score, 8 variables. Each replicate is the best graph under BGe, by exact search.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import isthmus as ist

sys.path.insert(0, str(Path(__file__).parent / "posterior"))


def measured(action: Callable[[], object]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    action()
    return time.process_time() - cpu, time.perf_counter() - wall


def cost() -> None:
    import before_after

    rows = before_after.discrete_rows("alarm")
    kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
    ist.learn(rows, kinds=kinds)
    best: dict[str, tuple[float, float]] = {}
    for _ in range(3):  # interleaved; the least busy moment counts
        actions: dict[str, Callable[[], object]] = {
            "200 runs of learn": lambda: [ist.learn(rows, kinds=kinds) for _ in range(200)],
            "bootstrap, 200 replicates, one thread": lambda: ist.bootstrap(
                rows, kinds=kinds, jobs=1
            ),
            "bootstrap, 200 replicates, two threads": lambda: ist.bootstrap(
                rows, kinds=kinds, jobs=2
            ),
        }
        for name, action in actions.items():
            found = measured(action)
            old = best.get(name, found)
            best[name] = (min(old[0], found[0]), min(old[1], found[1]))
    print("| alarm, 5,000 rows | CPU s | wall s |")
    print("| --- | --- | --- |")
    for name, (cpu, wall) in best.items():
        print(f"| {name} | {cpu:.2f} | {wall:.2f} |")


def calibration(truths: int) -> None:
    import calibration as posterior

    heads = [f"{k / 10:.1f}-{(k + 1) / 10:.1f}" for k in range(10)]
    print("| rows | edges by | " + " | ".join(heads) + " |")
    print("| --- " * 12 + "|")
    off = ~np.eye(8, dtype=bool)
    score = ist.BGe(
        alpha_mu=posterior.ALPHA_MU, prior_mean=ist.PriorMean.ZERO, prior_scale=ist.PriorScale.UNIT
    )
    for rows in (50, 500):
        rng = np.random.default_rng(0)
        found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {"bootstrap": [], "posterior": []}
        for dag in posterior.graphs(8, truths, 0):
            x = posterior.simulate(dag, rows, rng, lambda r, n: r.normal(size=n), lambda z: z)
            table = {name: x[:, i] for i, name in enumerate(dag.nodes)}
            there = dag.adjacency()[off].astype(float)
            shares = ist.bootstrap(table, score=score, search=ist.SubsetDP(), replicates=200)
            exact = ist.sample(table, score=score, sampler=ist.ExactPosterior(), draws=1, chains=1)
            found["bootstrap"].append((shares.edge_probabilities()[off], there))
            found["posterior"].append((exact.edge_probabilities()[off], there))
        for name, parts in found.items():
            p, y = (np.concatenate(column) for column in zip(*parts, strict=True))
            place = np.minimum((p * 10).astype(int), 9)
            by = [y[place == k].mean() if (place == k).any() else np.nan for k in range(10)]
            loss = float(np.square(p - y).mean())
            cells = " | ".join(f"{s:.2f}" for s in by)
            print(f"| {rows} | {name} (Brier score {loss:.3f}) | {cells} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["calibration"]:
        calibration(int(sys.argv[2]) if len(sys.argv) > 2 else 30)
    else:
        cost()
