"""Calibration by simulation: the truth has a uniform rank among draws from its posterior.

Talts et al. (2018). A graph with its parameters is drawn from the prior and rows from it; any
number that depends on the graph and the parameters is then exchangeable with those of the draws.
Ranks see what probabilities of edges do not: whether the draws as a whole are right.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from benchmarks.posterior.calibration import ALPHA_MU, graphs, simulate

import isthmus as ist

# Tables that are drawn from the prior are small, and may be constant or copied.
pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")

LONG = "ISTHMUS_LONG" in os.environ
TRUTHS = 2000 if LONG else 150
DRAWS = 9
D = 4
FEATURES: dict[str, Callable[[ist.DAG], float]] = {
    "edges": lambda dag: len(dag.edges),
    "roots": lambda dag: sum(not dag.parents(node) for node in dag.nodes),
    "most parents": lambda dag: max(map(len, dag.parent_indices())),
    "descendants of the first": lambda dag: len(dag.descendants(dag.nodes[0])),
    "compelled edges": lambda dag: len(dag.cpdag().directed),
}


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(size=n)


def numbers(dag: ist.DAG, rng: np.random.Generator) -> dict[str, Any]:
    x, _ = simulate(dag, 12, rng, normal, lambda z: z)
    return {name: x[:, i] for i, name in enumerate(dag.nodes)}


def levels(dag: ist.DAG, rng: np.random.Generator, rows: int = 30, ess: float = 4.0) -> Any:
    """Rows of a network whose tables are drawn from the prior of BDeu."""
    sizes = dict(zip(dag.nodes, (2, 3, 2, 3), strict=True))
    table: dict[str, np.ndarray] = {}
    for node in dag.topological_order():
        code, cells = np.zeros(rows, int), 1
        for parent in dag.parents(node):
            code, cells = code * sizes[parent] + table[parent], cells * sizes[parent]
        size = sizes[node]
        probabilities = rng.dirichlet(np.full(size, ess / (size * cells)), size=cells)
        chosen = (rng.random(rows)[:, None] > probabilities[code].cumsum(axis=1)).sum(axis=1)
        table[node] = np.minimum(chosen, size - 1)
    schema = ist.Schema.discrete({node: tuple(range(sizes[node])) for node in dag.nodes})
    return ist.Frame({node: table[node] for node in dag.nodes}, schema=schema)


SCORES: dict[str, tuple[Any, Any]] = {
    "BGe": (
        ist.BGe(alpha_mu=ALPHA_MU, prior_mean=ist.PriorMean.ZERO, prior_scale=ist.PriorScale.UNIT),
        numbers,
    ),
    "BDeu": (ist.BDeu(ess=4.0), levels),
}


def rank(own: float, others: np.ndarray, rng: np.random.Generator) -> int:
    """Rank of a number among others; ties are broken at random."""
    ties = int((others == own).sum())
    return int((others < own).sum() + rng.integers(ties + 1))


def ranks(score: str, sampler: Any, truths: int, seed: int) -> dict[str, np.ndarray]:
    """How often the truth has each rank among the draws, by feature."""
    chosen, data = SCORES[score]
    rng = np.random.default_rng(seed)
    found: dict[str, list[int]] = {name: [] for name in FEATURES}
    for i, dag in enumerate(graphs(D, truths, seed)):
        posterior = ist.sample(
            data(dag, rng), score=chosen, sampler=sampler, draws=DRAWS, chains=1, seed=i
        )
        drawn = [posterior.ensemble.dags[k] for k in posterior.chains[0].tolist()]
        for name, feature in FEATURES.items():
            others = np.array([feature(g) for g in drawn])
            found[name].append(rank(feature(dag), others, rng))
    return {name: np.bincount(own, minlength=DRAWS + 1) for name, own in found.items()}


SAMPLERS = {
    "exact": ist.ExactPosterior(),
    "partitions": ist.PartitionMCMC(warm_up=40, thin=20, temperatures=1, jobs=1),
    "structures": ist.StructureMCMC(warm_up=300, thin=60),
}


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("sampler", SAMPLERS if LONG else ["exact", "partitions"])
def test_ranks_are_uniform(score: str, sampler: str) -> None:
    from scipy.stats import chisquare

    for name, counts in ranks(score, SAMPLERS[sampler], TRUTHS, seed=1).items():
        assert chisquare(counts).pvalue > 1e-4, (name, counts)


@pytest.mark.skipif(not LONG, reason="set ISTHMUS_LONG=1")
def test_ranks_show_the_bias_of_orders() -> None:
    from scipy.stats import chisquare

    counts = ranks(
        "BGe", ist.OrderMCMC(warm_up=40, thin=20, temperatures=1, jobs=1), TRUTHS, seed=1
    )
    assert chisquare(counts["edges"]).pvalue < 1e-6


def test_ranks_of_effects_are_uniform() -> None:
    from scipy.stats import chisquare

    rng = np.random.default_rng(2)
    found = []
    for i, dag in enumerate(graphs(D, TRUTHS, 2)):
        x, weights = simulate(dag, 12, rng, normal, lambda z: z)
        truth = np.linalg.inv(np.eye(D) - weights)[0, 1]
        table = {name: x[:, k] for k, name in enumerate(dag.nodes)}
        posterior = ist.sample(table, score=SCORES["BGe"][0], draws=DRAWS, chains=1, seed=i)
        drawn = posterior.effects(dag.nodes[0], dag.nodes[1], seed=i)[0]
        found.append(rank(truth, drawn, rng))
    counts = np.bincount(found, minlength=DRAWS + 1)
    assert chisquare(counts).pvalue > 1e-4, counts
