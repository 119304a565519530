"""Discrete data: BIC reached and time of peers and of ours on the same tables.

Rows are drawn from the repository networks. The BIC of every answer is computed here, by one
function that knows nothing of any learner: log-likelihood minus log(n)/2 a free parameter, in
nats, with the levels that occur in the data.

    python benchmarks/peers/discrete.py --networks alarm hailfinder --seeds 0
"""

from __future__ import annotations

import argparse
import os
import statistics
from pathlib import Path
from typing import Any

import numpy as np
from harness import Ledger, Run, call, footnote, seconds
from numpy.typing import NDArray

from isthmus import simulate
from isthmus.errors import GraphError
from isthmus.graphs import DAG
from isthmus.io import read_bif

PEERS = ("pybnesian hc", "pyagrum hc", "pyagrum tabu", "pgmpy hc")
OURS = (
    "isthmus default: XGES", "isthmus XGES, not extended", "isthmus BOSS", "isthmus HillClimb",
)  # fmt: skip
NETWORKS = ("alarm", "hailfinder", "hepar2", "pathfinder", "andes")
TRUTH = "the true graph"
Codes = NDArray[np.int64]


def data_folder() -> Path:
    default = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    return Path(os.environ.get("ISTHMUS_DATA", default)) / "networks"


def table(network: str, n: int, seed: int) -> tuple[DAG, Codes, list[int]]:
    """Give the graph, codes (row = observation) and how many levels occur in each column."""
    drawn = simulate.discrete(read_bif(data_folder() / f"{network}.bif.gz"), n, seed=seed)
    columns, sizes = [], []
    for name in drawn.dag.nodes:
        levels, codes = np.unique(drawn.data[name], return_inverse=True)
        columns.append(codes.astype(np.int64))
        sizes.append(len(levels))
    return drawn.dag, np.column_stack(columns), sizes


def bic(codes: Codes, sizes: list[int], edges: list[Any]) -> float:
    """Compute the BIC of a graph slowly and plainly."""
    n, d = codes.shape
    parents: list[list[int]] = [[] for _ in range(d)]
    for tail, head in edges:
        parents[head].append(tail)
    total = 0.0
    for child in range(d):
        group = np.zeros(n, dtype=np.int64)
        rows = 1.0
        for parent in parents[child]:
            # Renumbered after each parent, so that the keys stay small whatever the sizes.
            _, group = np.unique(group * sizes[parent] + codes[:, parent], return_inverse=True)
            rows *= sizes[parent]
        joint = np.unique(group * sizes[child] + codes[:, child], return_counts=True)[1]
        margin = np.unique(group, return_counts=True)[1]
        total += float((joint * np.log(joint)).sum() - (margin * np.log(margin)).sum())
        total -= 0.5 * np.log(n) * rows * (sizes[child] - 1)
    return float(total)


def measure(method: str, network: str, seed: int, options: Any) -> Run:
    dag, codes, sizes = table(network, options.rows, seed)
    truth = [(dag.index(a), dag.index(b)) for a, b in dag.edges]
    key = {"network": network, "method": method, "seed": seed, "rows": options.rows}
    if method == TRUTH:
        return {**key, "status": "ok", "bic": bic(codes, sizes, truth), "size": len(truth)}
    # Columns go in an order that says nothing: networks are often written causes first.
    order = np.random.default_rng(seed).permutation(len(dag.nodes))
    arrays = {
        "names": np.array(dag.nodes)[order],
        "values": codes[:, order],
        "levels": np.array(sizes)[order],
    }
    run = call(method, arrays, seed=seed, timeout=options.timeout, again=options.again)
    if run["status"] == "ok":
        edges = [(int(order[a]), int(order[b])) for a, b in run["edges"]]
        try:
            found = DAG(dag.nodes, [(dag.nodes[a], dag.nodes[b]) for a, b in edges])
        except GraphError:
            return {**key, "status": "cyclic"}
        run["bic"] = bic(codes, sizes, edges)
        run["shd"] = len({frozenset(edge) for edge in set(found.edges) ^ set(dag.edges)})
        run["size"] = len(edges)
        del run["edges"], run["undirected"]
    return {**key, **run}


def cell(runs: list[Run], seeds: int) -> str:
    if not runs:
        return "–"
    done = [run for run in runs if run["status"] == "ok"]
    if not done:
        run = runs[0]
        return f"> {run['timeout']:.0f} s" if run["status"] == "time-out" else run["status"]
    score = f"{statistics.mean(run['bic'] for run in done):.1f}"
    if "cpu" not in done[0]:
        return score
    time = seconds(statistics.median(run["cpu"] for run in done))
    first = statistics.median(run["first_cpu"] for run in done)
    again = f" [{seconds(first)}]" if done[0]["warm"] else ""
    shd = statistics.mean(run["shd"] for run in done)
    # A mean over other seeds than the neighbours' is not comparable with theirs: say so.
    few = f", seeds {', '.join(str(run['seed']) for run in done)} only" if len(done) < seeds else ""
    return f"{time}{again}, {score} ({shd:.0f}{few})"


def render(ledger: Ledger) -> str:
    networks = [name for name in NETWORKS if any(r["network"] == name for r in ledger.runs)]
    seeds = sorted({run["seed"] for run in ledger.runs})
    rows = sorted({run["rows"] for run in ledger.runs})
    text = (
        f"# Discrete, {', '.join(map(str, rows))} rows, BIC, {len(seeds)} seed(s)\n\nCPU seconds, "
        "median over seeds, warm (second call in the process) where there was one, then [first "
        "call]; mean BIC reached (nats, higher is better, levels that occur in the data); in "
        "brackets the mean SHD to the true DAG.\n\n"
        f"| method | {' | '.join(networks)} |\n" + "| --- " * (len(networks) + 1) + "|\n"
    )
    for method in (*OURS, *PEERS, TRUTH):
        mine = [run for run in ledger.runs if run["method"] == method]
        if mine:
            cells = (
                cell([run for run in mine if run["network"] == name], len(seeds))
                for name in networks
            )
            text += f"| {method} | {' | '.join(cells)} |\n"
    return text + "\n" + footnote()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=[TRUTH, *PEERS, *OURS])
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument(
        "--again", type=float, default=20.0, help="second call if the first is under"
    )
    parser.add_argument("--skip-done", action="store_true", help="leave runs that are on file")
    parser.add_argument("--name", default="discrete", help="of the files under benchmarks/results")
    options = parser.parse_args()
    ledger = Ledger(options.name, ("network", "method", "seed"))
    for network in options.networks:
        for method in options.methods:
            slow = False
            for seed in options.seeds:
                key = {"network": network, "method": method, "seed": seed}
                if slow or (options.skip_done and ledger.has(**key)):
                    continue
                run = measure(method, network, seed, options)
                ledger.add(run)
                ledger.write_table(render(ledger))
                print(run, flush=True)
                slow = run["status"] == "time-out"
    ledger.write_table(render(ledger))


if __name__ == "__main__":
    main()
