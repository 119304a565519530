"""Exact queries of published networks: time and agreement with pyAgrum's lazy propagation.

Each question asks for one variable given five others, observed in a row that was drawn from the
network. Times are CPU times; that of pyAgrum includes a new engine per question, and both exclude
reading the file. Run it with

    python benchmarks/inference/published.py > benchmarks/results/inference.md
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import pyagrum as gum

import isthmus as ist
from isthmus.errors import DataError
from isthmus.io import read_bif

NAMES = (
    "asia", "alarm", "insurance", "hailfinder", "hepar2", "win95pts", "water", "barley", "mildew",
    "andes", "pigs", "diabetes", "pathfinder", "munin1", "munin", "link",
)  # fmt: skip


def questions(
    network: ist.networks.DiscreteNetwork, count: int
) -> list[tuple[str, dict[str, str]]]:
    """Return random targets with evidence that has a positive probability."""
    rng = np.random.default_rng(1)
    rows = network.sample(count, seed=1)
    asked = []
    for i in range(count):
        chosen = rng.permutation(network.dag.nodes)[:6].tolist()
        asked.append((chosen[0], {v: rows[v][i].item() for v in chosen[1:]}))
    return asked


def as_pyagrum(network: ist.networks.DiscreteNetwork) -> gum.BayesNet:
    """Return the same network, with numbers for names and levels."""
    peer = gum.BayesNet()
    for i, name in enumerate(network.dag.nodes):
        labels = [str(k) for k in range(len(network.levels[name]))]
        peer.add(gum.LabelizedVariable(f"v{i}", "", labels))
    for i, parents in enumerate(network.dag.parent_indices()):
        # The parent that is added first changes fastest; in our tables the last one does.
        for p in reversed(parents):
            peer.addArc(f"v{p}", f"v{i}")
        table = network.tables[network.dag.nodes[i]]
        table = table / table.sum(axis=-1, keepdims=True)
        peer.cpt(f"v{i}").fillWith(table.ravel().tolist())
    return peer


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=NAMES)
    options = parser.parse_args()
    print("# Exact queries of published networks\n\n<!-- table -->\n")
    print(
        "| network | nodes | ours, median ms | ours, longest ms | pyAgrum, median ms | difference |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    folder = Path(os.environ["ISTHMUS_DATA"]) / "networks"
    for name in options.only:
        with tempfile.TemporaryDirectory() as home:
            path = Path(home) / "network.bif"
            path.write_bytes(gzip.decompress((folder / f"{name}.bif.gz").read_bytes()))
            network = read_bif(path)
        theirs = as_pyagrum(network)
        ours, peers, away, refused = [], [], 0.0, 0
        for target, evidence in questions(network, options.questions):
            begin = process_time()
            try:
                answer = np.asarray(network.query(target, evidence))
            except DataError as error:
                if "cells" not in str(error):
                    raise
                refused += 1
                continue
            ours.append(process_time() - begin)
            seen = {network.dag.index(v): network.levels[v].index(x) for v, x in evidence.items()}
            begin = process_time()
            engine = gum.LazyPropagation(theirs)
            engine.setEvidence(seen)
            engine.addTarget(network.dag.index(target))
            engine.makeInference()
            peer = engine.posterior(network.dag.index(target)).toarray()
            peers.append(process_time() - begin)
            away = max(away, float(np.abs(answer - peer).max()))
        figures = " | – | – | – | –"
        if ours:
            milliseconds = (1e3 * np.median(ours), 1e3 * max(ours), 1e3 * np.median(peers))
            figures = "".join(f" | {x:,.1f}" for x in milliseconds) + f" | {away:.0e}"
        note = f" ({refused} refused)" if refused else ""
        print(f"| {name}{note} | {len(network.dag.nodes)}{figures} |", flush=True)


if __name__ == "__main__":
    main()
