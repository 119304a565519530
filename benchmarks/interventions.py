"""Interventions: simulated regimes, and the protein data of Sachs et al. (2005).

    python benchmarks/interventions.py [--seeds 30] [--genes 600]

Simulated: linear Gaussian networks of 10 variables and 15 edges, 1,000 rows in all, half of them
observational; the others are divided among regimes with one random target each, which is set to
normal noise. Sachs: 7,466 cells under nine conditions, logarithms or three equal groups per
protein, against the consensus network of 17 edges. The literature on interventions uses the
logarithms of the first 5,846 of these cells, with 1,755 observational ones and PIP3 as the target
of the seventh condition; on this table, GIES (``pip install gies``) and IGSP (``pip install
causaldag``) are run as well, if they are installed. The tables are written to
benchmarks/results/interventions.md.

With ``--genes``, nothing else is run: a screen of so many genes, each knocked down in 50 cells, and
ten times as many cells without a target; a linear graph with one edge per gene on average.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import random
import resource
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        "| targets | edges directed correctly | wrongly | DAG-SHD |",
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


@dataclass(frozen=True)
class Cells:
    """The protein data: logarithms by protein, the condition of each cell, and the truth."""

    values: dict[str, Any]
    condition: NDArray[np.int64]
    targets: dict[int, list[str]]
    true: ist.DAG

    @classmethod
    def read(cls) -> Cells:
        """Read the files."""
        with gzip.open(DATA / "sachs_7466_raw.csv.gz", "rt") as file:
            rows = list(csv.DictReader(file))
        names = [name for name in rows[0] if name != "condition_id"]
        condition = np.array([int(row["condition_id"]) for row in rows])
        values = {n: np.log([float(row[n]) for row in rows]) for n in names}
        with (DATA / "sachs_conditions.csv").open() as file:
            targets = {
                int(row["condition_id"]): [t for t in [row["intervention_target"]] if t]
                for row in csv.DictReader(file)
                if int(row["condition_id"]) in set(condition.tolist())
            }
        with (DATA / "sachs_dag_17edges.csv").open() as file:
            true = ist.DAG(names, [(row["from"], row["to"]) for row in csv.DictReader(file)])
        return cls(values, condition, targets, true)


def sachs(cells: Cells) -> list[str]:
    """Return the table of all cells."""
    values, condition, true = cells.values, cells.condition, cells.true
    groups = {n: np.argsort(np.argsort(x, kind="stable")) * 3 // len(x) for n, x in values.items()}
    lines = ["| data | rows | edges | right | reversed | extra | lacking | SHD |"]
    lines.append("| --- " * 8 + "|")
    for label, table in (("logarithms, `GaussianEBIC`", values), ("3 groups, `EBIC`", groups)):
        first = {n: x[condition == 1] for n, x in table.items()}
        source = ist.Interventions(
            table | {"condition": condition}, cells.targets, column="condition"
        )
        for rows_, data in (("condition 1", first), ("pooled", table), ("regimes", source)):
            dag = ist.learn(data).dag
            right = len(set(dag.edges) & set(true.edges))
            turned = len({(b, a) for a, b in dag.edges} & set(true.edges))
            extra, lacking = len(dag.edges) - right - turned, len(true.edges) - right - turned
            figures = (len(dag.edges), right, turned, extra, lacking, ist.shd(dag, true))
            lines.append(f"| {label} | {rows_} | {' | '.join(map(str, figures))} |")
    return lines


Marks = Callable[[], NDArray[np.bool_]]
"""Learns a graph: ``[i, j]`` says that j may be reached from i, both ways if undirected."""


def published_table(cells: Cells) -> tuple[list[NDArray[np.float64]], list[list[int]]]:
    """Return the tables of the literature and their targets, the observational one first."""
    names = list(cells.values)
    rows = np.stack([cells.values[n] for n in names], axis=1)
    tables, targets = [rows[np.isin(cells.condition, (1, 2))]], [list[int]()]
    for number in range(3, 8):
        (target,) = cells.targets[number] or ["PIP3"]
        tables.append(rows[cells.condition == number])
        targets.append([names.index(target)])
    return tables, targets


def ours(names: list[str], data: object, score: ist.GaussianBIC | None) -> NDArray[np.bool_]:
    """Return the interventional equivalence class that Isthmus learns."""
    pdag = ist.learn(data, score=score).cpdag
    marks = np.zeros((len(names), len(names)), dtype=bool)
    for a, b in pdag.directed:
        marks[names.index(a), names.index(b)] = True
    for a, b in pdag.undirected:
        marks[names.index(a), names.index(b)] = marks[names.index(b), names.index(a)] = True
    return marks


def igsp(
    tables: list[NDArray[np.float64]], targets: list[list[int]], alpha: float
) -> NDArray[np.bool_]:
    """Return the equivalence class of the graph that IGSP learns with Gaussian tests."""
    import conditional_independence as ci
    from graphical_model_learning import igsp as run

    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - the library draws from it
    tests = ci.MemoizedCI_Tester(
        ci.partial_correlation_test, ci.partial_correlation_suffstat(tables[0]), alpha=alpha
    )
    invariance = ci.MemoizedInvarianceTester(
        ci.gauss_invariance_test, ci.gauss_invariance_suffstat(tables[0], tables[1:]), alpha=alpha
    )
    settings = [{"interventions": set(t)} for t in targets[1:]]
    dag = run(settings, set(range(tables[0].shape[1])), tests, invariance, nruns=10)
    pdag = dag.interventional_cpdag([set(t) for t in targets[1:]], cpdag=dag.cpdag())
    return np.asarray(pdag.to_amat()[0]).astype(bool)


def sachs_beside_peers(cells: Cells) -> list[str]:
    """Return the table of the cells that the literature uses."""
    tables, targets = published_table(cells)
    names = list(cells.values)
    frames = [dict(zip(names, table.T, strict=True)) for table in tables]
    data = ist.Interventions(frames, [[names[t] for t in ts] for ts in targets])
    pooled = {n: np.concatenate([f[n] for f in frames]) for n in names}
    centred = ist.Interventions(
        [{n: x - x.mean() for n, x in frame.items()} for frame in frames],
        [[names[t] for t in ts] for ts in targets],
    )
    methods: dict[str, Marks] = {
        "`learn`, without the targets": lambda: ours(names, pooled, None),
        "`learn`": lambda: ours(names, data, None),
        "`learn`, `GaussianBIC`": lambda: ours(names, data, ist.GaussianBIC()),
        "`learn`, centred": lambda: ours(names, centred, None),
        "`learn`, centred, `GaussianBIC`": lambda: ours(names, centred, ist.GaussianBIC()),
    }
    if find_spec("gies"):
        import gies

        methods["GIES (gies), which centres"] = lambda: gies.fit_bic(tables, targets)[0].astype(
            bool
        )
    if find_spec("graphical_model_learning"):
        for alpha in (1e-20, 1e-5, 1e-3, 0.05):
            label = f"IGSP (causaldag), Gaussian tests at {alpha:g}"
            methods[label] = partial(igsp, tables, targets, alpha)
    true = cells.true.adjacency().astype(bool)
    lines = ["| method | edges | right | undirected | reversed | extra | lacking | SHD |"]
    lines.append("| --- " * 8 + "|")
    for label, learn in methods.items():
        marks = learn()
        edge, both = marks | marks.T, marks & marks.T
        right = (marks & ~both & true).sum()
        undirected, turned = (both & true).sum(), (marks.T & ~both & true).sum()
        extra, lacking = edge.sum() // 2 - (edge & true).sum(), (true & ~edge).sum()
        figures = [edge.sum() // 2, right, undirected, turned, extra, lacking]
        lines.append(f"| {label} | {' | '.join(map(str, (*figures, sum(figures[2:]))))} |")
    return lines


def screen(genes: int, cells: int = 50) -> str:
    """Return time, memory and accuracy of a screen in which each gene is knocked down."""
    rng = np.random.default_rng(0)
    order, weights = rng.permutation(genes), np.zeros((genes, genes))
    while np.count_nonzero(weights) < genes:
        i, j = sorted(rng.choice(genes, 2, replace=False))
        weights[order[i], order[j]] = rng.choice([-1, 1]) * rng.uniform(0.5, 1.0)
    guide = np.concatenate([np.full(10 * cells, genes), np.repeat(np.arange(genes), cells)])
    values = rng.normal(size=(len(guide), genes))
    for v in order:
        own, parents = guide == v, np.flatnonzero(weights[:, v])
        values[own, v] = -2.0 + 0.5 * values[own, v]
        values[~own, v] += (values[:, parents] @ weights[parents, v])[~own]
    names = [f"g{i}" for i in range(genes)]
    table = dict(zip(names, values.T, strict=True)) | {"guide": guide}
    targets = {k: [names[k]] for k in range(genes)} | {genes: []}
    begin = time.process_time()
    learned = ist.learn(ist.Interventions(table, targets, column="guide")).dag
    seconds = time.process_time() - begin
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    true = {(names[i], names[j]) for i, j in np.argwhere(weights)}
    right = len(true & set(learned.edges))
    return (
        f"{genes:,} genes, {len(guide):,} cells: {seconds:.1f} s of CPU, {gigabytes:.2f} GB, "
        f"precision {right / max(len(learned.edges), 1):.3f}, recall {right / len(true):.3f}"
    )


def main() -> None:
    """Measure and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--genes", type=int)
    options = parser.parse_args()
    if options.genes is not None:
        print(screen(options.genes))
        return
    warnings.simplefilter("ignore")
    command = f"`python benchmarks/interventions.py --seeds {options.seeds}`"
    lines = ["# Interventions", "", command, "", "## Simulated", "", *simulated(options.seeds)]
    cells = Cells.read()
    lines += ["", "## Sachs", "", *sachs(cells)]
    lines += ["", "## Sachs, the 5,846 cells of the literature", "", *sachs_beside_peers(cells)]
    (HERE / "results" / "interventions.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
