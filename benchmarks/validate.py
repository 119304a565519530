"""Level and power of `validate`: simulated tables of true graphs, and with one edge left out.

    python benchmarks/validate.py [repetitions]

Graphs have 1.5 edges per node, and the edge that is left out has a coefficient of 0.2 to 0.3 in
units of standard deviations.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
from scipy.stats import wishart

import isthmus as ist
from isthmus.statistics import Kind, Schema, Variable

ALPHA = 0.05


def drawn_graph(d: int, rng: np.random.Generator) -> np.ndarray:
    """Return an adjacency matrix with 1.5 edges per node and at most four parents, in order."""
    adjacency = np.zeros((d, d), dtype=bool)
    pairs = np.argwhere(np.triu(np.ones((d, d)), 1))
    for i, j in rng.permutation(pairs):
        if adjacency.sum() < int(1.5 * d) and adjacency[:, j].sum() < 4:
            adjacency[i, j] = True
    return adjacency


def weights_of(
    adjacency: np.ndarray, weak: tuple[int, int], rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return coefficients and noise variances; columns have a variance of about one."""
    d = len(adjacency)
    weights, noise, covariance = np.zeros((d, d)), np.ones(d), np.zeros((d, d))
    for v in range(d):
        parents = np.flatnonzero(adjacency[:, v])
        own = rng.uniform(0.3, 0.6, len(parents)) * rng.choice([-1, 1], len(parents))
        if weak[1] == v:
            own[parents == weak[0]] = rng.uniform(0.2, 0.3) * rng.choice([-1, 1])
        explained = own @ covariance[np.ix_(parents, parents)] @ own
        noise[v] = max(1.0 - explained, 0.3)
        scale = 1.0 / np.sqrt(explained + noise[v])
        weights[parents, v], noise[v] = own * scale, noise[v] * scale**2
        covariance[v, :v] = covariance[:v, v] = weights[:v, v] @ covariance[:v, :v]
        covariance[v, v] = 1.0
    return weights, noise


def dag_of(adjacency: np.ndarray) -> ist.DAG:
    names = [f"x{i}" for i in range(len(adjacency))]
    return ist.DAG(names, [(names[i], names[j]) for i, j in np.argwhere(adjacency)])


def normal(d: int, n: int, rng: np.random.Generator) -> tuple[object, ist.DAG, ist.DAG]:
    """Return moments of n rows, the true graph, and the graph without a weak edge."""
    adjacency = drawn_graph(d, rng)
    edges = np.argwhere(adjacency)
    a, b = edges[rng.integers(len(edges))].tolist()
    weak = a, b
    weights, noise = weights_of(adjacency, weak, rng)
    total = np.linalg.inv(np.eye(d) - weights)
    covariance = (total.T * noise) @ total
    scatter = np.atleast_2d(wishart.rvs(n - 1, covariance, random_state=rng))
    schema = Schema(tuple(Variable(f"x{i}", Kind.CONTINUOUS) for i in range(d)))
    moments = ist.Moments(schema, n, np.zeros(d), np.zeros(d), scatter)
    less = adjacency.copy()
    less[weak] = False
    return moments, dag_of(adjacency), dag_of(less)


def grouped(d: int, n: int, rng: np.random.Generator) -> tuple[object, ist.DAG, ist.DAG]:
    """Return rows of ten groups of different levels."""
    adjacency = drawn_graph(d, rng)
    edges = np.argwhere(adjacency)
    a, b = edges[rng.integers(len(edges))].tolist()
    weak = a, b
    weights, noise = weights_of(adjacency, weak, rng)
    group = rng.integers(10, size=n)
    shift = rng.normal(size=(10, d))
    rows = np.zeros((n, d))
    for v in range(d):
        rows[:, v] = rows @ weights[:, v] + np.sqrt(noise[v]) * rng.normal(size=n)
    rows += shift[group]
    table = {f"x{i}": rows[:, i] for i in range(d)} | {"group": group.astype(str)}
    less = adjacency.copy()
    less[weak] = False
    return ist.summarise(table, groups="group"), dag_of(adjacency), dag_of(less)


def mixed(d: int, n: int, rng: np.random.Generator) -> tuple[object, ist.DAG, ist.DAG]:
    """Return rows in which a third of the columns have three levels, cut from roots."""
    adjacency = drawn_graph(d, rng)
    discrete = list(range(d // 3))  # the first in the order, without edges among them
    adjacency[: d // 3, : d // 3] = False
    edges = np.argwhere(adjacency)
    a, b = edges[rng.integers(len(edges))].tolist()
    weak = a, b
    weights, noise = weights_of(adjacency, weak, rng)
    rows = np.zeros((n, d))
    for v in range(d):
        rows[:, v] = rows @ weights[:, v] + np.sqrt(noise[v]) * rng.normal(size=n)
        if v in discrete:
            rows[:, v] = np.digitize(rows[:, v], [-0.5, 0.5]) - 1.0
    table = {
        f"x{i}": rows[:, i].astype(int).astype(str) if i in discrete else rows[:, i]
        for i in range(d)
    }
    less = adjacency.copy()
    less[weak] = False
    return table, dag_of(adjacency), dag_of(less)


def asia(_: int, n: int, rng: np.random.Generator) -> tuple[object, ist.DAG, ist.DAG]:
    """Return rows of a known network, and its graph without one edge."""
    data = ist.datasets.asia(rows=n, seed=int(rng.integers(2**31)))
    edges = list(data.dag.edges)
    del edges[int(rng.integers(len(edges)))]
    return data, data.dag, ist.DAG(data.dag.nodes, edges)


def alarm(_: int, n: int, rng: np.random.Generator) -> tuple[object, ist.DAG, ist.DAG]:
    """Return rows of the network ALARM with 37 columns; ISTHMUS_DATA names its folder."""
    network = ist.io.read_bif(next(Path(os.environ["ISTHMUS_DATA"]).rglob("alarm.bif.gz")))
    edges = list(network.dag.edges)
    del edges[int(rng.integers(len(edges)))]
    data = network.sample(n, seed=int(rng.integers(2**31)))
    return data, network.dag, ist.DAG(network.dag.nodes, edges)


CASES = {
    **{f"normal, d = {d}, n = {n:,}": (normal, d, n)
       for d in (5, 10, 20) for n in (100, 300, 1000, 10_000)},
    **{f"10 groups, d = 10, n = {n:,}": (grouped, 10, n) for n in (300, 3000)},
    **{f"mixed, d = 9, n = {n:,}": (mixed, 9, n) for n in (300, 3000)},
    **{f"asia, n = {n:,}": (asia, 8, n) for n in (100, 1000)},
    **({"alarm, n = 1,000": (alarm, 37, 1000)} if "ISTHMUS_DATA" in os.environ else {}),
}  # fmt: skip


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    print("| tables | level | power | level of Fisher's C | ms |\n| --- | --- | --- | --- | --- |")
    for case, (draw, size, n) in CASES.items():
        rng = np.random.default_rng(len(case) * n)
        found, begin = [], time.process_time()
        for _ in range(repetitions):
            data, true, less = draw(size, n, rng)
            answer = ist.validate(data, true, permutations=0)
            wrong = ist.validate(data, less, permutations=0)
            c = answer.fisher_c[2] if answer.fisher_c else np.nan
            found.append((not answer.agrees, not wrong.agrees, c < ALPHA))
        level, power, fisher = np.mean(found, axis=0)
        ms = (time.process_time() - begin) / repetitions / 2 * 1e3
        print(f"| {case} | {level:.3f} | {power:.2f} | {fisher:.3f} | {ms:.0f} |", flush=True)


if __name__ == "__main__":
    main()
