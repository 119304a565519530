"""K2 on the joined table, with exact log-gamma: what the secret runs must equal."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln


def k2_score(data: Any, levels: list[int], child: int, parents: list[int]) -> float:
    r = levels[child]
    q = int(np.prod([levels[p] for p in parents], dtype=np.int64))
    config = np.zeros(len(data), dtype=np.int64)
    for p in parents:
        config = config * levels[p] + data[:, p]
    counts = np.bincount(config * r + data[:, child], minlength=q * r).reshape(q, r)
    rows = counts.sum(1)
    return float((gammaln(r) - gammaln(rows + r)).sum() + gammaln(counts + 1).sum())


def greedy(data: Any, levels: list[int], order: list[int], limit: int) -> list[dict[str, Any]]:
    """Return every decision: the child, its parents so far, and the scores of all options."""
    decisions = []
    for k, child in enumerate(order):
        parents: list[int] = []
        while len(parents) < limit and len(parents) < k:
            options: dict[int | None, float] = {None: k2_score(data, levels, child, parents)}
            for c in order[:k]:
                if c not in parents:
                    options[c] = k2_score(data, levels, child, [*parents, c])
            best = max(options, key=lambda c: options[c])
            decisions.append(
                {"child": child, "parents": list(parents), "options": options, "best": best}
            )
            if best is None:
                break
            parents.append(best)
    return decisions


def random_network(rng: Any, rows: int, levels: list[int]) -> Any:
    """Rows of a random network in which a variable has up to three parents before it."""
    data = np.zeros((rows, len(levels)), dtype=np.int64)
    for i, r in enumerate(levels):
        parents = rng.permutation(i)[: rng.integers(0, 4)]
        config, q = np.zeros(rows, dtype=np.int64), 1
        for p in parents:
            config, q = config * levels[p] + data[:, p], q * levels[p]
        weights = rng.dirichlet(np.full(r, 0.8), size=q).cumsum(1)[config]
        data[:, i] = np.minimum((weights < rng.random((rows, 1))).sum(1), r - 1)
    return data
