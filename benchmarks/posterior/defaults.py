"""Are the probabilities of the default scores of `sample` right? Continuous, discrete and mixed.

    python benchmarks/posterior/defaults.py --tables 60 --figure docs/_static/posterior-defaults.svg

Networks of seven variables, each pair of which is adjacent with probability 0.3. Continuous and
mixed tables have effects of 0.3 to 1.5 standard deviations with random signs, normal noise and
logits; discrete tables have two to four levels, and rows of tables from Dirichlet distributions of
four parameters (0.3: one level prevails; 2: rows are alike). For pairs of variables with a stated
probability of adjacency: the mean of what is stated, and the share that is adjacent.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist

D, ADJACENT = 7, 0.3
EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)
CASES = ["continuous", "mixed", *(f"discrete, Dirichlet({a})" for a in (0.3, 0.7, 1.0, 2.0))]


def discrete_table(adjacency, n, concentration, rng):
    levels = rng.integers(2, 5, D)
    codes = np.zeros((D, n), int)
    for j in range(D):
        place, rows = np.zeros(n, int), 1
        for p in np.flatnonzero(adjacency[:, j]):
            place, rows = place * levels[p] + codes[p], rows * levels[p]
        shares = rng.dirichlet(np.full(levels[j], concentration), rows).cumsum(axis=1)
        codes[j] = (rng.random(n)[:, None] > shares[place][:, :-1]).sum(axis=1)
    return [np.array([*"abcd"])[own] for own in codes]


def numeric_table(adjacency, n, binary, rng):
    numbers, columns = [], []
    for j in range(D):
        mean = np.zeros(n)
        for p in np.flatnonzero(adjacency[:, j]):
            effect = rng.uniform(0.3, 1.5) * rng.choice([-1, 1])
            mean += effect * (numbers[p] - numbers[p].mean()) / max(numbers[p].std(), 1e-9)
        if binary[j]:
            numbers.append((rng.random(n) < 1 / (1 + np.exp(-mean))).astype(float))
            columns.append(np.where(numbers[-1] > 0, "yes", "no"))
        else:
            numbers.append(mean + rng.normal(size=n))
            columns.append(numbers[-1])
    return columns


def pairs(case: str, n: int, tables: int, score: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return stated probabilities of adjacency, and whether the pairs are adjacent."""
    stated, true = [], []
    above = np.triu_indices(D, 1)
    for seed in range(tables):
        rng = np.random.default_rng((seed, n))
        adjacency = np.triu(rng.random((D, D)) < ADJACENT, 1)
        if case.startswith("discrete"):
            columns = discrete_table(adjacency, n, float(case.partition("(")[2][:-1]), rng)
        else:
            binary = rng.random(D) < (0.5 if case == "mixed" else 0.0)
            if case == "mixed" and binary.all() == binary.any():
                binary[0] = not binary[0]
            columns = numeric_table(adjacency, n, binary, rng)
        shuffled = rng.permutation(D)
        table = {f"v{j}": columns[j] for j in shuffled}
        posterior = ist.sample(table, score=score, draws=1, seed=1)
        order = [int(name[1:]) for name in posterior.nodes]
        edges = np.zeros((D, D))
        edges[np.ix_(order, order)] = posterior.edge_probabilities()
        stated.append((edges + edges.T)[above])
        true.append(adjacency[above])
    return np.concatenate(stated), np.concatenate(true)


def draw(lines, path):
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "posterior-defaults", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1)
    for label, (stated, true) in lines.items():
        place = np.digitize(stated, EDGES[1:-1])
        inside = [place == k for k in range(len(EDGES) - 1) if (place == k).sum() >= 10]
        axes.plot(
            [stated[i].mean() for i in inside],
            [true[i].mean() for i in inside],
            marker=".",
            label=label,
        )
    axes.set(xlabel="stated probability of adjacency", ylabel="share of pairs that are adjacent")
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 500, 2000, 5000])
    parser.add_argument("--score", help="another score for the discrete tables, as BDeu(ess=10)")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [f"{a} to {b}" for a, b in itertools.pairwise(EDGES)]
    print("| columns | rows | " + " | ".join(names) + " |\n" + "| --- " * (2 + len(names)) + "|")
    lines = {}
    score = None if options.score is None else eval(options.score, vars(ist.scores))
    cases = [case for case in CASES if score is None or case.startswith("discrete")]
    for case in cases:
        for n in options.rows:
            stated, true = pairs(case, n, options.tables, score)
            place, cells = np.digitize(stated, EDGES[1:-1]), []
            for k in range(len(names)):
                at = place == k
                cell = f"{stated[at].mean():.3f}, {true[at].mean():.3f} ({at.sum()})"
                cells.append(cell if at.any() else "")
            print(f"| {case} | {n} | " + " | ".join(cells) + " |", flush=True)
            lines[case, n] = stated, true
    if options.figure is not None:
        joined = {
            case: tuple(np.concatenate([lines[case, n][k] for n in options.rows]) for k in (0, 1))
            for case in cases
        }
        draw(joined, options.figure)


if __name__ == "__main__":
    main()
