"""Accuracy of default searches against the budget of differential privacy.

    python benchmarks/privacy.py [--only gaussian10 gaussian20 asia sachs] [--again] [--render]

Three sites hold equal parts of the rows. The sums are computed by the code of a site, and noise is
drawn as three sites draw it; masks are left out, because they cancel. Each cell of the table is the
mean SHD between the equivalence classes of the learned and of the true graph over `SEEDS` graphs or
samples. ∞ is the same search on the sums without noise. Gaussian graphs are Erdős-Rényi with two
edges per node, and bounds are four standard deviations of each variable on both sides of its mean.
Discrete networks are searched with at most two parents, and all tables of three variables are
released. δ is 1e-6, and two of three sites are honest.

Results are kept in benchmarks/results/privacy.jsonl, and the table is written to
benchmarks/results/privacy.md. The whole table takes a few CPU minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import warnings
from pathlib import Path

import numpy as np

import isthmus as ist
from isthmus.errors import IsthmusWarning
from isthmus.io import read_bif
from isthmus.metrics.hamming import shd_cpdag
from isthmus.parties import Identity, Member, Privacy, Study
from isthmus.parties.privacy.noise import discrete_gaussian
from isthmus.simulate import erdos_renyi, linear_model
from isthmus.sources.horizontal import SecureSums
from isthmus.sources.horizontal.privacy.counts import NoisyCounts
from isthmus.sources.horizontal.privacy.moments import NoisyMoments
from isthmus.statistics import Variable

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
DATA = Path(os.environ.get("ISTHMUS_DATA", HERE.parents[1] / "shared" / "data")) / "networks"
ROWS = (1_000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, math.inf)
SEEDS = 2
SITES = 3
DELTA = 1e-6
PARENTS = 2


def study(schema, bounds, request, epsilon):
    keys = [Identity.generate() for _ in range(SITES + 2)]
    return Study.draft(
        "Benchmark",
        purpose="accuracy",
        author=keys[0].public,
        coordinator=keys[1].public,
        members=[Member(f"s{i}", f"o{i}", k.public) for i, k in enumerate(keys[2:])],
        schema=schema,
        bounds=bounds,
        protocol=SecureSums(),
        requests=[request],
        plan=ist.Plan.up_to(PARENTS + 1) if request == "counts" else None,
        privacy=Privacy(epsilon, DELTA),
    )


def noisy(release, exact, epsilon):
    """The estimate that a coordinator makes from the sum over the sites."""
    if math.isinf(epsilon):
        return release.estimate(exact.tolist(), 0.0)
    noise = sum(discrete_gaussian(release.scale, release.numbers) for _ in range(SITES))
    return release.estimate((exact + noise).tolist(), release.scale * math.sqrt(SITES))


def gaussian(d, n, seed):
    """Rows of a random linear Gaussian network, its graph, and public bounds."""
    dag = erdos_renyi(d, edges=2 * d, seed=seed)
    model = linear_model(dag, seed=seed)
    spread = np.sqrt(np.diagonal(model.covariance()))
    rows = model.sample(n, seed=1000 + seed).array()
    bounds = {name: (-4 * s, 4 * s) for name, s in zip(dag.nodes, spread.tolist(), strict=True)}
    return rows, dag, bounds


def cells(name):
    """Yield the SHD of each cell with one seed."""
    for seed in range(SEEDS):
        for n in ROWS:
            if name.startswith("gaussian"):
                rows, dag, bounds = gaussian(int(name.removeprefix("gaussian")), n, seed)
                schema = ist.Schema(tuple(Variable(v, ist.Kind.CONTINUOUS) for v in dag.nodes))
                make, request, search = NoisyMoments, "moments", None
            else:
                network = read_bif(DATA / f"{name}.bif.gz")
                codes = network.sample(n, seed=seed)
                dag, bounds = network.dag, {}
                schema = ist.Schema(
                    tuple(Variable(v, ist.Kind.DISCRETE, network.levels[v]) for v in dag.nodes)
                )
                rows = np.column_stack([codes[v] for v in dag.nodes]).astype(float)
                make, request, search = NoisyCounts, "counts", ist.XGES(max_parents=PARENTS)
            exact = None
            for epsilon in EPSILONS:
                budget = 1.0 if math.isinf(epsilon) else epsilon
                release = make(study(schema, bounds, request, budget))
                exact = release.integers(rows) if exact is None else exact
                estimate = noisy(release, exact, epsilon)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", IsthmusWarning)
                    found = ist.learn(estimate.statistic, search=search)
                shd = shd_cpdag(found.dag, dag)
                yield {
                    "name": name,
                    "n": n,
                    "epsilon": "inf" if math.isinf(epsilon) else epsilon,
                    "seed": seed,
                    "shd": int(shd),
                    "edges": len(found.dag.edges),
                    "true_edges": len(dag.edges),
                    "worth": estimate.worth,
                }


def render(lines):
    explained = (
        "`python benchmarks/privacy.py`: mean SHD of equivalence classes over "
        f"{SEEDS} graphs or samples; δ = 1e-6, three sites of which two are honest. In brackets: "
        "how many rows the noisy statistics are worth (median)."
    )
    text = ["# Accuracy against the budget of differential privacy", "", explained]
    for name in dict.fromkeys(line["name"] for line in lines):
        mine = [line for line in lines if line["name"] == name]
        edges = np.mean([line["true_edges"] for line in mine])
        text += ["", f"## {name} ({edges:.0f} edges)", ""]
        text.append("| rows | " + " | ".join(f"ε = {e:g}" for e in EPSILONS[:-1]) + " | ε = ∞ |")
        text.append("| --- " * (len(EPSILONS) + 1) + "|")
        for n in ROWS:
            row = [f"{n:,}"]
            for e in EPSILONS:
                key = "inf" if math.isinf(e) else e
                cell = [x for x in mine if x["n"] == n and x["epsilon"] == key]
                if cell:
                    worth = np.median([x["worth"] for x in cell])
                    row.append(f"{np.mean([x['shd'] for x in cell]):.1f} ({worth:,.0f})")
                else:
                    row.append("–")
            text.append("| " + " | ".join(row) + " |")
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", default=["gaussian10", "gaussian20", "asia", "sachs"])
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    path = RESULTS / "privacy.jsonl"
    lines = [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []
    if not options.render:
        for name in options.only:
            if any(line["name"] == name for line in lines) and not options.again:
                continue
            lines = [line for line in lines if line["name"] != name]
            begin = time.process_time()
            lines += list(cells(name))
            print(name, f"{time.process_time() - begin:.0f} CPU seconds")
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (RESULTS / "privacy.md").write_text(render(lines))


if __name__ == "__main__":
    main()
