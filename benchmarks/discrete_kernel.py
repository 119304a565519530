"""The compiled kernel of discrete scores: every child with every candidate, given k parents.

    taskset -c 1 python benchmarks/discrete_kernel.py [--rows 5000]

Columns: milliseconds for all ``(d - k)(d - k - 1)`` scores with the same k parents, and in brackets
nanoseconds a row and candidate; the best of several runs, CPU time of the thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels.scoring import DiscreteForm as Form
from isthmus.kernels.scoring import LocalScore, discrete_score

SHAPES = {
    "as alarm: 37 of 2-4 levels": [2 + (v % 3) for v in range(37)],
    "as andes: 223 of 2 levels": [2] * 223,
    "37 of 5 levels": [5] * 37,
    "50 of 10 levels": [10] * 50,
    "as pathfinder: 108 of 3-4 levels, one of 63": [3 + v % 2 for v in range(108)] + [63],
}
FORMS = {"BIC": (Form.LIKELIHOOD, 4.26), "BDeu": (Form.BDEU, 1.0), "K2": (Form.K2, 0.0)}
PARENTS = [1, 5, 9, 13, 17]


def data(cards: list[int], rows: int) -> NDArray[np.uint8]:
    """Each variable copies the one before in six rows of ten."""
    rng = np.random.default_rng(1)
    codes = np.empty((len(cards), rows), np.uint8)
    for v, r in enumerate(cards):
        codes[v] = rng.integers(0, r, rows)
        if v:
            copied = rng.random(rows) < 0.6
            codes[v, copied] = codes[v - 1, copied] % r
    return codes


def seconds(score: LocalScore, d: int, parents: list[int]) -> float:
    start = time.thread_time()
    for child in range(d):
        if child not in parents:
            others = [v for v in range(d) if v != child and v not in parents]
            score.extensions(child, np.array(parents, np.int64), np.array(others, np.int64))
    return time.thread_time() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    steps = range(len(PARENTS) + 1)
    print("| data | score | " + " | ".join(f"k = {k}" for k in steps) + " |")
    print("| --- " * (2 + len(steps)) + "|")
    for name, cards in SHAPES.items():
        codes = data(cards, options.rows)
        d = len(cards)
        for label, (form, parameter) in FORMS.items():
            score = discrete_score(codes, None, np.array(cards), form, parameter)
            cells = []
            for k in steps:
                best = min(seconds(score, d, PARENTS[:k]) for _ in range(options.repeats))
                scores = (d - k) * (d - k - 1)
                cells.append(f"{best * 1e3:.2f} ({best / scores / options.rows * 1e9:.2f})")
            print(f"| {name} | {label} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
