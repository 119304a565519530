"""What each strategy for missing values costs in structural Hamming distance.

    python benchmarks/missing.py [--seeds 3]

Tables of 5,000 rows from alarm and hailfinder and of 1,000 rows from Gaussian networks of 50
variables and 100 edges lose 10 or 30 % of their cells: completely at random (MCAR), or in half of
the columns with a probability that depends on the value of a complete column (MAR). The graph is
learned with the defaults of ``learn``, and its CPDAG compared with the true one. The table is
written to benchmarks/results/missing.md.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist
from isthmus.errors import IsthmusError
from isthmus.io import read_bif

HERE = Path(__file__).parent
DATA = Path(os.environ.get("ISTHMUS_DATA", HERE.parents[1] / "shared" / "data")) / "networks"
ROWS = {"alarm": 5_000, "hailfinder": 5_000, "Gaussian": 1_000}
STRATEGIES = {
    "complete data": None,
    "`DropRows`": ist.DropRows(),
    "`OwnLevel`": ist.OwnLevel(),
    "`NodeAverage`": ist.NodeAverage(),
    "`NodeAverage(caution=0)`": ist.NodeAverage(caution=0),
    "`ExpectationMaximisation`": ist.ExpectationMaximisation(),
}
PATTERNS = [("MCAR", 0.1), ("MCAR", 0.3), ("MAR", 0.1), ("MAR", 0.3)]


def simulate(name: str, seed: int) -> tuple[dict[str, Any], ist.DAG]:
    """Draw a table, and return it with the true graph."""
    if name != "Gaussian":
        path = next(p for p in DATA.rglob(f"{name}.bif*"))
        network = read_bif(path)
        rows = network.sample(ROWS[name], seed=seed)
        return {v: np.asarray(rows[v], dtype=object) for v in network.dag.nodes}, network.dag
    d, rng = 50, np.random.default_rng(seed)
    order = rng.permutation(d)
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    weights = np.zeros((d, d))
    for k in rng.choice(len(pairs), 2 * d, replace=False):
        i, j = pairs[k]
        weights[order[i], order[j]] = rng.choice([-1, 1]) * rng.uniform(0.5, 2.0)
    x = rng.normal(size=(ROWS[name], d)) @ np.linalg.inv(np.eye(d) - weights)
    names = [f"x{i}" for i in range(d)]
    edges = [(names[i], names[j]) for i, j in zip(*np.nonzero(weights), strict=True)]
    return dict(zip(names, x.T, strict=True)), ist.DAG(names, edges)


def punched(table: dict[str, Any], how: str, share: float, seed: int) -> dict[str, Any]:
    """Remove cells; MAR removes twice the share of half of the columns."""
    rng = np.random.default_rng(1000 + seed)
    names = list(rng.permutation(list(table)))
    complete, others = names[: len(names) // 2], names[len(names) // 2 :]
    result = dict(table)
    for name in names if how == "MCAR" else others:
        n = len(table[name])
        chance = np.full(n, share)
        if how == "MAR":
            driver = np.unique(table[rng.choice(complete)], return_inverse=True)[1]
            chance = np.where(driver < np.median(driver), 0.5, 1.5)
            chance *= 2 * share / chance.mean()
        cells = np.array(table[name])
        cells[rng.random(n) < chance] = np.nan if cells.dtype.kind == "f" else None
        result[name] = cells
    return result


def runs(name: str, seed: int) -> Iterator[tuple[str, str, float | None, float]]:
    """Pattern, strategy, distance (None if refused) and CPU seconds."""
    table, dag = simulate(name, seed)
    for how, share in PATTERNS:
        given = punched(table, how, share, seed)
        for label, missing in STRATEGIES.items():
            begin = time.process_time()
            try:
                if missing is None:
                    solution = ist.learn(table)
                else:
                    solution = ist.learn(given, missing=missing)
            except IsthmusError:
                continue
            seconds = time.process_time() - begin
            distance = ist.shd(solution.dag.cpdag(), dag.cpdag())
            yield f"{how} {share:.0%}", label, float(distance), seconds


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    patterns = [f"{how} {share:.0%}" for how, share in PATTERNS]
    lines = [
        "# Missing values",
        "",
        f"`python benchmarks/missing.py --seeds {options.seeds}`",
        "",
        "Mean CPDAG-SHD (CPU seconds). A dash: no complete row.",
    ]
    for name, rows in ROWS.items():
        found: dict[tuple[str, str], list[tuple[float | None, float]]] = {}
        for seed in range(options.seeds):
            for pattern, label, distance, seconds in runs(name, seed):
                found.setdefault((label, pattern), []).append((distance, seconds))
        lines += ["", f"## {name}, {rows:,} rows", "", f"| | {' | '.join(patterns)} |"]
        lines.append("| --- " * (len(patterns) + 1) + "|")
        for label in STRATEGIES:
            cells = []
            for pattern in patterns:
                values = [v for v in found.get((label, pattern), []) if v[0] is not None]
                mean = f"{np.mean([v[0] for v in values]):.1f}" if values else "–"
                spent = f" ({np.mean([v[1] for v in values]):.1f})" if values else ""
                cells.append(mean + spent)
            if any(cell != "–" for cell in cells):
                lines.append(f"| {label} | {' | '.join(cells)} |")
        (HERE / "results" / "missing.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
