"""Random problems for structure-only search, with the best parents on the joined table.

A winner that is not the best one counts as a tie if it loses no more than the numeric error that
`docs/explanation/two-parties.md` states.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from plain import k2_score, random_network

PER_CELL = 1.1e-6
"""Error of the score of counts in nats, for each secret cell of a family and of its parents."""

PER_ROW = 2e-6
"""Error of the secret Gaussian score in nats, for each row."""

PER_PLACE = 2.0**-20
"""Nats by which the choice prefers an earlier candidate to the next one."""

COUNT = 50

Problem = tuple[str, Any, list[int], list[int], int]


def discrete_problems() -> Iterator[Problem]:
    for k in range(COUNT):
        rng = np.random.default_rng([140, k])
        m = int(rng.integers(4, 6))
        levels = [int(x) for x in rng.integers(2, 5, m)]
        data = random_network(rng, [200, 500, 2_000][k % 3], levels)
        yield f"structure only {k}", data, levels, [int(i) for i in rng.permutation(m)], 2 + k % 2


def gaussian_problems() -> Iterator[Problem]:
    for k in range(COUNT):
        rng = np.random.default_rng([141, k])
        m, rows = int(rng.integers(4, 7)), [200, 500, 2_000][k % 3]
        data = rng.normal(size=(rows, m))
        for j in range(1, m):
            for i in rng.permutation(j)[: rng.integers(0, 4)]:
                data[:, j] += rng.normal() * data[:, i]
        data = data * rng.uniform(0.01, 100.0, m) + 100.0 * rng.normal(size=m)
        yield f"secret gaussian {k}", data, [0] * m, [int(i) for i in rng.permutation(m)], 2 + k % 2


def gaussian_bic(data: Any, child: int, parents: tuple[int, ...]) -> float:
    n = len(data)
    design = np.column_stack([np.ones(n), data[:, list(parents)]])
    residual = data[:, child] - design @ np.linalg.lstsq(design, data[:, child], rcond=None)[0]
    return float(-0.5 * n * np.log(residual @ residual / n) - 0.5 * np.log(n) * len(parents))


def tolerance(rows: int, levels: list[int], owners: list[int], child: int, sets: Any) -> float:
    """The largest loss of a winner that numeric errors explain."""
    allowed = PER_PLACE * math.comb(len(levels) + 3, 3)
    for parents in sets:
        if not any(levels):
            allowed += PER_ROW * rows
            continue
        for members in ((child, *parents), parents):
            if len({owners[i] for i in members}) == 2:
                allowed += PER_CELL * math.prod(levels[i] for i in members)
    return allowed


def verdict(problem: Problem, owners: list[int], reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare the parents of each variable with the best ones."""
    _, data, levels, order, limit = problem
    edges = [(int(a[1:]), int(b[1:])) for a, b in reports[0]["edges"]]
    equal, ties, losses, margins = 0, 0, [], []
    for k, child in enumerate(order[1:], start=1):
        sets = [
            tuple(sorted(s)) for size in range(limit + 1) for s in combinations(order[:k], size)
        ]
        if any(levels):
            scores = {s: k2_score(data, levels, child, list(s)) for s in sets}
        else:
            scores = {s: gaussian_bic(data, child, s) for s in sets}
        best = max(sets, key=lambda s: scores[s])
        found = tuple(sorted(a for a, b in edges if b == child))
        ranked = sorted(scores.values())
        margins.append(ranked[-1] - ranked[-2])
        if found == best:
            equal += 1
            continue
        losses.append(scores[best] - scores.get(found, -math.inf))
        ties += losses[-1] <= tolerance(len(data), levels, owners, child, (best, found))
    return {
        "decisions": len(order) - 1,
        "equal": equal,
        "ties": ties,
        "losses": losses,
        "closest": min(margins),
        "both the same": reports[0]["edges"] == reports[1]["edges"],
    }
