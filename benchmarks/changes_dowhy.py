"""The services of DoWhy's guide to changes of a distribution: its answers and those of `changes`.

    pip install dowhy
    python benchmarks/changes_dowhy.py [repetitions]

Four services X, Y → Z → W; after a deployment Z waits for X and Y one after the other instead of
for the slower one. DoWhy's `distribution_change_robust` divides the change of the mean of W, as
`changes` does; its `distribution_change` divides a divergence.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings

import numpy as np
import pandas as pd
from scipy.stats import halfnorm

import isthmus as ist

EDGES = [("X", "Z"), ("Y", "Z"), ("Z", "W")]


def services(rng: np.random.Generator, *, together: bool) -> pd.DataFrame:
    """Return latencies of 1,000 calls."""
    x = halfnorm.rvs(loc=0.5, scale=0.2, size=1000, random_state=rng)
    y = halfnorm.rvs(loc=1.0, scale=0.2, size=1000, random_state=rng)
    z = (np.maximum(x, y) if together else x + y) + rng.normal(0, 0.5, 1000)
    w = z + halfnorm.rvs(loc=0.1, scale=0.2, size=1000, random_state=rng)
    return pd.DataFrame({"X": x, "Y": y, "Z": z, "W": w})


def ours(old: pd.DataFrame, new: pd.DataFrame, _: int) -> dict[str, float]:
    answer = ist.changes(old, new, ist.DAG(old.columns, EDGES), "W")
    return dict.fromkeys(old, 0.0) | {m.node: m.share for m in answer.changed}


def theirs(old: pd.DataFrame, new: pd.DataFrame, seed: int, name: str) -> dict[str, float]:
    import networkx as nx
    from dowhy import gcm

    gcm.util.general.set_random_seed(seed)
    gcm.config.disable_progress_bars()
    gcm.config.set_default_n_jobs(1)
    model = gcm.ProbabilisticCausalModel(nx.DiGraph(EDGES))
    gcm.auto.assign_causal_mechanisms(model, old)
    return dict(getattr(gcm, name)(model, old, new, "W"))


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    methods = {
        "`changes`": ours,
        "`distribution_change_robust`": lambda a, b, s: theirs(
            a, b, s, "distribution_change_robust"
        ),
        "`distribution_change`": lambda a, b, s: theirs(a, b, s, "distribution_change"),
    }
    print(
        "| method | X | Y | Z | W | Z is first | s |\n| --- | --- | --- | --- | --- | --- | --- |"
    )
    for label, method in methods.items():
        rows, begin = [], time.process_time()
        for seed in range(repetitions):
            rng = np.random.default_rng(seed)
            pair = [services(rng, together=together) for together in (True, False)]
            shares = method(*pair, seed)
            rows.append([shares[v] for v in "XYZW"])
        seconds = (time.process_time() - begin) / repetitions
        mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0)
        cells = [f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True)]
        first = sum(int(np.argmax(np.abs(row))) == 2 for row in rows)
        print(
            f"| {label} | {' | '.join(cells)} | {first} of {repetitions} | {seconds:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
