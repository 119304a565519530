"""Figure 1 of Giudice, Kuipers and Moffa 2023: how close posteriors of four samplers are to truth.

Random graphs of ten nodes (each pair adjacent with probability 0.2), 100 rows, functions of the
paper (Fourier series, each parent with its own) of growing nonlinearity λ. The expected structural
Hamming distance between a draw from the posterior and the true graph, for `GP` and `BGe` with
order and partition MCMC, on standardised columns, with at most three parents for all.

    OMP_NUM_THREADS=1 python benchmarks/posterior/gp_figure1.py run 50       # graphs per λ
    python benchmarks/posterior/gp_figure1.py table
    python benchmarks/posterior/gp_figure1.py plot docs/explanation/gp-figure1.svg

`run` appends a line per table to the results and skips those that are there already. It takes
ten to twenty-five seconds of CPU time per table.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist
from isthmus import simulate
from isthmus.metrics import shd, shd_cpdag
from isthmus.objectives import LocalScore
from isthmus.results import Ensemble
from isthmus.watch import drive

RESULTS = Path(__file__).parents[1] / "results" / "gp-figure1.jsonl"
LAMBDAS = (0.0, 0.5, 1.0)
MOST = 3
"""Parents of a node. A graph has 0.2 nodes with more on average."""
DRAWS, CHAINS = 250, 4
METHODS = ("BGe order", "BGe partition", "GP order", "GP partition")
SAMPLERS: dict[str, Any] = {
    "order": ist.OrderMCMC(max_parents=MOST, jobs=1),
    "partition": ist.PartitionMCMC(max_parents=MOST, jobs=1),
}


def truth_and_rows(seed: int, decay: float) -> tuple[ist.DAG, ist.Frame]:
    """One random graph, and 100 rows; graphs of one seed are the same for all λ."""
    dag = simulate.erdos_renyi(10, degree=0.2 * 9, seed=seed)
    mechanism = simulate.FourierAdditive(decay=decay)
    rows = simulate.nonlinear(dag, 100, mechanism=mechanism, seed=seed).standardised()
    return dag, ist.Frame(rows.array(), names=list(dag.nodes))


def expected(ensemble: Ensemble, truth: ist.DAG) -> dict[str, float]:
    """Expected distances of a draw from the true graph, as a DAG and as an equivalence class."""
    return {
        "dag": ensemble.probability(lambda dag: shd(truth, dag)),
        "cpdag": ensemble.probability(lambda dag: shd_cpdag(truth, dag)),
    }


def expected_from_edges(edges: np.ndarray, truth: ist.DAG) -> float:
    """The distance of DAGs is a sum over pairs, so its expectation follows from edges alone."""
    true = truth.adjacency().astype(bool)
    adjacent = true | true.T
    return float((1.0 - edges[true]).sum() + edges[~adjacent].sum())


def draw(local: LocalScore, sampler: Any, seed: int) -> tuple[Ensemble, Any]:
    knowledge = ist.Knowledge().bind(local.nodes)
    run = partial(
        sampler.sample, local, knowledge, np.random.default_rng(seed), draws=DRAWS, chains=CHAINS
    )
    draws, _ = drive(run, type(sampler).__name__)
    counts = np.bincount(draws.chains.ravel(), minlength=len(draws.parents)).astype(float)
    return Ensemble(local.nodes, draws.parents, counts, draws.log_scores), draws


def one(seed: int, decay: float) -> dict[str, Any]:
    truth, frame = truth_and_rows(seed, decay)
    scores = {
        "BGe": ist.BGe().bind(frame.moments()),
        "GP": ist.GP().bind(ist.WithFeatures(frame, ist.GP().basis).moments()),
    }
    record: dict[str, Any] = {"graph": seed, "lambda": decay, "edges": len(truth.edges)}
    for name, local in scores.items():
        begin = time.process_time()
        exact = ist.ExactPosterior(max_parents=MOST)  # first, so that it computes the families
        _, draws = draw(local, exact, seed)
        record[f"{name} exact"] = {"dag": expected_from_edges(draws.edge_probabilities, truth)}
        record[f"{name} families s"] = round(time.process_time() - begin, 2)
        for kind, sampler in SAMPLERS.items():
            begin = time.process_time()
            ensemble, _ = draw(local, sampler, seed)
            record[f"{name} {kind}"] = expected(ensemble, truth)
            record[f"{name} {kind} s"] = round(time.process_time() - begin, 2)
    return record


def recorded() -> list[dict[str, Any]]:
    if not RESULTS.exists():
        return []
    return [json.loads(line) for line in RESULTS.read_text().splitlines()]


def append(record: dict[str, Any]) -> None:
    with RESULTS.open("a") as file:
        file.write(json.dumps(record) + "\n")


def run(graphs: int) -> None:
    done = {(r["graph"], r["lambda"]) for r in recorded()}
    for seed in range(graphs):
        for decay in LAMBDAS:
            if (seed, decay) not in done:
                append(one(seed, decay))
                print(seed, decay, flush=True)


def quartiles(decay: float, method: str, kind: str) -> np.ndarray:
    values = [r[method][kind] for r in recorded() if r["lambda"] == decay]
    return np.quantile(values, [0.25, 0.5, 0.75])


def table() -> None:
    """Print medians, and quartiles in parentheses."""
    print("| graphs | λ | " + " | ".join(METHODS) + " |\n" + "| --- " * 6 + "|")
    for kind in ("dag", "cpdag"):
        for decay in LAMBDAS:
            cells = []
            for method in METHODS:
                low, middle, high = quartiles(decay, method, kind)
                cells.append(f"{middle:.1f} ({low:.1f}–{high:.1f})")
            print(f"| {kind.upper()} | {decay:g} | " + " | ".join(cells) + " |")
    for decay in LAMBDAS:
        chosen = [r for r in recorded() if r["lambda"] == decay]
        errors = [
            abs(r[f"{s} exact"]["dag"] - r[f"{s} partition"]["dag"])
            for r in chosen
            for s in ("BGe", "GP")
        ]
        print(f"λ = {decay:g}: {len(chosen)} graphs; partition against exact: {max(errors):.2f}")


def plot(path: str) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True)
    for axis, decay in zip(axes, LAMBDAS, strict=True):
        chosen = [r for r in recorded() if r["lambda"] == decay]
        axis.boxplot([[r[m]["dag"] for r in chosen] for m in METHODS], widths=0.6)
        axis.set_xticks(range(1, 5), [m.replace(" ", "\n") for m in METHODS], fontsize=8)
        axis.set_title(f"λ = {decay:g}, {len(chosen)} graphs", fontsize=9)
    axes[0].set_ylabel("expected distance to the true DAG")
    figure.tight_layout()
    figure.savefig(path)


def main() -> None:
    command, *rest = sys.argv[1:]
    if command == "run":
        run(int(rest[0]))
    elif command == "table":
        table()
    elif command == "plot":
        plot(rest[0])


if __name__ == "__main__":
    main()
