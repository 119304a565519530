"""Draws with and without a sparse prior: python benchmarks/posterior/further_parents.py er50.

Prints the odds of further parents given the true graph, and for chains without tables and with
tables of equal sizes, that grow, and that grow to twice the usual limit: the edges in a draw, how
many pairs of probability above one half have a true edge and how many have none, and the weight of
graphs with a parent set outside of the tables, relative to that of all graphs that can be drawn.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import isthmus as ist
from isthmus.results.features import descendants
from isthmus.samplers import candidates
from isthmus.tables import Frame

DATA = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[3] / "shared" / "data"))
DRAWS = 25
SPARSE = ist.Knowledge(expected_parents=1)


def odds_of_further_parents(table: dict[str, np.ndarray], truth: np.ndarray) -> None:
    """Print the odds of parents that the true graph does not have and could have."""
    score = ist.BGe().bind(Frame(table).moments())
    below = descendants(truth[None])[0] | np.eye(len(truth), dtype=bool)
    odds = []
    for child, parents in enumerate(truth.T):
        others = np.flatnonzero(~parents & ~below[child])
        scores = score.kernel.extensions(child, np.flatnonzero(parents), others)
        odds.append(np.exp(scores[1:] - scores[0]))
    sums = np.median([own.sum() for own in odds])
    print(f"odds of a further parent: median {np.median(np.concatenate(odds)):.3f}, sum over the")
    print(f"parents of the median node {sums:.1f}")


def row(label: str, posterior: ist.Posterior, truth: np.ndarray, seconds: float) -> None:
    edges = posterior.edge_probabilities()
    probable = np.triu(edges + edges.T > 0.5)
    pairs = truth | truth.T
    left_out = getattr(posterior.details, "left_out", 0.0)
    print(
        f"{label:35} {seconds:5.0f}  {edges.sum():6.0f}  {(probable & pairs).sum():4}  "
        f"{(probable & ~pairs).sum():4}  {left_out:.3g}",
        flush=True,
    )


def main() -> None:
    name = sys.argv[1]
    content = np.load(DATA / "posterior" / f"{name}.npz")
    table = {f"v{i}": column for i, column in enumerate(content["X"].T)}
    truth = content["A"] != 0
    d = len(truth)
    odds_of_further_parents(table, truth)
    print(f"{truth.sum()} true edges, at most {truth.sum(axis=0).max()} parents")
    print("prior, sampler                      CPU s   edges  true  not  left out")
    equal = candidates.candidate_count(np.full(d, d - 1), candidates.MAX_FAMILIES)
    limit = candidates.MAX_FAMILIES
    for label, prior, sampler, most in (
        ("uniform, no tables", None, ist.StructureMCMC(thin=4 * d, warm_up=1200 * d), limit),
        ("uniform, equal tables", None, ist.PartitionMCMC(candidates=equal, jobs=1), limit),
        ("uniform, tables that grow", None, ist.PartitionMCMC(jobs=1), limit),
        ("sparse, equal tables", SPARSE, ist.PartitionMCMC(candidates=equal, jobs=1), limit),
        ("sparse, tables that grow", SPARSE, ist.PartitionMCMC(jobs=1), limit),
        ("sparse, twice the limit", SPARSE, ist.PartitionMCMC(jobs=1), 2 * limit),
    ):
        candidates.MAX_FAMILIES = most
        free = isinstance(sampler, ist.StructureMCMC)
        start = time.process_time()
        posterior = ist.sample(
            table,
            score=ist.BGe(),
            sampler=sampler,
            knowledge=prior,
            draws=500 if free else DRAWS,
            chains=2 if free else 4,
            seed=1,
        )
        row(label, posterior, truth, time.process_time() - start)


if __name__ == "__main__":
    main()
