"""Margins of directions: which are wrong in simulated tables, and two halves of real tables.

    python benchmarks/margins.py simulated
    python benchmarks/margins.py halves --data ../shared/data/uci --only adult
    python benchmarks/margins.py cost
    python benchmarks/margins.py effort --data ../shared/data/uci

The results are in benchmarks/results/margins.md. ``simulated`` counts directions whose reverse is
in the true graph, by margin; an edge that the true graph does not have is left out. ``halves``
counts directions that two halves of one table decide in opposite ways, by threshold. ``cost``
compares CPU times, and ``effort`` compares margins with those of one whole search per edge. One
core.
"""

from __future__ import annotations

import argparse
import time
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

import isthmus as ist
from isthmus import simulate

BINS = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0, np.inf)
ADULT = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital",
    "occupation",
    "relationship",
    "race",
    "sex",
    "gain",
    "loss",
    "hours",
    "country",
    "income",
]


def margins(solution):
    directions = solution.measure_directions().directions
    return {e: m for e, m in directions.margins.items() if 0.0 < m < np.inf}


def tables(options):
    for d in (5, 8, 10, 20):
        for n in (200, 1000, 5000):
            for seed in range(options.tables):
                dag = simulate.erdos_renyi(d, round(1.5 * d), seed=seed)
                numbers = simulate.linear(dag, n, seed=seed).data
                yield "numbers", n, dag, numbers
                cuts = [1 / 3, 2 / 3]
                levels = {
                    name: np.digitize(column, np.quantile(column, cuts)).astype(str)
                    for name, column in numbers.items()
                }
                yield "three levels of each number", n, dag, levels


def simulated(options):
    counts = {}
    for kind, n, dag, table in tables(options):
        for (a, b), margin in margins(ist.learn(table)).items():
            if dag.has_edge(a, b) or dag.has_edge(b, a):
                key = kind, n, np.searchsorted(BINS, margin, side="right") - 1
                counts[key] = counts.get(key, np.zeros(2, int)) + [1, dag.has_edge(b, a)]
    names = [f"{low:g} to {high:g}" for low, high in pairwise(BINS)]
    print(f"| table | rows | {' | '.join(names)} |")
    print("| --- " * (len(names) + 2) + "|")
    for kind, n in sorted({key[:2] for key in counts}):
        cells = [counts.get((kind, n, i), (0, 0)) for i in range(len(names))]
        print(f"| {kind} | {n} | {' | '.join(f'{wrong} of {all_}' for all_, wrong in cells)} |")


def halves_of(folder):
    """Yield pairs of tables of the same population."""
    read = {"names": ADULT, "skipinitialspace": True, "na_values": "?"}
    first = pd.read_csv(folder / "adult.data.gz", **read)
    second = pd.read_csv(folder / "adult.test.gz", skiprows=1, **read)
    second["income"] = second["income"].str.rstrip(".")
    yield "adult, complete rows", first.dropna(), second.dropna()
    both = pd.concat([first.dropna(), second.dropna()])
    for seed in (20, 21):
        order = np.random.default_rng(seed).permutation(len(both))
        name = f"adult, complete rows, random split {seed}"
        yield name, both.iloc[order[::2]], both.iloc[order[1::2]]
    few = ["fnlwgt", "education_num"]
    sampled = [t.drop(columns=few).dropna().sample(15000, random_state=0) for t in (first, second)]
    yield "adult, 13 columns, 15,000 rows", *sampled
    coil = pd.read_csv(folder / "coil2000_ticdata2000.txt.gz", sep="\t", header=None)
    coil.columns = [f"c{i}" for i in range(86)]
    yield "coil, even and odd rows", coil.iloc[::2], coil.iloc[1::2]

    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(coil))
        yield f"coil, random split {seed}", coil.iloc[order[::2]], coil.iloc[order[1::2]]
    votes = pd.read_csv(folder / "house-votes-84.data", header=None)
    votes.columns = ["party", *(f"v{i}" for i in range(16))]
    order = np.random.default_rng(0).permutation(len(votes))
    yield "house votes", votes.iloc[order[::2]], votes.iloc[order[1::2]]


def halves(options):
    limits = (0.0, 3.0, 4.0, 5.0, 6.0, 10.0, 20.0)
    print("| table | margin at least | decided, first and second half | opposite | equal |")
    print("| --- " * 5 + "|")
    for name, *parts in halves_of(options.data):
        if options.only not in name:
            continue
        first, second = (margins(ist.learn(part)) for part in parts)
        for limit in limits:
            one = {e for e, m in first.items() if m >= limit}
            two = {e for e, m in second.items() if m >= limit}
            opposite = sum(e[::-1] in two for e in one)
            print(
                f"| {name} | {limit:g} | {len(one)}, {len(two)} | {opposite} | {len(one & two)} |",
                flush=True,
            )


def timed(function):
    begin = time.process_time()
    result = function()
    return result, time.process_time() - begin


def cost(options):
    from isthmus.datasets import asia

    linear = {
        f"numbers, {d} columns, degree {k}": simulate.linear(
            simulate.erdos_renyi(d, d * k // 2, seed=1), 1000, seed=1
        ).data
        for d, k in ((10, 2), (30, 4), (100, 2), (100, 4), (200, 4))
    }
    cases = {"asia, 5,000 rows": asia(rows=5000, seed=1), **linear}
    if options.bif is not None:
        network = ist.io.read_bif(options.bif)
        cases[f"{options.bif.stem}, 5,000 rows"] = network.sample(5000, seed=1)
    print("| table | edges | CPU s of learn | CPU s of margins | ratio |")
    print("| --- " * 5 + "|")
    for name, table in cases.items():
        ist.learn(table)  # imports libraries
        runs = []
        for _ in range(5):
            solution, own = timed(lambda table=table: ist.learn(table))
            runs.append((own, timed(solution.measure_directions)[1]))
        learn, measure = np.median(runs, axis=0)
        edges = len(solution.dag.edges)
        print(f"| {name} | {edges} | {learn:.3f} | {measure:.3f} | {measure / learn:.2f} |")


def effort(options):
    print(
        "| table | edges | CPU s of learn, margins, one search per edge | margin lower | higher |"
    )
    print("| --- " * 5 + "|")
    for name, table, _ in halves_of(options.data):
        if "coil" in name or "random" in name:
            continue
        solution, own = timed(lambda table=table: ist.learn(table))
        ours, measure = timed(lambda solution=solution: margins(solution))
        theirs, begin = {}, time.process_time()
        for a, b in ours:
            other = ist.learn(table, knowledge=ist.Knowledge(required=[(b, a)]))
            theirs[a, b] = max(0.0, solution.score - other.score)
        searches = time.process_time() - begin
        lower = sum(ours[e] < theirs[e] - 0.01 for e in ours)
        higher = sum(ours[e] > theirs[e] + 0.01 for e in ours)
        print(
            f"| {name} | {len(ours)} | {own:.2f}, {measure:.2f}, {searches:.2f} "
            f"| {lower} | {higher} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["simulated", "halves", "cost", "effort"])
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="", help="tables whose names contain this, for halves")
    parser.add_argument("--bif", type=Path, help="a network for cost, such as alarm.bif")
    warnings.simplefilter("ignore")
    given = parser.parse_args()
    {"simulated": simulated, "halves": halves, "cost": cost, "effort": effort}[given.what](given)
