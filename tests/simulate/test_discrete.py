from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isthmus import simulate
from isthmus.errors import ArgumentError, DataError
from isthmus.graphs import DAG
from isthmus.io import read_bif

COLLIDER = DAG(["c", "a", "b"], [("a", "c"), ("b", "c")])


def test_shares_are_those_of_the_tables() -> None:
    network = simulate.discrete_network(
        COLLIDER, cardinalities={"a": 2, "b": 3, "c": 4}, concentration=2.0, seed=1
    )
    n = 60_000
    result = simulate.discrete(network, n, seed=2)
    assert result.dag == COLLIDER
    assert list(result.data) == ["c", "a", "b"]
    codes = {
        name: np.searchsorted(np.array(network.levels[name]), result.data[name])
        for name in ("a", "b", "c")
    }
    shape = (2, 3, 4)
    joint = np.bincount(
        np.ravel_multi_index((codes["a"], codes["b"], codes["c"]), shape), minlength=24
    ).reshape(shape)
    axes = [COLLIDER.parents("c").index(name) for name in ("a", "b")]
    conditional = np.transpose(network.tables["c"], (*axes, 2))
    expected = network.tables["a"][:, None, None] * network.tables["b"][None, :, None] * conditional
    assert np.abs(joint / n - expected).max() < 5 * 0.5 / np.sqrt(n)
    # The Pearson statistic has mean 23 and sd sqrt(46).
    chi2 = ((joint - n * expected) ** 2 / (n * expected)).sum()
    assert chi2 < 23 + 6 * np.sqrt(46)


@pytest.mark.long
def test_tables_are_dirichlet() -> None:
    dag = DAG(["x"])
    tables = np.array(
        [
            simulate.discrete_network(dag, cardinalities=3, concentration=0.5, seed=s).tables["x"]
            for s in range(3000)
        ]
    )
    # Each share is Beta(0.5, 1): mean 1/3, variance (1/3)(2/3) / (1.5 + 1).
    variance = 2 / 9 / 2.5
    assert np.abs(tables.mean(axis=0) - 1 / 3).max() < 5 * np.sqrt(variance / 3000)
    assert np.allclose(tables.var(axis=0), variance, rtol=0.15)


def test_cardinalities() -> None:
    dag = simulate.erdos_renyi(200, 100, seed=0)
    network = simulate.discrete_network(dag, cardinalities=(2, 4), seed=0)
    sizes = [len(network.levels[name]) for name in dag.nodes]
    assert set(sizes) == {2, 3, 4}
    assert abs(np.mean(sizes) - 3) < 5 * np.sqrt(2 / 3 / 200)


def test_seed() -> None:
    one, two = (simulate.discrete_network(COLLIDER, seed=3) for _ in range(2))
    assert all(np.array_equal(one.tables[name], two.tables[name]) for name in COLLIDER.nodes)
    a, b = simulate.discrete(one, 50, seed=4), simulate.discrete(two, 50, seed=4)
    assert all(np.array_equal(a.data[name], b.data[name]) for name in COLLIDER.nodes)
    other = simulate.discrete(one, 50, seed=5)
    assert any(not np.array_equal(a.data[name], other.data[name]) for name in COLLIDER.nodes)


def test_labels_are_kept() -> None:
    result = simulate.discrete(simulate.discrete_network(COLLIDER, seed=3), 100, seed=4)
    assert set(np.unique(result.data["a"])) <= {"s0", "s1"}
    with pytest.raises(DataError, match="discrete"):
        result.standardised()


@pytest.mark.parametrize("bad", [1, (3, 2), (1, 3), {"a": 2, "b": 2}, {"a": 2, "b": 2, "c": 1}])
def test_bad_cardinalities(bad: int | tuple[int, int] | Mapping[str, int]) -> None:
    with pytest.raises(DataError):
        simulate.discrete_network(COLLIDER, cardinalities=bad, seed=0)


def test_refusals() -> None:
    with pytest.raises(DataError, match="concentration"):
        simulate.discrete_network(COLLIDER, concentration=0.0, seed=0)
    names = [f"x{i}" for i in range(30)]
    star = DAG(names, [(name, "x0") for name in names[1:]])
    with pytest.raises(DataError, match="cells"):
        simulate.discrete_network(star, seed=0)


ASIA = (
    Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[3] / "shared" / "data"))
    / "networks"
    / "asia.bif.gz"
)


@pytest.mark.skipif(not ASIA.exists(), reason="the repository networks are not here")
def test_from_a_bif_file() -> None:
    network = read_bif(ASIA)
    data = simulate.discrete(network, 20_000, seed=0).data
    # "either" is the logical or of "tub" and "lung", by its table.
    either = (data["tub"] == "yes") | (data["lung"] == "yes")
    assert np.array_equal(data["either"] == "yes", either)
    assert abs((data["smoke"] == "yes").mean() - 0.5) < 5 * 0.5 / np.sqrt(20_000)


def test_a_graph_without_tables_is_refused_with_advice() -> None:
    dag: Any = DAG(["a", "b"], [("a", "b")])
    with pytest.raises(ArgumentError, match="discrete_network"):
        simulate.discrete(dag, 10)
