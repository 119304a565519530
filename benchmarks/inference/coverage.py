"""Coverage of the 95% confidence intervals of answers to queries, on simulated tables.

Each table is drawn from a random network of six variables: discrete (two or three levels), linear
Gaussian, or mixed (two categories, two numbers that depend on them, and two categories with
logistic regressions on the numbers). The network is fitted to the true graph, or to the one that
`learn` finds in the same table. Each table contributes two random questions: one target, and zero
to two observed variables with the values of a random row. For a discrete target one random level
is counted.
Run it with

    python benchmarks/inference/coverage.py --tables 500 > benchmarks/results/inference-coverage.md
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

import isthmus as ist
from isthmus.networks import (
    ConditionalGaussian,
    DiscreteNetwork,
    GaussianNetwork,
    MixedNetwork,
    MultinomialLogit,
    ProbabilityTable,
)

VARIABLES = [f"v{i}" for i in range(6)]


def random_dag(rng: np.random.Generator, degree: float = 2.0) -> ist.DAG:
    """Return a random graph whose nodes are in topological order."""
    chance = degree / (len(VARIABLES) - 1)
    edges = [
        (a, b) for j, b in enumerate(VARIABLES) for a in VARIABLES[:j] if rng.random() < chance
    ]
    return ist.DAG(VARIABLES, edges)


def discrete(rng: np.random.Generator) -> Any:
    """Return a random discrete network."""
    dag = random_dag(rng)
    levels = {v: tuple("abc"[: rng.integers(2, 4)]) for v in VARIABLES}
    shapes = {v: [len(levels[p]) for p in dag.parents(v)] for v in VARIABLES}
    tables = {v: rng.dirichlet(np.ones(len(levels[v])), size=shapes[v]) for v in VARIABLES}
    return DiscreteNetwork(dag, levels, tables)


def gaussian(rng: np.random.Generator) -> Any:
    """Return a random linear Gaussian network."""
    dag = random_dag(rng)
    weights = {
        v: {p: rng.uniform(0.2, 1.0) * rng.choice((-1, 1)) for p in dag.parents(v)}
        for v in VARIABLES
    }
    return GaussianNetwork(
        dag,
        dict(zip(VARIABLES, rng.normal(size=6), strict=True)),
        weights,
        dict(zip(VARIABLES, rng.uniform(0.5, 2.0, 6), strict=True)),
    )


def mixed(rng: np.random.Generator) -> Any:
    """Return a random mixed network: two categories, two numbers, and two logits of numbers."""
    a, b, x, y, p, q = VARIABLES
    levels = ("no", "yes")

    def share() -> Any:
        first = rng.uniform(0.25, 0.75)
        return np.array([first, 1 - first])

    def logit(discrete: tuple[str, ...], continuous: tuple[str, ...]) -> MultinomialLogit:
        slopes = np.array([[0.0, rng.uniform(0.3, 1.0)] for _ in continuous])
        effects = tuple(np.array([[0.0, 0.0], [0.0, rng.normal()]]) for _ in discrete)
        cut = np.array([0.0, rng.normal(scale=0.5)])
        return MultinomialLogit(levels, discrete, continuous, cut, effects, slopes)

    dag = ist.DAG(VARIABLES, [(a, b), (a, x), (b, y), (x, y), (x, p), (y, q), (a, q)])
    conditionals = {
        a: ProbabilityTable(levels, (), share()),
        b: ProbabilityTable(levels, (a,), np.array([share(), share()])),
        x: ConditionalGaussian((a,), (), rng.normal(size=2), np.zeros((2, 0)), np.ones(2)),
        y: ConditionalGaussian(
            (b,), (x,), rng.normal(size=2), rng.uniform(0.2, 1, (2, 1)), np.ones(2)
        ),
        p: logit((), (x,)),
        q: logit((a,), (y,)),
    }
    return MixedNetwork(dag, conditionals)


def questions(rng: np.random.Generator, table: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield two targets, each with observations of a random row."""
    for _ in range(2):
        order = rng.permutation(VARIABLES).tolist()
        row = rng.integers(len(table[order[0]]))
        yield order[0], {v: table[v][row].item() for v in order[1 : 1 + rng.integers(3)]}


def one_table(kind: Any, rows: int, learned: bool, seed: int) -> list[bool]:
    """Return for each question whether the interval covers."""
    rng = np.random.default_rng([seed, rows, *kind.__name__.encode()])
    network = kind(rng)
    table = network.sample(rows, seed=seed)
    if any(len(np.unique(table[v])) < 2 for v in table):
        return []
    fitted: Any = ist.learn(table).fit() if learned else ist.fit(table, network.dag)
    hits = []
    for target, evidence in questions(rng, table):
        truth, answer = network.query(target, evidence), fitted.query(target, evidence)
        low, high = answer.confidence_interval()
        if hasattr(truth, "mean"):
            hits.append(bool(low[0] <= truth.mean[0] <= high[0]))
        else:
            place = int(rng.integers(len(answer.values)))
            hits.append(bool(low[place] <= truth[answer.levels[target][place]] <= high[place]))
    return hits


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=500)
    parser.add_argument("--only", choices=("discrete", "gaussian", "mixed"))
    options = parser.parse_args()
    tables = options.tables
    warnings.simplefilter("ignore")
    started = process_time()
    print("# Coverage of the confidence intervals of answers\n\n<!-- table -->\n")
    print("| network | rows | graph given | graph learned from the same rows |")
    print("| --- | --- | --- | --- |")
    for kind, sizes in ((discrete, (50, 200, 1000)), (gaussian, (50, 200)), (mixed, (100, 500))):
        for rows in sizes if options.only in (None, kind.__name__) else ():
            cells = []
            for learned in (False, True):
                hits = [h for seed in range(tables) for h in one_table(kind, rows, learned, seed)]
                error = 100 * np.std(hits) / np.sqrt(len(hits))
                cells.append(f"{100 * np.mean(hits):.1f} ± {error:.1f}")
            print(f"| {kind.__name__} | {rows:,} | {' | '.join(cells)} |", flush=True)
    seconds = process_time() - started
    print("\nPercent of 95% intervals that contain the true probability or mean, with standard")
    print("errors. Random networks of six variables with two questions per table.")
    print(f"`python benchmarks/inference/coverage.py --tables {tables}`, {seconds:.0f} CPU s.")


if __name__ == "__main__":
    main()
