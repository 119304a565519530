"""NotearsMLP beside the official NOTEARS-MLP, on the same files.

    python benchmarks/notears_nonlinear/simulate.py DATA --seeds 5
    python benchmarks/notears_nonlinear/official.py CHECKOUT DATA/er1_0.npz DATA/official_er1_0.json
    python benchmarks/notears_nonlinear/mlp.py DATA --out benchmarks/results/notears-mlp.md

One thread (OMP_NUM_THREADS=1), CPU seconds of the whole call, ours with the time to compile. Files
without a result of the official code are shown with ours alone. Beside both stands
`NotearsAdditive`, which needs moments only.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import isthmus as ist


def shd(solution: ist.Solution, truth: np.ndarray) -> int:
    names = solution.dag.nodes
    return ist.shd(solution.dag, ist.DAG.from_adjacency(names, truth))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [
        "| data | official, s | SHD | calls | ours, s | SHD | calls | faster | curves, s | SHD |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    # The first call loads the libraries, which the official figure does not count either.
    ist.learn(np.random.default_rng(0).normal(size=(50, 3)), search=ist.NotearsMLP())
    for path in sorted(options.folder.glob("er*.npz")):
        with np.load(path) as held:
            x, truth = held["x"], held["truth"]
        begin = time.process_time()
        found = ist.learn(x, search=ist.NotearsMLP())
        ours = time.process_time() - begin
        begin = time.process_time()
        curves = ist.learn(x, search=ist.NotearsAdditive())
        other = time.process_time() - begin
        line = f"| {path.stem} |"
        result = options.folder / f"official_{path.stem}.json"
        official = json.loads(result.read_text()) if result.exists() else None
        line += (
            f" {official['cpu']:.0f} | {official['shd']} | {official['evaluations']:,} |"
            if official
            else " – | – | – |"
        )
        evaluations = found.details.evaluations
        line += f" {ours:.1f} | {shd(found, truth)} | {evaluations:,} |"
        line += f" {official['cpu'] / ours:.0f}× |" if official else " – |"
        line += f" {other:.1f} | {shd(curves, truth)} |"
        lines.append(line)
        print(line, flush=True)
    if options.out is not None:
        options.out.write_text(
            "# NOTEARS-MLP: ours beside the official code\n\n"
            "Commands: see `benchmarks/notears_nonlinear/mlp.py`. 20 nodes, 1,000 rows, data from\n"
            "one hidden layer of 100 sigmoids per node, ER with d (er1) or 2d (er2) edges. Both\n"
            "have 10 hidden units; official: λ₁ = λ₂ = 0.01, threshold 0.3; ours: defaults.\n"
            "CPU seconds, one thread, a busy machine: read ratios. *Calls*: evaluations of loss\n"
            "and gradient. *Curves*: `NotearsAdditive()` from moments.\n\n"
            + "\n".join(lines)
            + "\n"
        )


if __name__ == "__main__":
    main()
