"""Unknown targets of interventions: what `find_targets` finds in simulated regimes.

    python benchmarks/targets.py [--seeds 40]

Networks of 10 variables and 15 edges, 1,000 rows, half of them control; the others are divided
among regimes with one random target each. A target is replaced by noise with twice the standard
deviation (replaced), moves by one standard deviation of its noise (moved), or is set to -2 with
little noise (knocked down). Parents act by a line or by a curve. Categories have three levels. The
table is written to benchmarks/results/targets.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist

D, EDGES, ROWS = 10, 15, 1_000
CURVES: dict[str, Callable[[Any], Any]] = {
    "line": lambda x: x,
    "tanh": np.tanh,
    "sine": np.sin,
    "absolute value": np.abs,
    "square": np.square,
}


def simulate(
    seed: int, regimes: int, kind: str, shape: str
) -> tuple[ist.DAG, dict[str, Any], dict[int, tuple[str, ...]]]:
    """Draw a network, a table with a column of regimes, and the targets."""
    rng = np.random.default_rng(seed)
    names = [f"x{i}" for i in range(D)]
    order = rng.permutation(D)
    weights = np.zeros((D, D))
    pairs = [(i, j) for i in range(D) for j in range(i + 1, D)]
    for k in rng.choice(len(pairs), EDGES, replace=False):
        i, j = order[pairs[k][0]], order[pairs[k][1]]
        weights[i, j] = rng.choice([-1, 1]) * rng.uniform(0.5, 2.0)
    dag = ist.DAG(names, [(names[i], names[j]) for i, j in np.argwhere(weights)])
    chosen = rng.choice(D, regimes, replace=False)
    regime = np.repeat(
        np.arange(max(regimes, 1) + 1),
        [ROWS // 2] + [ROWS // 2 // max(regimes, 1)] * max(regimes, 1),
    )
    x = np.zeros((len(regime), D))
    for v in order:
        own = np.isin(regime, 1 + np.flatnonzero(chosen == v))
        if shape == "categories":
            x[:, v] = categories(rng, x[:, np.flatnonzero(weights[:, v])].astype(int), own, kind)
            continue
        noise = rng.normal(size=len(x))
        x[:, v] = CURVES[shape](x) @ weights[:, v] + noise
        if kind == "moved":
            x[own, v] += 1.0
        else:
            x[own, v] = 2.0 * noise[own] if kind == "replaced" else 0.3 * noise[own] - 2.0
    columns = x.astype(int) if shape == "categories" else x
    table = dict(zip(names, columns.T, strict=True)) | {"regime": regime}
    return dag, table, {0: ()} | {k + 1: (names[v],) for k, v in enumerate(chosen)}


def categories(rng: np.random.Generator, parents: Any, own: Any, kind: str) -> Any:
    """Draw levels given parents; a target forgets them or moves towards its last level."""
    tables = rng.dirichlet(np.full(3, 0.5), size=(3,) * parents.shape[1])
    chances = np.broadcast_to(tables[tuple(parents.T)], (len(own), 3)).copy()
    if kind == "moved":
        chances[own] = 0.6 * chances[own] + [0.0, 0.0, 0.4]
    else:
        chances[own] = [0.1, 0.2, 0.7] if kind == "knocked down" else 1.0 / 3.0
    return (rng.random(len(own))[:, None] > chances.cumsum(axis=1)[:, :2]).sum(axis=1)


def line(regimes: int, kind: str, shape: str, seeds: int) -> str:
    """Return one line of the table."""
    right = named = false = 0
    edges, begin = [], time.process_time()
    for seed in range(seeds):
        dag, table, truth = simulate(seed, regimes, kind, shape)
        kinds = None
        if shape == "categories":
            kinds = dict.fromkeys(dag.nodes, "discrete")
        found = ist.find_targets(table, column="regime", control=0, kinds=kinds)
        pairs = {(k, v) for k, own in found.items() for v in own}
        wanted = {(k, v) for k, own in truth.items() for v in own}
        right, named = right + len(pairs & wanted), named + len(pairs)
        false += bool(pairs - wanted)
        own = set(found.dag.edges)
        edges.append([len(own & set(dag.edges)), len({(b, a) for a, b in own} & set(dag.edges))])
    seconds = (time.process_time() - begin) / seeds
    precision = f"{right / named:.3f}" if right else "–"
    recall = f"{right / (seeds * regimes):.3f}" if regimes else "–"
    forward, turned = np.mean(edges, axis=0)
    return (
        f"| {shape} | {kind if regimes else '–'} | {regimes} | {precision} | {recall} | "
        f"{false} of {seeds} | {forward:.1f} | {turned:.1f} | {seconds:.1f} |"
    )


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=40)
    seeds = parser.parse_args().seeds
    path = Path(__file__).parent / "results" / "targets.md"
    cases = [(0, "–", "line"), (0, "–", "categories")]
    kinds = ("replaced", "moved", "knocked down")
    cases += [(n, kind, "line") for n in (1, 2, 5) for kind in kinds]
    cases += [(n, kind, "categories") for n in (1, 2) for kind in kinds]
    cases += [(1, "moved", shape) for shape in list(CURVES)[1:]]
    lines = [
        "# Unknown targets",
        "",
        (
            f"`python benchmarks/targets.py --seeds {seeds}`: networks of 10 variables and 15 "
            "edges, 1,000 rows, half of them control. A target is replaced by wider noise, moves "
            'by one standard deviation of its noise, or is knocked down. "False in" counts runs '
            "that name any wrong target; edges right and turned are those of `targets.dag`; "
            "seconds are of CPU."
        ),
        "",
        "<!-- table -->",
        "| parents by | target is | regimes | precision | recall | false in | right | turned | s |",
        "| --- " * 9 + "|",
    ]
    for case in cases:
        lines.append(line(*case, seeds))
        print(lines[-1], flush=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
