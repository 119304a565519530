"""Additive models from moments beside linear ones and the trivial baselines; mean SHD over seeds.

python benchmarks/notears_nonlinear/curves.py --out benchmarks/results/notears-curves.md
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import isthmus as ist
from isthmus import simulate

Method = Callable[[simulate.Simulation], ist.DAG]


def search(sweeps: int, *, equal: bool = True) -> Method:
    score = ist.AdditiveLeastSquares(equal_variances=equal)
    options = ist.NotearsAdditive(sweeps=sweeps)
    return lambda data: ist.learn(data.data, score=score, search=options).dag


METHODS: dict[str, Method] = {
    "default": lambda data: ist.learn(data.data).dag,
    "curves": search(10),
    "curves, without moves in the order": search(0),
    "curves, any variances": search(10, equal=False),
    "linear (`Notears`)": lambda data: ist.learn(data.data, search=ist.Notears()).dag,
    "linear (`Boss`)": lambda data: (
        ist.learn(data.data, score=ist.GaussianEBIC(), search=ist.Boss()).dag
    ),
    "sort by variance and regress": simulate.sort_and_regress,
    "sort by R² and regress": lambda data: simulate.sort_and_regress(
        data, by=simulate.SortBy.R_SQUARED
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--rows", type=int, default=1000)
    options = parser.parse_args()
    d = options.nodes
    settings = [
        (
            f"{name}, {degree * d} edges{', standardised' if scaled else ''}",
            mechanism,
            degree,
            scaled,
        )
        for name, mechanism in (
            ("Fourier", simulate.FourierAdditive(decay=2.0)),
            ("MLP", simulate.MLP()),
        )
        for degree in (1, 2)
        for scaled in (False, True)
    ]
    table: dict[str, list[str]] = {name: [] for name in METHODS}
    seconds = dict.fromkeys(METHODS, 0.0)
    for label, mechanism, degree, scaled in settings:
        for name, method in METHODS.items():
            distances = []
            for seed in range(options.seeds):
                dag = simulate.erdos_renyi(d, degree * d, seed=seed)
                data = simulate.nonlinear(dag, options.rows, mechanism=mechanism, seed=seed)
                data = data.standardised() if scaled else data
                begin = time.process_time()
                distances.append(ist.shd(method(data), dag))
                seconds[name] += time.process_time() - begin
            table[name].append(f"{np.mean(distances):.1f}")
            print(label, name, distances, flush=True)
    runs = options.seeds * len(settings)
    head = ["method", *(s[0] for s in settings), "CPU s per run"]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += [
        f"| {name} | " + " | ".join(row) + f" | {seconds[name] / runs:.1f} |"
        for name, row in table.items()
    ]
    if options.out is not None:
        options.out.write_text(
            "# Curves from moments\n\n"
            "`python benchmarks/notears_nonlinear/curves.py --out FILE`\n\n"
            f"{d} nodes, {options.rows} rows, mean SHD to the true DAG, {options.seeds} seeds,\n"
            "noise of variance one before standardising. Fourier: sums of curves of decay 2; MLP:\n"
            "one hidden layer of 100 sigmoids over all parents, so not a sum of curves. One\n"
            "thread, a busy machine. Boss gives a class of graphs; its SHD is of one member.\n\n"
            + "\n".join(lines)
            + "\n"
        )


if __name__ == "__main__":
    main()
