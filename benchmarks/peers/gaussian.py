"""Linear Gaussian data: errors and time of peers and of ours on the same tables.

Erdős–Rényi graphs with 2d edges, weights ±[0.5, 2], unit noise; as drawn, standardised after
the fact, or standardised as they are made. The error is the number of pairs of nodes whose mark
differs between the CPDAG of the truth and that of the answer.

    python benchmarks/peers/gaussian.py --sizes 20 50 100 --seeds 0 1 2
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import numpy as np
from harness import Ledger, Run, call, footnote, seconds

from isthmus import simulate
from isthmus.errors import GraphError
from isthmus.graphs import DAG

PEERS = (
    "causal-learn BOSS", "causal-learn BOSS, BIC", "causal-learn GRaSP", "causal-learn GES",
    "dagma", "pybnesian hc, BGe", "pybnesian hc, BIC",
    "sort by variance, regress", "sort by R2, regress",
)  # fmt: skip
OURS = (
    "isthmus default: BOSS, EBIC, 4 starts", "isthmus BOSS, EBIC, 1 start",
    "isthmus BOSS, 4 x BIC, 1 start", "isthmus BOSS, BIC, 1 start",
    "isthmus XGES, EBIC", "isthmus HillClimb, EBIC",
)  # fmt: skip
SCALES = ("raw", "standardised", "internal")
Marks = set[tuple[str, int, int]]


def table(d: int, n: int, scale: str, seed: int) -> simulate.Simulation:
    dag = simulate.erdos_renyi(d, 2 * d, seed=seed)
    drawn = simulate.linear(dag, n, internally_standardised=scale == "internal", seed=seed)
    return drawn.standardised() if scale == "standardised" else drawn


def marks_of(dag: DAG) -> Marks:
    """Give the CPDAG as marks by pair of indices."""
    cpdag = dag.cpdag()
    directed = {("->", dag.index(a), dag.index(b)) for a, b in cpdag.directed}
    pairs = ((dag.index(a), dag.index(b)) for a, b in cpdag.undirected)
    return directed | {("--", min(pair), max(pair)) for pair in pairs}


def answer_marks(run: Run, nodes: tuple[str, ...]) -> Marks | None:
    if run["undirected"] is None:
        try:
            dag = DAG(nodes, [(nodes[a], nodes[b]) for a, b in run["edges"]])
        except GraphError:
            return None
        return marks_of(dag)
    directed: Marks = {("->", a, b) for a, b in run["edges"]}
    return directed | {("--", min(a, b), max(a, b)) for a, b in run["undirected"]}


def distance(one: Marks, other: Marks) -> int:
    return len({(min(i, j), max(i, j)) for _, i, j in one ^ other})


def measure(method: str, d: int, scale: str, seed: int, options: Any) -> Run:
    drawn = table(d, options.n, scale, seed)
    arrays = {"names": np.array(drawn.dag.nodes), "values": drawn.array()}
    run = call(method, arrays, seed=seed, timeout=options.timeout, again=options.again)
    if run["status"] == "ok":
        marks = answer_marks(run, drawn.dag.nodes)
        if marks is None:
            run = {"status": "cyclic"}
        else:
            run["shd"] = distance(marks, marks_of(drawn.dag))
            run["size"] = len(run["edges"]) + len(run["undirected"] or ())
            del run["edges"], run["undirected"]
    return {"scale": scale, "d": d, "method": method, "seed": seed, "n": options.n, **run}


def cell(runs: list[Run], seeds: int) -> str:
    done = [run for run in runs if run["status"] == "ok"]
    if not runs:
        return "–"
    if not done:
        run = runs[0]
        return f"> {run['timeout']:.0f} s" if run["status"] == "time-out" else run["status"]
    time = seconds(statistics.median(run["cpu"] for run in done))
    first = statistics.median(run["first_cpu"] for run in done)
    errors = statistics.mean(run["shd"] for run in done)
    lost = f", {len(done)} of {seeds} seeds" if len(done) < seeds else ""
    again = f" [{seconds(first)}]" if done[0]["warm"] else ""
    return f"{time}{again} ({errors:.1f}{lost})"


def render(ledger: Ledger) -> str:
    text = (
        "# Linear Gaussian, ER with 2d edges, n = 1000\n\nCPU seconds, median over seeds, warm "
        "(second call in the process) where there was one, then [first call]; in brackets the "
        "mean CPDAG-SHD.\ncausal-learn's BOSS and GRaSP have by default four times the penalty of "
        "BIC (lambda 2; BIC is 0.5).\n"
    )
    for scale in SCALES:
        runs = [run for run in ledger.runs if run["scale"] == scale]
        if not runs:
            continue
        sizes = sorted({run["d"] for run in runs})
        seeds = sorted({run["seed"] for run in runs})
        head = " | ".join(f"d = {d}" for d in sizes)
        text += f"\n## {scale.capitalize()}, {len(seeds)} seeds\n\n| method | {head} |\n"
        text += "| --- " * (len(sizes) + 1) + "|\n"
        for method in (*OURS, *PEERS):
            mine = [run for run in runs if run["method"] == method]
            if mine:
                cells = (cell([run for run in mine if run["d"] == d], len(seeds)) for d in sizes)
                text += f"| {method} | {' | '.join(cells)} |\n"
    return text + "\n" + footnote()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=[*PEERS, *OURS])
    parser.add_argument("--sizes", nargs="+", type=int, default=[20, 50, 100])
    parser.add_argument("--scales", nargs="+", choices=SCALES, default=["raw", "standardised"])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--n", type=int, default=1000)
    parser.add_argument("--timeout", type=float, default=240.0)
    parser.add_argument(
        "--again", type=float, default=5.0, help="second call if the first is under"
    )
    parser.add_argument("--skip-done", action="store_true", help="leave runs that are on file")
    parser.add_argument("--name", default="gaussian", help="of the files under benchmarks/results")
    options = parser.parse_args()
    ledger = Ledger(options.name, ("scale", "d", "method", "seed"))
    for d in options.sizes:
        for method in options.methods:
            slow = False
            for scale in options.scales:
                for seed in options.seeds:
                    key = {"scale": scale, "d": d, "method": method, "seed": seed}
                    if slow or (options.skip_done and ledger.has(**key)):
                        continue
                    run = measure(method, d, scale, seed, options)
                    ledger.add(run)
                    ledger.write_table(render(ledger))
                    print(
                        {k: v for k, v in run.items() if k not in {"n", "first_wall"}}, flush=True
                    )
                    # Another seed will not be quicker: one time-out tells enough.
                    slow = run["status"] == "time-out"
    ledger.write_table(render(ledger))


if __name__ == "__main__":
    main()
