"""Errors of the edge probabilities of chains against the exact posterior.

    python benchmarks/posterior/accuracy.py 14 16 20

Graphs are random with degree 4 and 200 rows: linear Gaussian under `BGe`, and discrete with two or
three categories under `BDeu`. Exact probabilities are kept in the folder ISTHMUS_CACHE, if that is
set. With OPTIONS (such as "thin=8"), other options than the defaults.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from exact import table as gaussian_table

import isthmus as ist

CACHE = os.environ.get("ISTHMUS_CACHE")
GRAPHS, SEEDS = 3, 1


def discrete_table(d: int, *, rows: int = 200, seed: int = 0) -> dict[str, np.ndarray]:
    """Data of a random graph of degree 4 with at most three parents, and random tables."""
    rng = np.random.default_rng([d, seed])
    parents: list[list[int]] = [[] for _ in range(d)]
    pairs = rng.permutation([(i, j) for i in range(d) for j in range(i + 1, d)])
    for a, b in pairs[: 2 * d].tolist():
        if len(parents[b]) < 3:
            parents[b].append(a)
    levels = rng.integers(2, 4, d)
    codes = np.zeros((rows, d), int)
    for v, own in enumerate(parents):
        place = np.zeros(rows, int)
        for p in own:
            place = place * levels[p] + codes[:, p]
        tables = rng.dirichlet(np.full(levels[v], 0.5), int(np.prod(levels[own], dtype=int)))
        codes[:, v] = (rng.random(rows)[:, None] > tables[place].cumsum(axis=1)[:, :-1]).sum(axis=1)
    return {f"x{v}": codes[:, v].astype(str) for v in range(d)}


def exact_edges(name: str, data: dict[str, np.ndarray], score: object) -> np.ndarray:
    """Compute the exact edge probabilities, or read them from the cache."""
    path = None if CACHE is None else Path(CACHE) / f"{name}.npy"
    if path is not None and path.exists():
        return np.load(path)
    sampler = ist.ExactPosterior(max_memory=1e12)
    edges = ist.sample(data, score=score, sampler=sampler, draws=1, chains=1).edge_probabilities()
    if path is not None:
        np.save(path, edges)
    return edges


def main() -> None:
    options = {
        key: int(value)
        for key, value in (pair.split("=") for pair in os.environ.get("OPTIONS", "").split())
    }
    print("score  variables  graph  CPU s  largest error by seed  largest said difference")
    for d in map(int, sys.argv[1:]):
        for graph in range(GRAPHS):
            for score in (ist.BGe(), ist.BDeu()):
                kind = type(score).__name__
                make = gaussian_table if kind == "BGe" else discrete_table
                data = make(d, seed=graph)
                exact = exact_edges(f"{kind}-{d}-{graph}", data, score)
                errors, gaps, start = [], [], time.process_time()
                for seed in range(SEEDS):
                    sampler = ist.PartitionMCMC(jobs=1, **options)
                    posterior = ist.sample(data, score=score, sampler=sampler, seed=seed)
                    errors.append(np.abs(posterior.edge_probabilities() - exact).max())
                    gaps.append(posterior.agreement().largest)
                seconds = (time.process_time() - start) / SEEDS
                text = "  ".join(f"{error:.4f}" for error in errors)
                print(
                    f"{kind:5s} {d:3d} {graph:3d} {seconds:7.1f}  {text}  {max(gaps):.3f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
