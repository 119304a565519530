"""How much scale gives away, and how far sorting and regressing alone gets.

python benchmarks/peers/sortability.py --nodes 50 --seeds 20
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import mean

from isthmus import simulate
from isthmus.graphs import DAG

GRAPHS: dict[str, Callable[[int, int], DAG]] = {
    "Erdős–Rényi, 2d edges": lambda d, seed: simulate.erdos_renyi(d, 2 * d, seed=seed),
    "scale-free, hubs are causes": lambda d, seed: simulate.scale_free(d, 2, seed=seed),
    "scale-free, hubs are effects": lambda d, seed: simulate.scale_free(
        d, 2, hubs=simulate.Hubs.EFFECTS, seed=seed
    ),
}
SCALES: dict[str, Callable[[DAG, int, int], simulate.Simulation]] = {
    "raw": lambda dag, n, seed: simulate.linear(dag, n, seed=seed),
    "standardised": lambda dag, n, seed: simulate.linear(dag, n, seed=seed).standardised(),
    "internal": lambda dag, n, seed: simulate.linear(
        dag, n, internally_standardised=True, seed=seed
    ),
}


def wrong_pairs(a: DAG, b: DAG) -> int:
    """Count the pairs of nodes whose edge differs: SHD between DAGs."""
    return len({frozenset(edge) for edge in set(a.edges) ^ set(b.edges)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    print("| graph | data | varsortability | R²-sortability | SHD: by variance | by R² | random |")
    print("| --- " * 7 + "|")
    for graph, draw in GRAPHS.items():
        for scale, make in SCALES.items():
            runs = [
                make(draw(options.nodes, seed), options.rows, seed) for seed in range(options.seeds)
            ]
            var = mean(simulate.varsortability(run) for run in runs)
            r2 = mean(simulate.r2_sortability(run) for run in runs)
            errors = [
                mean(
                    wrong_pairs(run.dag, simulate.sort_and_regress(run, by=by, seed=seed))
                    for seed, run in enumerate(runs)
                )
                for by in simulate.SortBy
            ]
            cells = " | ".join(f"{error:.0f}" for error in errors)
            print(f"| {graph} | {scale} | {var:.2f} | {r2:.2f} | {cells} |")


if __name__ == "__main__":
    main()
