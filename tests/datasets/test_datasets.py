"""Datasets: published probabilities, and data that lead back to the graph."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.datasets import Dataset
from isthmus.networks import DiscreteNetwork


def marginals(network: DiscreteNetwork) -> dict[str, float]:
    """Probability of "yes" of each node, by summing over the parents."""
    rows = network.sample_codes(400_000, seed=1)
    return {v: float((codes == 0).mean()) for v, codes in rows.items()}


def test_asia_has_the_published_marginals() -> None:
    network = ist.datasets.asia(rows=10).network
    assert isinstance(network, DiscreteNetwork)
    # Lauritzen and Spiegelhalter print these without evidence.
    expected = {
        "asia": 0.01,
        "tub": 0.0104,
        "smoke": 0.5,
        "lung": 0.055,
        "bronc": 0.45,
        "either": 0.0648,
        "xray": 0.1103,
        "dysp": 0.436,
    }
    for name, value in marginals(network).items():
        assert value == pytest.approx(expected[name], abs=0.003), name


@pytest.mark.parametrize("name", sorted({*ist.datasets.__all__} - {"Dataset", "fetch"}))
def test_all(name: str) -> None:
    data: Dataset = getattr(ist.datasets, name)(rows=300, seed=3)
    again = getattr(ist.datasets, name)(rows=300, seed=3)
    assert tuple(data) == data.dag.nodes
    assert all((data[v] == again[v]).all() for v in data)
    assert len(data) == len(data.dag.nodes)
    assert "300 rows" in repr(data)
    assert np.isfinite(ist.log_likelihood(data.network, data))


def test_the_graph_comes_back() -> None:
    data = ist.datasets.water_level(rows=3000)
    assert ist.shd(ist.learn(data).cpdag, data.dag.cpdag()) == 0
    clinic = ist.datasets.asia(rows=20_000)
    assert ist.shd(ist.learn(clinic).cpdag, clinic.dag.cpdag()) <= 3
