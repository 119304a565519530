"""Interventions: simulated regimes, and the protein data of Sachs et al. (2005).

    python benchmarks/interventions.py [--seeds 30]

Simulated: linear Gaussian networks of 10 variables and 15 edges, 1,000 rows in all, half of them
observational; the others are divided among regimes with one random target each, which is set to
normal noise. Sachs: 7,466 cells under nine conditions, logarithms or three equal groups per
protein, against the consensus network of 17 edges. The tables are written to
benchmarks/results/interventions.md.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist

HERE = Path(__file__).parent
DATA = Path(os.environ.get("ISTHMUS_DATA", HERE.parents[1] / "shared" / "data")) / "sachs"
D, EDGES, ROWS = 10, 15, 1_000


def simulate(seed: int, regimes: int) -> tuple[ist.DAG, list[dict[str, Any]], list[list[str]]]:
    """Draw a network, its tables and their targets."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(D)
    pairs = [(i, j) for i in range(D) for j in range(i + 1, D)]
    weights = np.zeros((D, D))
    for k in rng.choice(len(pairs), EDGES, replace=False):
        i, j = pairs[k]
        weights[order[i], order[j]] = rng.choice([-1, 1]) * rng.uniform(0.5, 2.0)
    names = [f"x{i}" for i in range(D)]
    edges = [(names[i], names[j]) for i, j in zip(*np.nonzero(weights), strict=True)]
    chosen = rng.choice(D, regimes, replace=False).tolist()
    sizes = [ROWS] if not regimes else [ROWS // 2] + [ROWS // 2 // regimes] * regimes
    tables = []
    for size, target in zip(sizes, [None, *chosen], strict=True):
        own = weights.copy()
        noise = rng.normal(size=(size, D))
        if target is not None:
            own[:, target] = 0.0
            noise[:, target] *= 2.0
        x = noise @ np.linalg.inv(np.eye(D) - own)
        tables.append(dict(zip(names, x.T, strict=True)))
    return ist.DAG(names, edges), tables, [[], *([names[t]] for t in chosen)]


def directed(solution: ist.Solution, dag: ist.DAG) -> tuple[float, float]:
    """Edges of the class with the right direction, and with a wrong one."""
    told = set(solution.cpdag.directed)
    right = sum(edge in told for edge in dag.edges)
    return float(right), float(sum((b, a) in told for a, b in dag.edges))


def simulated(seeds: int) -> list[str]:
    """Return the table of simulated networks."""
    lines = [
        "| targets | edges directed rightly | wrongly | DAG-SHD |",
        "| --- | --- | --- | --- |",
    ]
    for regimes in (0, 1, 2, 5, 10):
        rows = []
        for seed in range(seeds):
            dag, tables, targets = simulate(seed, regimes)
            solution = ist.learn(ist.Interventions(tables, targets))
            rows.append((*directed(solution, dag), float(ist.shd(solution.dag, dag))))
        right, wrong, distance = np.mean(rows, axis=0)
        lines.append(f"| {regimes} | {right:.1f} of {EDGES} | {wrong:.1f} | {distance:.1f} |")
    return lines


def sachs() -> list[str]:
    """Return the table of the protein data."""
    with gzip.open(DATA / "sachs_7466_raw.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in rows[0] if name != "condition_id"]
    condition = np.array([int(row["condition_id"]) for row in rows])
    values = {n: np.log([float(row[n]) for row in rows]) for n in names}
    groups = {n: np.argsort(np.argsort(x, kind="stable")) * 3 // len(x) for n, x in values.items()}
    with (DATA / "sachs_conditions.csv").open() as file:
        targets = {
            int(row["condition_id"]): [t for t in [row["intervention_target"]] if t]
            for row in csv.DictReader(file)
            if int(row["condition_id"]) in set(condition.tolist())
        }
    with (DATA / "sachs_dag_17edges.csv").open() as file:
        true = ist.DAG(names, [(row["from"], row["to"]) for row in csv.DictReader(file)])
    lines = ["| data | rows | edges | right | reversed | extra | lacking | SHD |"]
    lines.append("| --- " * 8 + "|")
    for label, table in (("logarithms, `GaussianEBIC`", values), ("3 groups, `EBIC`", groups)):
        first = {n: x[condition == 1] for n, x in table.items()}
        source = ist.Interventions(table | {"condition": condition}, targets, column="condition")
        for rows_, data in (("condition 1", first), ("pooled", table), ("regimes", source)):
            dag = ist.learn(data).dag
            right = len(set(dag.edges) & set(true.edges))
            turned = len({(b, a) for a, b in dag.edges} & set(true.edges))
            extra, lacking = len(dag.edges) - right - turned, len(true.edges) - right - turned
            figures = (len(dag.edges), right, turned, extra, lacking, ist.shd(dag, true))
            lines.append(f"| {label} | {rows_} | {' | '.join(map(str, figures))} |")
    return lines


def main() -> None:
    """Measure and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=30)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    command = f"`python benchmarks/interventions.py --seeds {options.seeds}`"
    lines = ["# Interventions", "", command, "", "## Simulated", "", *simulated(options.seeds)]
    lines += ["", "## Sachs", "", *sachs()]
    (HERE / "results" / "interventions.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
