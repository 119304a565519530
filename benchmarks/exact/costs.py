"""Estimated and measured CPU time of an exact search: the estimates choose the default search.

``estimated`` is the time to score every family, from the sizes of the data alone
(``isthmus/scores/criterion.py``); ``measured`` is that of SubsetDP, which leaves out families that
a bound on the score rules out. The limit in ``isthmus/verbs/defaults.py`` is on the estimate.

    python benchmarks/exact/costs.py > benchmarks/results/exact-costs.md
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import isthmus as ist
from isthmus.objectives import LOCAL_SCORES
from isthmus.scores import Score
from isthmus.verbs.prepare import prepare

Table = dict[str, np.ndarray]


def continuous(d: int, density: float, rng: np.random.Generator) -> Table:
    weights = np.triu((rng.random((d, d)) < density) * rng.normal(size=(d, d)), 1)
    x = rng.normal(size=(1000, d)) @ np.linalg.inv(np.eye(d) - weights)
    return {f"v{i}": x[:, i] for i in range(d)}


def discrete(d: int, n: int, levels: int, density: float, rng: np.random.Generator) -> Table:
    """Sums of the parents modulo the number of levels: no parent tells anything by itself."""
    edges = np.triu(rng.random((d, d)) < density, 1)
    values = rng.integers(0, levels, (n, d))
    for j in range(d):
        told = values[:, edges[:, j]].sum(axis=1) % levels
        kept = edges[:, j].any() & (rng.random(n) < 0.8)
        values[:, j] = np.where(kept, told, values[:, j])
    return {f"v{i}": values[:, i] for i in range(d)}


def mixed(d: int, levels: int, rng: np.random.Generator) -> Table:
    """Categories with few common and many rare levels."""
    shares = 1.0 / np.arange(1, levels + 1) ** 1.5
    names = np.array([f"level {i}" for i in range(levels)])
    table: Table = {f"x{i}": rng.normal(size=500) for i in range(d // 2)}
    for i in range(d // 2):
        table[f"c{i}"] = names[rng.choice(levels, 500, p=shares / shares.sum())]
    return table


def tables(rng: np.random.Generator) -> Iterator[tuple[str, Table, Score[Any, Any] | None]]:
    for d in (10, 12, 14, 15, 16):
        for density in (0.2, 0.8):
            yield f"{d} continuous, density {density}", continuous(d, density, rng), None
    for d, n, levels in ((8, 10_000, 4), (10, 1000, 2), (10, 10_000, 3), (12, 1000, 2)):
        for score in (ist.EBIC(), ist.BDeu()):
            label = f"{d} discrete, {n:,} rows, {levels} levels, {type(score).__name__}"
            yield label, discrete(d, n, levels, 0.3, rng), score
    for d, n, levels in ((12, 5000, 3), (14, 1000, 2), (10, 100_000, 3), (12, 50_000, 2)):
        yield f"{d} discrete, {n:,} rows, {levels} levels", discrete(d, n, levels, 0.3, rng), None
    for d, levels in ((10, 10), (6, 80), (8, 80)):
        yield f"{d} columns, half of {levels} levels", mixed(d, levels, rng), None
    for d in (3, 4, 5):
        yield f"{d} continuous, GP", continuous(d, 0.5, rng), ist.GP()


def main() -> None:
    warnings.simplefilter("ignore")
    print("| table | estimated, s | measured, CPU s | default search |")
    print("| --- | --- | --- | --- |")
    for label, table, score in tables(np.random.default_rng(0)):
        objective = LOCAL_SCORES.require(prepare(table, score=score).objective)
        start = time.process_time()
        ist.learn(table, score=score, search=ist.SubsetDP(), time_limit=30)
        measured = time.process_time() - start
        chosen = ist.learn(table, score=score, time_limit=30).choice.split("search ")[1]
        estimated = objective.seconds_for_all()
        name = chosen.split("(")[0]
        print(f"| {label} | {estimated:.3f} | {measured:.3f} | `{name}` |", flush=True)


if __name__ == "__main__":
    main()
