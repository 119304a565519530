"""Pairs that a posterior all but excludes are not adjacent: the default for discrete tables.

With `BDeu(ess=1)`, the default before, 8.5% of the pairs below 0.05 (on average 0.005)
were adjacent in tables of Dirichlet(2) rows.
"""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.arrays import Bools, Floats

D = 6
pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")


def stated(seed: int, rows: int, concentration: float) -> tuple[Floats, Bools]:
    """Return probabilities of adjacency for a random network, and which pairs are adjacent."""
    rng = np.random.default_rng(seed)
    adjacency = np.triu(rng.random((D, D)) < 0.3, 1)
    levels = rng.integers(2, 5, D)
    codes = np.zeros((D, rows), np.int64)
    for j in range(D):
        place, configurations = np.zeros(rows, np.int64), 1
        for p in np.flatnonzero(adjacency[:, j]).tolist():
            place, configurations = place * levels[p] + codes[p], configurations * int(levels[p])
        shares = rng.dirichlet(np.full(levels[j], concentration), configurations).cumsum(axis=1)
        codes[j] = (rng.random(rows)[:, None] > shares[place][:, :-1]).sum(axis=1)
    table = {f"v{j}": np.array([*"abcd"])[codes[j]] for j in range(D)}
    kinds = dict.fromkeys(table, "discrete")
    posterior = ist.sample(table, kinds=kinds, draws=1, seed=1)
    at = [int(name[1:]) for name in posterior.nodes]
    edges = posterior.edge_probabilities()
    above = np.triu_indices(len(at), 1)
    return (edges + edges.T)[above], (adjacency | adjacency.T)[np.ix_(at, at)][above]


@pytest.mark.long
@pytest.mark.parametrize("concentration", [0.3, 0.7, 2.0])
def test_what_is_stated_below_a_twentieth_is_as_rare(concentration: float) -> None:
    found = [stated(seed, 500, concentration) for seed in range(30)]
    probability = np.concatenate([p for p, _ in found])
    adjacent = np.concatenate([a for _, a in found])
    low = probability < 0.05
    assert low.sum() > 120
    assert adjacent[low].mean() <= 2.0 * probability[low].mean() + 0.01
    assert adjacent[probability > 0.95].mean() > 0.95
