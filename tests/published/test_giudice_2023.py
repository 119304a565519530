"""Algorithm 1 from draws, beside the enumeration of all graphs."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.published import gp_posterior
from isthmus.statistics import Rows
from isthmus.testing import enumerate_dags


def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=30)
    y = np.sin(2 * x) + 0.6 * rng.normal(size=30)
    return {"x": x, "y": y, "z": 0.5 * y + rng.normal(size=30)}


def divergence(posterior: ist.Posterior, wanted: dict[ist.DAG, float]) -> float:
    """Reverse Kullback-Leibler divergence, as in Figure 3."""
    ensemble = posterior.ensemble
    weights = np.asarray(ensemble.weights, dtype=float)
    weights = weights / weights.sum()
    own: dict[frozenset[tuple[str, str]], float] = {}
    for dag, weight in zip(ensemble.dags, weights, strict=True):
        own[frozenset(dag.edges)] = own.get(frozenset(dag.edges), 0.0) + weight
    truth = {frozenset(dag.edges): p for dag, p in wanted.items()}
    return float(sum(p * np.log(p / truth[e]) for e, p in own.items() if p > 0))


@pytest.mark.long
def test_the_weighted_draws_are_closer_to_the_posterior_than_the_draws() -> None:
    data = table()
    score = ist.ExactGP(integral=ist.GPIntegral.IMPORTANCE)
    graphs = list(enumerate_dags(tuple(data)))
    local = score.bind(Rows.gather(ist.Frame(data)))
    logs = np.array([local.total(dag) for dag in graphs])
    truth = dict(zip(graphs, np.exp(logs - np.logaddexp.reduce(logs)), strict=True))
    plain = ist.sample(data, score=ist.ExactGP(), draws=4000, seed=1)
    weighted = gp_posterior(data, draws=4000, seed=1)
    assert divergence(weighted, truth) < min(0.01, divergence(plain, truth))
    wanted = sum(p for dag, p in truth.items() if ("x", "y") in dag.edges)
    assert abs(weighted.probability(ist.edge("x", "y")) - wanted) < 0.03


def test_the_sampler_and_the_kernel_can_be_chosen() -> None:
    data = {name: column[:25] for name, column in table().items()}
    posterior = gp_posterior(
        data, draws=50, sampler=ist.OrderMCMC(), interactions=True, particles=50, seed=1
    )
    assert "OrderMCMC" in posterior.choice
    assert "interactions=True" in posterior.choice
