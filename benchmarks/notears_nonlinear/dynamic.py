"""Dynotears on simulated series: F1 of edges within a step and from earlier steps.

    python benchmarks/notears_nonlinear/dynamic.py --out benchmarks/results/dynotears-simulated.md

Beside it: `Boss` on the same lagged columns with tiers, and both on columns that are standardised,
which takes away what least squares reads from scale.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import isthmus as ist
from isthmus import simulate
from isthmus.results import DynamicNetwork

Edges = set[tuple[str, str, int]]
LAGS = 2


def f1(found: Edges, truth: Edges) -> float:
    return 2 * len(found & truth) / max(len(found) + len(truth), 1)


def dynotears(source: ist.Series) -> DynamicNetwork:
    network = ist.learn(source, search=ist.Dynotears()).details.network
    assert isinstance(network, DynamicNetwork)
    return network


def boss(source: ist.Series) -> DynamicNetwork:
    names = source.schema().names
    d = len(names) // (LAGS + 1)
    past = names[d:]
    # Between earlier steps nothing is to be learned again, so no edge may go there.
    known = ist.Knowledge(tiers=[past, names[:d]], roots=past)
    return DynamicNetwork.from_dag(ist.learn(source, knowledge=known).dag, source.schema().lag_of)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--nodes", type=int, default=20)
    options = parser.parse_args()
    d = options.nodes
    lines = [
        "| series × steps | columns | method | within a step | earlier steps | least | CPU s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for realisations, steps in ((10, 100), (5, 500)):
        for scaled in (False, True):
            for name, method in (("`Dynotears`", dynotears), ("`Boss`, tiers", boss)):
                now, past, both, seconds = [], [], [], 0.0
                for seed in range(options.seeds):
                    dag = simulate.erdos_renyi(d, d, seed=seed)
                    lagged = simulate.lagged_graph(d, lags=LAGS, seed=seed)
                    data = simulate.autoregressive(
                        dag, lagged, steps, realisations=realisations, seed=seed
                    ).arrays()
                    if scaled:
                        spread = np.concatenate(data).std(axis=0)
                        data = tuple(x / spread for x in data)
                    begin = time.process_time()
                    network = method(ist.Series(data, lags=LAGS))
                    seconds += time.process_time() - begin
                    edges = {tuple(e) for e in network.edges}
                    first = {(a, b, 0) for a, b in dag.edges}
                    second = {tuple(e) for e in lagged}
                    now.append(f1({e for e in edges if e[2] == 0}, first))
                    past.append(f1({e for e in edges if e[2]}, second))
                    both.append(f1(edges, first | second))
                lines.append(
                    f"| {realisations} × {steps} | {'standardised' if scaled else 'raw'} | {name} "
                    f"| {np.mean(now):.3f} | {np.mean(past):.3f} | {min(both):.3f} "
                    f"| {seconds / options.seeds:.1f} |"
                )
                print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text(
            "# Dynotears on simulated series\n\n"
            "`python benchmarks/notears_nonlinear/dynamic.py --out FILE`\n\n"
            f"{d} variables, lag {LAGS}, ER with {d} edges within a step, one lagged cause per\n"
            f"lag and variable on average, noise of variance one. Mean F1 over {options.seeds}\n"
            "seeds, and the least F1 of all edges together. CPU seconds per run, one thread, a\n"
            "busy machine.\n\n" + "\n".join(lines) + "\n"
        )


if __name__ == "__main__":
    main()
