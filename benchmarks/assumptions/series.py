"""False alarms and power of the check of time series, on independent series.

    python benchmarks/assumptions/series.py [--seeds 200]

Prints the table of results/assumptions.md: the share of seeds with a note.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from isthmus.verbs.notes_rows import drifts_or_seasons

Rows = NDArray[np.float64]
Rng = np.random.Generator
SIZES = ((1, 100), (1, 200), (1, 300), (1, 1000), (7, 40), (10, 100))
"""Numbers of realisations, and steps in each of them."""


def autoregressive(coefficient: float) -> Callable[[int, int, Rng], Rows]:
    def series(n: int, d: int, rng: Rng) -> Rows:
        noise = rng.normal(size=(n + 200, d))
        return np.asarray(lfilter([1], [1, -coefficient], noise, axis=0)[200:])

    return series


def walks(n: int, d: int, rng: Rng) -> Rows:
    return rng.normal(size=(n, d)).cumsum(axis=0)


def trends(size: float) -> Callable[[int, int, Rng], Rows]:
    return lambda n, d, rng: size * np.arange(n)[:, None] / n + rng.normal(size=(n, d))


def seasons(n: int, d: int, rng: Rng) -> Rows:
    phase = rng.uniform(0.0, 2.0 * np.pi, size=d)
    return 2.0 * np.sin(2.0 * np.pi * np.arange(n)[:, None] / 12 + phase) + rng.normal(size=(n, d))


KINDS = {
    "independent steps": autoregressive(0.0),
    "autoregressive, 0.5": autoregressive(0.5),
    "autoregressive, 0.8": autoregressive(0.8),
    "autoregressive, −0.9": autoregressive(-0.9),
    "autoregressive, 0.9": autoregressive(0.9),
    "autoregressive, 0.95": autoregressive(0.95),
    "random walks": walks,
    "trends of 10 deviations of the noise": trends(10.0),
    "trends of 4 deviations of the noise": trends(4.0),
    "seasons of 12 steps, 2/3 of the variance": seasons,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    seeds = parser.parse_args().seeds
    print("| series | variables | " + " | ".join(f"{r} × {n:,}" for r, n in SIZES) + " |")
    print("| --- | --- |" + " --- |" * len(SIZES))
    for kind, generate in KINDS.items():
        for d in (5, 15):
            cells = []
            for r, n in SIZES:
                found = 0
                for seed in range(seeds):
                    rng = np.random.default_rng([seed, n])
                    many = [generate(n, d, rng) for _ in range(r)]
                    found += bool(drifts_or_seasons([f"v{j}" for j in range(d)], many))
                cells.append(f"{found / seeds:.1%}")
            print(f"| {kind} | {d} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
