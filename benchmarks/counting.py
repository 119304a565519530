"""All tables of three variables, against a read of the same bytes, on one thread.

    taskset -c 1 python benchmarks/counting.py [--rows 1000000] [--repeats 5]

Each line repeats (read, count) in turn and gives the median of the ratios, since a shared machine
changes its speed from second to second; times are CPU time of the thread. Reads to compare with:

- "sum": a NumPy sum over the uint8 columns of every triple (three columns a triple; measured for
  all 37 columns and multiplied);
- "memory": the same bytes summed as 64-bit words, which runs at the speed of memory;
- "once": one such sum over all columns, the least that any method could read.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import combinations
from statistics import median

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels import counting

VARIABLES = 37
# Levels of the 37 variables of the alarm network.
ALARM = [2] * 13 + [3] * 17 + [4] * 7


def data(cards: NDArray[np.int64], rows: int, skewed: bool) -> NDArray[np.uint8]:
    """Codes; skewed: nine rows in ten are of the first level."""
    rng = np.random.default_rng(1)
    codes = np.empty((len(cards), rows), np.uint8)
    for v, r in enumerate(cards):
        codes[v] = rng.integers(0, r, rows)
        if skewed:
            codes[v, rng.random(rows) < 0.9] = 0
    return codes


def seconds(action: Callable[[], object]) -> float:
    start = time.thread_time()
    action()
    return time.thread_time() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    triples = len(list(combinations(range(VARIABLES), 3)))
    factor = 3 * triples / VARIABLES
    cases: list[tuple[str, list[int]]] = [("as alarm, 2-4", ALARM)]
    cases += [(f"{r} levels", [r] * VARIABLES) for r in (2, 3, 5, 7, 10)]
    cases += [("5-10 levels", [5 + v % 6 for v in range(VARIABLES)])]
    print(f"{triples} triples of {VARIABLES} columns, {options.rows:,} rows")
    print("| levels | data | count, s | ns a row | sum, s | /sum | memory, s | /memory | /once |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, levels in cases:
        cards = np.array(levels)
        for skewed in (False, True):
            codes = data(cards, options.rows, skewed)
            words = codes.reshape(-1).view(np.uint64)
            counting.tally_all(codes[:, :64].copy(), None, cards, 3)
            runs = []
            for _ in range(options.repeats):
                slow = seconds(lambda: [codes[v].sum() for v in range(VARIABLES)])  # noqa: B023
                fast = seconds(words.sum)
                count = seconds(lambda: counting.tally_all(codes, None, cards, 3))  # noqa: B023
                runs.append((count, slow * factor, fast * factor, fast))
            count, slow, fast = (median(run[i] for run in runs) for i in range(3))
            ratios = [median(run[0] / run[i] for run in runs) for i in (1, 2, 3)]
            print(
                f"| {name} | {'skewed' if skewed else 'uniform'} | {count:.3f}"
                f" | {count / triples / options.rows * 1e9:.3f} | {slow:.1f} | {ratios[0]:.3f}"
                f" | {fast:.2f} | {ratios[1]:.2f} | {ratios[2]:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
