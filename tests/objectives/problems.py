"""Small random problems."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.objectives import LocalScore
from isthmus.scores import Score
from isthmus.statistics import CountPlan, Kind, Moments, Schema
from isthmus.tables import as_source


def discrete_rows(seed: int, n: int, d: int) -> dict[str, NDArray[np.int64]]:
    """Rows of a random network; some nodes nearly determined by their parents."""
    rng = np.random.default_rng(seed)
    columns: list[NDArray[np.int64]] = []
    for v in range(d):
        r = int(rng.integers(2, 5))
        chosen = rng.permutation(v)[: rng.integers(0, 4)]
        key = sum((columns[p] * 5**i for i, p in enumerate(chosen)), np.zeros(n, np.int64))
        concentration = rng.choice([0.05, 0.3, 1.0])
        tables = rng.dirichlet(np.full(r, concentration), size=int(key.max(initial=0)) + 1)
        draws = rng.random(n)
        columns.append((draws[:, None] > tables[key].cumsum(axis=1)[:, :-1]).sum(axis=1))
    order = rng.permutation(d)
    return {f"x{i}": columns[v] for i, v in enumerate(order)}


def discrete_score(score: Score[Any, LocalScore], seed: int, n: int, d: int) -> LocalScore:
    rows = discrete_rows(seed, n, d)
    kinds = dict.fromkeys(rows, Kind.DISCRETE)
    return score.bind(as_source(rows, kinds=kinds).counts(CountPlan.everything()))


def gaussian_score(score: Score[Any, LocalScore], seed: int, n: int, d: int) -> LocalScore:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    for v in range(1, d):
        x[:, v] += x[:, :v] @ rng.choice([0.0, 0.0, 1.0, -0.7, 0.1], size=v)
    x = x[:, rng.permutation(d)] * rng.uniform(0.1, 10, d)
    return score.bind(Moments.from_array(Schema.continuous([f"x{v}" for v in range(d)]), x))
