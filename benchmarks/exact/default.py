"""How many variables the default can search exhaustively: time of SubsetDP and of Boss.

Dense and sparse linear Gaussian tables of 1,000 rows. The limit in ``isthmus/verbs/defaults.py``
is the largest number of variables whose exact search takes well under a second on both.

    python benchmarks/exact/default.py > benchmarks/results/exact-default.md
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import isthmus as ist


def rows(d: int, density: float, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    weights = np.triu((rng.random((d, d)) < density) * rng.normal(size=(d, d)), 1)
    x = rng.normal(size=(1000, d)) @ np.linalg.inv(np.eye(d) - weights)
    return {f"v{i}": x[:, i] for i in range(d)}


def seconds(table: dict[str, np.ndarray], search: object) -> tuple[float, float]:
    best = np.inf
    for _ in range(2):
        start = time.process_time()
        solution = ist.learn(table, search=search)
        best = min(best, time.process_time() - start)
    return best, solution.score


def main() -> None:
    warnings.simplefilter("ignore")
    print("| variables | edges per pair | SubsetDP, CPU s | Boss, CPU s | Boss is optimal |")
    print("| --- | --- | --- | --- | --- |")
    for d in (10, 12, 13, 14, 15, 16):
        for density in (0.2, 0.8):
            table = rows(d, density, d)
            exact, best = seconds(table, ist.SubsetDP())
            greedy, reached = seconds(table, ist.Boss())
            optimal = "yes" if reached >= best - 1e-6 else f"no, by {best - reached:.3g}"
            print(f"| {d} | {density} | {exact:.3f} | {greedy:.3f} | {optimal} |", flush=True)


if __name__ == "__main__":
    main()
