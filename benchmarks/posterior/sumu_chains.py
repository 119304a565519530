"""The chains of sumu (Gadget) on the data of chains.py, by the same measure.

In an environment with sumu 0.1.2, then in one with isthmus:

    python benchmarks/posterior/sumu_chains.py run er20 er50 alarm500
    python benchmarks/posterior/sumu_chains.py table er20 er50 alarm500

Matched to chains.py: all graphs are equally probable (sumu divides by the number of sets of equal
size; this is switched off), BDeu with an equivalent sample size of 1, at most 4 parents for alarm.
Other options are those of sumu's manual: 15 candidates, 16 tempered chains, 10,000 iterations after
a warm-up of 10,000, every tenth kept. Each run is repeated with another seed.
"""
# ruff: noqa: SLF001 - the stages of a run are timed one by one

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[3] / "shared" / "data"))
KEPT = Path(os.environ.get("ISTHMUS_CACHE", tempfile.gettempdir()))
SEEDS = (1, 2)


def run(name: str, seed: int) -> None:
    """Run one chain, and keep its graphs and its times."""
    import sumu
    from sumu import gadget

    def uniform(score: gadget.LocalScore) -> None:
        score._prior = np.zeros(score.data.n)

    gadget.LocalScore.precompute_prior = uniform
    x = np.load(DATA / "posterior" / f"{name}.npz")["X"]
    discrete = name.startswith("alarm")
    np.random.seed(seed)  # noqa: NPY002 - sumu draws from the global generator
    data = sumu.Data(x.astype(np.int32) if discrete else x.astype(np.float64), discrete=discrete)
    start = time.process_time()
    chain = sumu.Gadget(
        data=data,
        scoref="bdeu" if discrete else "bge",
        ess=1,
        max_id=4 if discrete else -1,
        K=15,
        d=3,
        cp_algo="greedy-lite",
        mc3_chains=16,
        burn_in=10_000,
        iterations=10_000,
        thinning=10,
        tolerance=2.0**-32,
    )
    chain._find_candidate_parents()
    chain._precompute_scores_for_all_candidate_psets()
    chain._precompute_candidate_restricted_scoring()
    chain._precompute_candidate_complement_scoring()
    setup = time.process_time() - start
    chain._init_mcmc()
    chain._run_mcmc()
    graphs, _ = chain._sample_dags()
    edges = np.zeros((len(graphs), data.n, data.n), bool)
    for i, graph in enumerate(graphs):
        for child, *parents in graph:
            edges[i, list(parents[0]) if parents else [], child] = True
    np.savez_compressed(
        KEPT / f"sumu-{name}-{seed}.npz", edges=edges, times=[setup, time.process_time() - start]
    )


def table(names: list[str]) -> None:
    """Print effective samples per CPU second, and differences between the two chains."""
    from arviz_stats.base import array_stats

    print("data  setup s  total s  ESS/s  5 %  with setup  largest, mean difference of two chains")
    for name in names:
        runs = [np.load(KEPT / f"sumu-{name}-{seed}.npz") for seed in SEEDS]
        edges = np.stack([r["edges"] for r in runs])
        setup, total = np.sum([r["times"] for r in runs], axis=0)
        shares = edges.mean(axis=(0, 1))
        chosen = np.argwhere((shares > 0.05) & (shares < 0.95))
        values = edges.astype(float)
        ess = [array_stats.ess(values[:, :, a, b]) for a, b in chosen]
        gap = np.abs(edges[0].mean(axis=0) - edges[1].mean(axis=0))
        chains = total - setup
        print(
            f"{name}  {setup:.1f}  {total:.1f}  {np.median(ess) / chains:.2f}  "
            f"{np.quantile(ess, 0.05) / chains:.2f}  {np.median(ess) / total:.2f}  "
            f"{gap.max():.3f}, {gap.mean():.4f}"
        )


def main() -> None:
    command, *names = sys.argv[1:]
    if command == "table":
        table(names)
        return
    for name in names:
        for seed in SEEDS:
            run(name, seed)


if __name__ == "__main__":
    main()
