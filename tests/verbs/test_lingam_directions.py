"""`LiNGAM` states no direction where effects are curved, noise grows or a cause is hidden.

It stated the wrong direction in 72% (tanh, 1,000 rows) and 100% (5,000) of such tables, and in 63%
of those with a hidden cause and 500 rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import isthmus as ist
from isthmus import simulate
from isthmus.arrays import Floats

pytestmark = pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
Pair = tuple[Floats, Floats]


def normal_cause(effect: Callable[[Floats, Floats], Floats]) -> Callable[..., Pair]:
    def make(rng: np.random.Generator, rows: int) -> Pair:
        cause, noise = rng.normal(size=(2, rows))
        return cause, effect(cause, noise)

    return make


def hidden(rng: np.random.Generator, rows: int) -> Pair:
    cause, own, other = rng.exponential(size=(3, rows))
    return cause + 0.5 * own, 0.8 * cause + 1.2 * other


def measured_with_noise(rng: np.random.Generator, rows: int) -> Pair:
    cause, (error, noise) = rng.exponential(size=rows), rng.normal(size=(2, rows))
    return cause + 0.7 * error, cause + 0.3 * noise


CASES: dict[str, tuple[Callable[..., Pair], int]] = {
    "line": (normal_cause(lambda x, e: x + e), 500),
    "tanh": (normal_cause(lambda x, e: np.tanh(x) + 0.5 * e), 500),
    "growing spread": (normal_cause(lambda x, e: x + (0.3 + 0.3 * np.abs(x)) * e), 500),
    "parabola": (normal_cause(lambda x, e: x + 0.2 * x**2 + e), 500),
    "detection limit": (normal_cause(lambda x, e: np.maximum(0.0, x + e)), 500),
    "hidden cause": (hidden, 500),
    "hidden cause of more rows": (hidden, 1000),
    "measured with noise": (measured_with_noise, 500),
}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_no_direction_is_stated(case: str) -> None:
    make, fewest = CASES[case]
    for rows in {fewest, 5000}:
        stated = 0
        for seed in range(20):
            x, y = make(np.random.default_rng(seed), rows)
            solution = ist.learn({"x": x, "y": y}, search=ist.LiNGAM())
            stated += bool(solution.directions.determined)
        assert stated <= 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("search", "nodes", "rows", "least"),
    [
        (ist.LiNGAM(hidden_causes=False), 2, 500, 0.9),
        (ist.LiNGAM(), 2, 500, 0.7),
        (ist.LiNGAM(), 2, 5000, 0.9),
        (ist.LiNGAM(), 10, 1000, 0.9),
    ],
)
def test_directions_of_skewed_noise_stay(
    search: ist.LiNGAM, nodes: int, rows: int, least: float
) -> None:
    right = edges = 0
    for seed in range(20 if nodes == 2 else 4):
        dag = ist.DAG(["a", "b"], [("a", "b")])
        if nodes > 2:
            dag = simulate.erdos_renyi(nodes, 2 * nodes, seed=seed)
        data = simulate.linear(dag, rows, noise=simulate.Exponential(), seed=seed).data
        stated = ist.learn(data, search=search).directions.determined
        right, edges = right + len({*stated} & {*dag.edges}), edges + len(dag.edges)
        assert not {edge[::-1] for edge in stated} & {*dag.edges}
    assert right >= least * edges
