"""Effective samples per CPU second: python benchmarks/posterior/chains.py er20 er50 alarm500.

Reads the data sets of the folder `posterior` in the folder of benchmark data. Differences are those
of edge probabilities between two of four chains that start from different graphs. With `--runs`,
those between two runs of four chains, which choose their candidate parents separately. With
`--expected-parents 1`, the prior is one for sparse graphs instead of uniform.
"""

from __future__ import annotations

import argparse
import os
import time
from itertools import combinations
from pathlib import Path

import numpy as np

import isthmus as ist

DATA = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[3] / "shared" / "data"))


def sample(
    name: str, prior: ist.Knowledge, *, draws: int = 1000, seed: int = 1, **options: int
) -> ist.Posterior:
    """Draw from the posterior of a data set by four chains."""
    x = np.load(DATA / "posterior" / f"{name}.npz")["X"]
    discrete = name.startswith("alarm")
    columns = x.T.astype(int).astype(str) if discrete else x.T
    sampler = ist.PartitionMCMC(max_parents=4 if discrete else None, jobs=1, **options)
    return ist.sample(
        {f"v{i}": column for i, column in enumerate(columns)},
        score=ist.BDeu(ess=1.0) if discrete else ist.BGe(),
        sampler=sampler,
        knowledge=prior,
        draws=draws,
        chains=4,
        seed=seed,
    )


def compare_runs(names: list[str], prior: ist.Knowledge, draws: int) -> None:
    """Print the differences of two runs of each data set."""
    print(
        "data  CPU s  ESS/s with setup  largest difference of two chains  largest, mean difference "
        "of two runs  edges  left out, of the weight of the others"
    )
    for name in names:
        start = time.process_time()
        first, second = (sample(name, prior, draws=draws, seed=seed) for seed in (1, 2))
        seconds = (time.process_time() - start) / 2
        ess = np.median(first.diagnostics().ess)
        chains = max(np.abs(a - b).max() for a, b in combinations(first.edges_by_chain(), 2))
        edges = first.edge_probabilities()
        gap = np.abs(edges - second.edge_probabilities())
        print(
            f"{name}  {seconds:.0f}  {ess / seconds:.0f}  {chains:.3f}  {gap.max():.3f}, "
            f"{gap.mean():.4f}  {edges.sum():.0f}  {first.details.left_out:.3g}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--runs", action="store_true", help="compare two runs")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--expected-parents", type=float)
    given = parser.parse_args()
    prior = ist.Knowledge(expected_parents=given.expected_parents)
    measure = compare_runs if given.runs else measure_chains
    measure(given.data, prior, given.draws)


def measure_chains(names: list[str], prior: ist.Knowledge, draws: int) -> None:
    """Print effective samples per second of each data set, and differences of chains."""
    print("data  setup s  total s  ESS/s  5 %  with setup  largest, mean difference of two chains")
    for name in names:
        seconds = []
        for count in (1, draws):
            start = time.process_time()
            options = {"warm_up": 1, "thin": 1} if count == 1 else {}
            posterior = sample(name, prior, draws=count, **options)
            seconds.append(time.process_time() - start)
        ess = np.array(posterior.diagnostics().ess)
        edges = posterior.edges_by_chain()
        gaps = [np.abs(a - b) for a, b in combinations(edges, 2)]
        chains = seconds[1] - seconds[0]
        print(
            f"{name}  {seconds[0]:.1f}  {seconds[1]:.1f}  {np.median(ess) / chains:.0f}  "
            f"{np.quantile(ess, 0.05) / chains:.0f}  {np.median(ess) / seconds[1]:.0f}  "
            f"{max(gap.max() for gap in gaps):.3f}, {np.mean(gaps):.4f}",
            flush=True,
        )
        print(posterior.notes[-1], flush=True)


if __name__ == "__main__":
    main()
