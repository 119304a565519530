"""Time and memory of the exact posterior.

python benchmarks/posterior/exact.py 14 16 18 20 >> benchmarks/results/posterior-exact.jsonl
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np

import isthmus as ist


def table(d: int, *, degree: float = 4.0, rows: int = 200, seed: int = 0) -> dict[str, np.ndarray]:
    """Data of a random graph with weights between 0.4 and 2, standardised."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    weights = np.zeros((d, d))
    for place in rng.permutation(len(pairs))[: int(degree * d / 2)]:
        weights[pairs[place]] = rng.uniform(0.4, 2.0) * rng.choice([-1.0, 1.0])
    x = np.zeros((rows, d))
    for j in range(d):
        x[:, j] = x @ weights[:, j] + rng.normal(size=rows)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    return {f"x{i}": x[:, i] for i in range(d)}


def main() -> None:
    ist.sample(table(4), draws=1)  # imports
    for d in map(int, sys.argv[1:]):
        data = table(d)
        seconds = []
        for draws in (1, 1000):
            start = time.process_time()
            sampler = ist.ExactPosterior(max_memory=1e12)
            posterior = ist.sample(data, sampler=sampler, draws=draws, chains=1)
            seconds.append(time.process_time() - start)
        record = {
            "variables": d,
            "cpu": round(seconds[0], 2),
            "cpu_of_1000_draws": round(seconds[1] - seconds[0], 2),
            "gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
            "error": posterior.details.error,
            "sets": posterior.details.sets,
        }
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
