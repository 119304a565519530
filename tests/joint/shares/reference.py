"""Plaintext counterparts, written without the library's code."""

from __future__ import annotations

from itertools import combinations, product
from math import lgamma, log
from typing import Any

import numpy as np
from numpy.typing import NDArray


def family_score(
    data: NDArray[Any],
    levels: list[int],
    child: int,
    parents: tuple[int, ...],
    name: str,
    ess: float = 1.0,
) -> float:
    """Score a family by going through all configurations of its parents, one by one."""
    r = levels[child]
    q = int(np.prod([levels[p] for p in parents])) if parents else 1
    total = 0.0
    for config in product(*(range(levels[p]) for p in parents)):
        rows = np.ones(len(data), dtype=bool)
        for p, value in zip(parents, config, strict=True):
            rows &= data[:, p] == value
        counts = [int((data[rows, child] == k).sum()) for k in range(r)]
        n = sum(counts)
        if name == "bic":
            total += sum(c * log(c / n) for c in counts if c)
            total -= 0.5 * log(len(data)) * (r - 1)
        else:
            a = 1.0 if name == "k2" else ess / (r * q)
            total += lgamma(r * a) - lgamma(r * a + n)
            total += sum(lgamma(a + c) - lgamma(a) for c in counts)
    return total


def greedy(
    data: NDArray[Any], levels: list[int], order: list[int], limit: int, name: str
) -> tuple[dict[int, set[int]], list[tuple[int, int | None, float]]]:
    """K2; also every decision, and by how much it was better than the second choice."""
    chosen: dict[int, set[int]] = {}
    decisions = []
    for k, i in enumerate(order):
        parents: set[int] = set()
        while len(parents) < limit and set(order[:k]) - parents:
            options: list[tuple[float, int | None]] = [
                (family_score(data, levels, i, tuple(sorted(parents)), name), None)
            ]
            for c in order[:k]:
                if c not in parents:
                    s = family_score(data, levels, i, tuple(sorted({*parents, c})), name)
                    options.append((s, c))
            ranked = sorted(options, key=lambda o: -o[0])
            decisions.append((i, ranked[0][1], ranked[0][0] - ranked[1][0]))
            if ranked[0][1] is None:
                break
            parents.add(ranked[0][1])
        chosen[i] = parents
    return chosen, decisions


def best_sets(
    data: NDArray[Any], levels: list[int], order: list[int], limit: int, name: str
) -> dict[int, set[int]]:
    """The best set of parents of each variable among all sets of earlier ones."""
    best = {}
    for k, i in enumerate(order):
        sets: list[tuple[int, ...]] = [
            s for size in range(limit + 1) for s in combinations(sorted(order[:k]), size)
        ]
        scores = [family_score(data, levels, i, s, name) for s in sets]
        best[i] = set(sets[int(np.argmax(scores))])
    return best
