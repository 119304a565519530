"""Coverage of the intervals of effects after LiNGAM, with exponential noise.

    python benchmarks/effects/lingam.py [TABLES]

Prints the share of 95% intervals that contain the effect, for noise of constant variance and for
noise whose deviation grows with the cause: with the rows at hand, and without them.
"""

from __future__ import annotations

import copy
import sys
import warnings

import numpy as np

import isthmus as ist

EFFECT = 0.8
KNOWN = ist.Knowledge(tiers=[["x"], ["y"]])


def table(rows: int, seed: int, *, unequal: bool) -> dict[str, np.ndarray]:
    """Return a cause and its effect."""
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=rows)
    noise = rng.exponential(size=rows) - 1.0
    return {"x": x, "y": EFFECT * x + ((0.2 + x) * noise if unequal else noise)}


def covers(solution: ist.Solution) -> bool:
    """Return whether the interval contains the effect."""
    low, high = solution.effect("x", "y").interval()
    return low <= EFFECT <= high


def main(tables: int) -> None:
    """Print a row per setting."""
    for unequal in (False, True):
        for rows in (300, 1_000):
            covered = np.zeros(2)
            for seed in range(tables):
                data = table(rows, seed, unequal=unequal)
                solution = ist.learn(data, search=ist.LiNGAM(), knowledge=KNOWN)
                covered += covers(solution), covers(copy.deepcopy(solution))  # copies have no rows
            print(unequal, rows, *(100 * covered / tables).round(1))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of heavy tails
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
