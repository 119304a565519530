"""Boss beside FLOP (``pip install flopsearch``) on dense linear Gaussian graphs, with one score.

Erdős–Rényi graphs with 100 variables, 1,000 rows, standardised columns. FLOP's λ = 2 is
``GaussianBIC(penalty_discount=2)``. Methods run in turn, in one process; times are CPU seconds.
"gain" is how much better than the true graph the learned one scores: where it is positive, a
search that finds the best graph does not find the true one. Results that are there already are not
computed again.

    python benchmarks/orders/dense.py run --degrees 2 4 8 16 --seeds 30
    python benchmarks/orders/dense.py render > benchmarks/results/dense.md
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist
from isthmus import simulate

LEDGER = Path(__file__).parents[1] / "results" / "dense.jsonl"
SCORE = ist.GaussianBIC(penalty_discount=2.0)
ROWS = 1000
SAME = 1e-3
"""Scores that differ by less are those of one class."""
Columns = np.ndarray[Any, Any]


def draw(d: int, degree: int, low: float, high: float, seed: int) -> tuple[ist.DAG, Columns]:
    dag = simulate.erdos_renyi(d, d * degree // 2, seed=seed)
    weights = simulate.UniformWeights(low, high)
    table = simulate.linear(dag, ROWS, weights=weights, seed=seed).data
    columns = np.column_stack([table[node] for node in dag.nodes])
    return dag, (columns - columns.mean(axis=0)) / columns.std(axis=0)


def marks(cpdag: ist.CPDAG, nodes: tuple[str, ...]) -> Columns:
    """Return a CPDAG as flopsearch does: 1 for an edge from row to column, 2 for a line."""
    place = {node: i for i, node in enumerate(nodes)}
    matrix = np.zeros((len(nodes), len(nodes)), int)
    for a, b in cpdag.directed:
        matrix[place[a], place[b]] = 1
    for a, b in cpdag.undirected:
        matrix[place[a], place[b]] = matrix[place[b], place[a]] = 2
    return matrix


def graph_of(matrix: Columns, nodes: tuple[str, ...]) -> ist.DAG:
    """Return a member of the class that a matrix of marks describes."""
    pairs = [(nodes[i], nodes[j]) for i, j in np.argwhere(matrix == 1)]
    lines = [(nodes[i], nodes[j]) for i, j in np.argwhere(np.triu(matrix == 2))]
    return ist.PDAG(nodes, directed=pairs, undirected=lines).to_dag()


def distance(one: Columns, other: Columns) -> int:
    differ = (one != other) | (one.T != other.T)
    return int(np.triu(differ, 1).sum())


def methods(names: list[str]) -> dict[str, Callable[[Columns, tuple[str, ...]], Columns]]:
    import flopsearch

    def boss(starts: int | None) -> Callable[[Columns, tuple[str, ...]], Columns]:
        def learn(columns: Columns, nodes: tuple[str, ...]) -> Columns:
            table = dict(zip(nodes, columns.T, strict=True))
            solution = ist.learn(table, score=SCORE, search=ist.Boss(starts=starts), seed=0)
            return marks(solution.cpdag, nodes)

        return learn

    every = {
        "Boss()": boss(None),
        "FLOP, 20 restarts": lambda x, _: np.asarray(flopsearch.flop(x, 2.0, restarts=20)),
        "Boss(starts=1)": boss(1),
        "FLOP, no restart": lambda x, _: np.asarray(flopsearch.flop(x, 2.0, restarts=0)),
    }
    return {name: every[name] for name in names or every}


def read() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LEDGER.read_text().splitlines()] if LEDGER.exists() else []


def run(options: argparse.Namespace) -> None:
    warnings.simplefilter("ignore")
    done = {tuple(one["key"]) for one in read()}
    low, high = options.weights
    chosen = methods(options.methods)
    warm, _ = draw(10, 2, low, high, 0)
    ist.learn(simulate.linear(warm, 100, seed=0).data)
    for seed in range(options.seeds):
        for degree in options.degrees:
            dag, columns = draw(options.d, degree, low, high, seed)
            truth = marks(dag.cpdag(), dag.nodes)
            table = dict(zip(dag.nodes, columns.T, strict=True))
            total = ist.score(table, dag, SCORE)
            for name, method in chosen.items():
                key = (options.d, degree, low, high, seed, name)
                if key in done:
                    continue
                begun = time.process_time()
                learned = method(columns, dag.nodes)
                seconds = time.process_time() - begun
                row = {"key": key, "shd": distance(learned, truth), "seconds": round(seconds, 3)}
                gain = ist.score(table, graph_of(learned, dag.nodes), SCORE) - total
                row["gain"] = round(gain, 4)
                with LEDGER.open("a") as file:
                    print(json.dumps(row), file=file)


def render() -> None:
    groups: dict[tuple[Any, ...], dict[str, list[dict[str, Any]]]] = {}
    for one in read():
        d, degree, low, high, _, name = one["key"]
        groups.setdefault((low, high, d, degree), {}).setdefault(name, []).append(one)
    print("# Boss and FLOP on dense graphs\n")
    print("`python benchmarks/orders/dense.py run`; CPU seconds of one thread, same seeds.")
    print("FLOP draws its restarts anew in each run, so its figures change a little.\n")
    print(
        "| weights | variables | degree | method | seeds | exact CPDAGs | mean SHD | largest SHD "
        "| best score of all | mean CPU s |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for (low, high, d, degree), by_method in sorted(groups.items()):
        seeds = [{one["key"][4] for one in ones} for ones in by_method.values()]
        common = set.intersection(*seeds)
        best: dict[int, float] = {}
        for one in (one for ones in by_method.values() for one in ones if "gain" in one):
            best[one["key"][4]] = max(best.get(one["key"][4], -np.inf), one["gain"])
        for name, every in by_method.items():
            ones = [one for one in every if one["key"][4] in common]
            shd = [one["shd"] for one in ones]
            seconds = np.mean([one["seconds"] for one in ones])
            reached = [one["gain"] > best[one["key"][4]] - SAME for one in ones if "gain" in one]
            shown = f"{sum(reached)} of {len(reached)}" if reached else ""
            print(
                f"| ±U({low}, {high}) | {d} | {degree} | {name} | {len(ones)} | {shd.count(0)} "
                f"| {np.mean(shd):.1f} | {max(shd)} | {shown} | {seconds:.2f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=("run", "render"))
    parser.add_argument("--d", type=int, default=100)
    parser.add_argument("--degrees", type=int, nargs="+", default=[2, 4, 8, 16])
    parser.add_argument("--weights", type=float, nargs=2, default=[0.5, 2.0])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--methods", nargs="*", default=[])
    options = parser.parse_args()
    if options.task == "run":
        run(options)
    else:
        render()


if __name__ == "__main__":
    main()
