"""Counterfactuals: against closed forms, worlds whose mechanisms are known, and linear programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import ArgumentError, DataError, GraphError
from isthmus.networks import (
    ConditionalGaussian,
    DiscreteNetwork,
    GaussianNetwork,
    MixedNetwork,
    ProbabilityTable,
)


def gaussian() -> GaussianNetwork:
    dag = ist.DAG(["z", "x", "m", "y"], [("z", "x"), ("z", "y"), ("x", "m"), ("m", "y")])
    weights: dict[str, dict[str, float]] = {
        "z": {}, "x": {"z": 0.5}, "m": {"x": 1.5}, "y": {"z": -1.0, "m": 2.0}
    }  # fmt: skip
    return GaussianNetwork(
        dag,
        {"z": 1.0, "x": 0.5, "m": -1.0, "y": 0.0},
        weights,
        {"z": 1.0, "x": 0.5, "m": 2.0, "y": 0.25},
    )


def test_a_complete_row_keeps_its_noise() -> None:
    row = {"z": 0.3, "x": 1.0, "m": 2.0, "y": 5.0}
    answer = gaussian().counterfactual(row, do={"x": 0.0})
    found = dict(zip(answer.names, answer.mean.tolist(), strict=True))
    assert found == pytest.approx({"z": 0.3, "m": 2.0 - 1.5, "y": 5.0 - 2.0 * 1.5})
    assert answer.deviation == pytest.approx(np.zeros(3), abs=1e-6)


def test_an_incomplete_row_leaves_a_distribution() -> None:
    """Against a million simulated rows with the same noise in both worlds."""
    network = gaussian()
    rng = np.random.default_rng(0)
    e = rng.normal(size=(4, 1_000_000)) * np.sqrt([[1.0], [0.5], [2.0], [0.25]])

    def world(x: Any = None) -> tuple[np.ndarray, ...]:
        z = 1.0 + e[0]
        x = 0.5 + 0.5 * z + e[1] if x is None else np.full_like(z, x)
        m = -1.0 + 1.5 * x + e[2]
        return z, x, m, -z + 2.0 * m + e[3]

    factual, other = world(), world(0.0)
    answer = network.counterfactual({"z": 0.5, "y": 2.0}, do={"x": 0.0}, targets="y")
    design = np.column_stack([np.ones(len(e[0])), factual[0], factual[3]])
    fitted = np.linalg.lstsq(design, other[3], rcond=None)[0]
    assert answer.mean[0] == pytest.approx(fitted @ [1.0, 0.5, 2.0], abs=0.02)
    assert answer.deviation[0] == pytest.approx((other[3] - design @ fitted).std(), rel=0.01)
    observed = network.query("y", evidence={"x": 1.0}).mean[0]
    nothing = network.counterfactual({"x": 1.0}, do={"x": 1.0}, targets="y").mean[0]
    assert nothing == pytest.approx(observed)


def binary(p_x: float, p_y: tuple[float, float]) -> DiscreteNetwork:
    dag = ist.DAG(["x", "y"], [("x", "y")])
    tables = {
        "x": np.array([1 - p_x, p_x]),
        "y": np.array([[1 - p_y[0], p_y[0]], [1 - p_y[1], p_y[1]]]),
    }
    return DiscreteNetwork(dag, {"x": ("no", "yes"), "y": ("no", "yes")}, tables)


@pytest.mark.parametrize("p_y", [(0.2, 0.7), (0.6, 0.7), (0.5, 0.1)])
def test_bounds_are_those_of_tian_and_pearl(p_y: tuple[float, float]) -> None:
    """The probability of necessity without confounding (Tian and Pearl 2000)."""
    network = binary(0.4, p_y)
    answer = network.counterfactual({"x": "yes", "y": "yes"}, do={"x": "no"}, target="y")
    low = max(0.0, (p_y[1] - p_y[0]) / p_y[1])
    high = min(1.0, (1 - p_y[0]) / p_y[1])
    assert answer["no"] == pytest.approx((low, high))
    assert answer["yes"] == pytest.approx((1 - high, 1 - low))
    assert "between" in str(answer)
    assert len(answer.to_frame(like={})["lower"]) == 2


def chain(seed: int, levels: int = 3) -> DiscreteNetwork:
    rng = np.random.default_rng(seed)
    dag = ist.DAG(["x", "m", "y"], [("x", "m"), ("m", "y"), ("x", "y")])
    names = tuple(str(k) for k in range(levels))
    tables = {
        "x": rng.dirichlet(np.ones(levels)),
        "m": rng.dirichlet(np.ones(levels), size=levels),
        "y": rng.dirichlet(np.ones(levels), size=(levels, levels)),
    }
    tables = {v: tables[v] for v in dag.nodes}
    if dag.parents("y") != ("x", "m"):
        tables["y"] = tables["y"].transpose(1, 0, 2)
    return DiscreteNetwork(dag, dict.fromkeys(dag.nodes, names), tables)


def test_one_step_is_the_best_of_all_mechanisms() -> None:
    """Against a linear program over the joint distribution of all responses."""
    from scipy.optimize import linprog

    network = chain(3)
    table = np.asarray(network.tables["m"])
    answer = network.counterfactual({"x": "0", "m": "1"}, do={"x": "2"}, target="m")
    for level in range(3):
        # Responses (m if x = 0, m if x = 2) with the two margins of the table.
        cost = np.zeros((3, 3))
        cost[1, level] = 1.0 / table[0, 1]
        margins = np.vstack([np.kron(np.eye(3), np.ones(3)), np.kron(np.ones(3), np.eye(3))])
        values = np.concatenate([table[0], table[2]])
        programs: list[Any] = [
            linprog(s * cost.ravel(), A_eq=margins, b_eq=values) for s in (1.0, -1.0)
        ]
        ends = [programs[0].fun, -programs[1].fun]
        assert answer[str(level)] == pytest.approx(tuple(ends), abs=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_true_mechanisms_lie_within_the_bounds(seed: int) -> None:
    """Worlds in which the response of each unit to all parents is drawn at once."""
    network = chain(seed)
    rng = np.random.default_rng(seed)
    n = 200_000
    x = rng.choice(3, p=network.tables["x"], size=n)

    def responses(table: np.ndarray) -> np.ndarray:
        """Return one answer per unit and parents, comonotone or independent per draw."""
        flat = np.cumsum(table.reshape(-1, 3), axis=1)
        u = rng.random((n, 1)) if seed % 2 else rng.random((n, len(flat)))
        drawn: np.ndarray = (np.broadcast_to(u, (n, len(flat)))[:, :, None] > flat).sum(axis=2)
        return drawn.clip(max=2)

    table = np.asarray(network.tables["y"])
    if network.dag.parents("y") != ("x", "m"):
        table = table.transpose(1, 0, 2)
    to_m, to_y = responses(np.asarray(network.tables["m"])), responses(table)
    units = np.arange(n)
    m, other_m = to_m[units, x], to_m[units, 0]
    y, other_y = to_y[units, 3 * x + m], to_y[units, other_m]
    for row in ({"x": 1, "m": 2, "y": 0}, {"x": 2, "y": 1}):
        values = {"x": x, "m": m, "y": y}
        same = np.logical_and.reduce([values[v] == code for v, code in row.items()])
        answer = network.counterfactual(
            {v: str(code) for v, code in row.items()}, do={"x": "0"}, target="y"
        )
        for level in range(3):
            share = np.mean(other_y[same] == level)
            low, high = answer[str(level)]
            assert low - 0.02 <= share <= high + 0.02


def mixed() -> MixedNetwork:
    dag = ist.DAG(["drug", "dose", "cured"], [("drug", "dose"), ("drug", "cured")])
    return MixedNetwork(
        dag,
        {
            "drug": ProbabilityTable(("a", "b"), (), np.array([0.5, 0.5])),
            "dose": ConditionalGaussian(
                ("drug",), (), np.array([1.0, 3.0]), np.zeros((2, 0)), np.array([1.0, 4.0])
            ),
            "cured": ProbabilityTable(("no", "yes"), ("drug",), np.array([[0.8, 0.2], [0.3, 0.7]])),
        },
    )


def test_mixed_rows_keep_their_noise_and_have_bounds() -> None:
    network = mixed()
    row: dict[str, str | float] = {"drug": "b", "dose": 5.0, "cured": "yes"}
    dose = network.counterfactual(row, do={"drug": "a"}, target="dose")
    assert (dose.lower[0], dose.upper[0]) == pytest.approx((2.0, 2.0))  # one deviation above
    cured = network.counterfactual(row, do={"drug": "a"}, target="cured")
    assert cured["yes"] == pytest.approx((0.0, 0.2 / 0.7))
    same = network.counterfactual(row, do={"drug": "b"}, target="cured")
    assert same["yes"] == (1.0, 1.0)
    with pytest.raises(DataError, match=r"no value of"):
        network.counterfactual({"drug": "b"}, do={"drug": "a"}, target="dose")


def test_refusals() -> None:
    data = ist.datasets.asia(rows=500, seed=1)
    learned: Any = ist.learn(data).fit()
    if learned.cpdag is not None and learned.cpdag.undirected:
        with pytest.raises(GraphError, match=r"ist\.fit"):
            learned.counterfactual({"smoke": "yes"}, do={"smoke": "no"}, target="lung")
    network = binary(0.4, (0.2, 0.7))
    with pytest.raises(ArgumentError):
        network.counterfactual({"x": "yes"}, do={"y": "no"}, target="y")
    unchanged = network.counterfactual({"x": "yes", "y": "no"}, do={"y": "yes"}, target="x")
    assert unchanged["yes"] == (1.0, 1.0)
