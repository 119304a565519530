"""Queries of random mixed networks against a long simulation, in units of the simulation error.

Networks are those of `benchmarks/effects/discrete.py`. Each question asks for one variable given
two others, observed in a row drawn from the network. The long simulation has many draws and a seed
of its own. A difference is divided by the stated simulation error, of both answers if both are
simulated: if the errors are right, 95% of the quotients are below 1.96. Run it with

    python benchmarks/inference/mixed.py > benchmarks/results/inference-mixed.md
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "effects"))
from discrete import Setting, random_network

from isthmus.errors import DataError
from isthmus.networks import Probabilities
from isthmus.networks.mixed_queries import MixedQuery


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=100)
    parser.add_argument("--draws", type=int, default=1_000_000)
    options = parser.parse_args()
    quotients: dict[str, list[float]] = {"exact": [], "simulated": []}
    refused = 0
    for seed in range(options.networks):
        rng = np.random.default_rng(seed)
        network: Any = random_network(Setting("mixed", 1, 3), rng)
        rows = network.sample(3, seed=seed)
        for i in range(3):
            target, *seen = rng.permutation(network.dag.nodes)[:3].tolist()
            evidence = {v: rows[v][i].item() for v in seen}
            codes = {
                v: network.levels[v].index(x) if v in network.levels else x
                for v, x in evidence.items()
            }
            long = MixedQuery(network.dag, network.conditionals, (target,), codes, {})
            try:
                answer = network.query(target, evidence, seed=seed)
                peer: Any = long.simulated(options.draws, 1000 + seed)
            except DataError:  # too improbable for the draws, which the error says
                refused += 1
                continue
            kind = "exact" if answer.error is None else "simulated"
            # One number per question: the first level, or the mean.
            values = [
                (float(a.values[0]), 0.0 if a.error is None else float(a.error[0]))
                if isinstance(a, Probabilities)
                else (float(a.mean[0]), 0.0 if a.error is None else float(a.error[0]))
                for a in (answer, peer)
            ]
            error = np.hypot(values[0][1], values[1][1])
            if error > 0:
                quotients[kind].append(abs(values[0][0] - values[1][0]) / error)
    print("# Queries of mixed networks against a long simulation\n\n<!-- table -->\n")
    print("| answer | questions | below 1.96 errors, percent | below 3 errors, percent | largest |")
    print("| --- | --- | --- | --- | --- |")
    for kind, own in quotients.items():
        within = [100 * np.mean(np.array(own) < limit) for limit in (1.96, 3.0)]
        print(f"| {kind} | {len(own)} | {within[0]:.1f} | {within[1]:.1f} | {max(own):.2f} |")
    print(
        f"\n{options.networks} networks, {options.draws:,} draws; {refused} questions were refused "
        "because their evidence is too improbable for the draws."
    )


if __name__ == "__main__":
    main()
