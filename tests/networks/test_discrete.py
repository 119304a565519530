from __future__ import annotations

import copy
import itertools
import math
import time

import numpy as np
import pytest

from isthmus.errors import DataError, SchemaError
from isthmus.graphs import DAG
from isthmus.networks import DiscreteNetwork
from isthmus.verbs.learn import learn


def collider(seed: int = 0) -> DiscreteNetwork:
    """Return a network whose parents have different cardinalities, so that axes matter."""
    rng = np.random.default_rng(seed)
    dag = DAG(["c", "a", "b"], [("a", "c"), ("b", "c"), ("a", "b")])
    sizes = {"a": 2, "b": 3, "c": 4}
    tables = {
        v: rng.dirichlet(np.ones(sizes[v]), size=tuple(sizes[p] for p in dag.parents(v)))
        for v in dag.nodes
    }
    levels = {"a": (False, True), "b": ("lo", "mid", "hi"), "c": (1, 2, 3, 4)}
    return DiscreteNetwork(dag, levels, tables)


def joint(net: DiscreteNetwork) -> dict[tuple[int, ...], float]:
    """Multiply out the joint distribution, cell by cell."""
    found = {}
    for cell in itertools.product(*(range(k) for k in net.cardinalities.values())):
        at = dict(zip(net.dag.nodes, cell, strict=True))
        chance = 1.0
        for v in net.dag.nodes:
            place = (*(at[p] for p in net.dag.parents(v)), at[v])
            chance *= float(net.tables[v][place])
        found[cell] = chance
    return found


def test_the_joint_is_what_is_sampled() -> None:
    net = collider()
    n = 200_000
    rows = net.sample_codes(n, seed=3)
    assert list(rows) == ["c", "a", "b"]
    assert all(column.dtype == np.uint8 for column in rows.values())
    expected = joint(net)
    assert sum(expected.values()) == pytest.approx(1)
    cells, counts = np.unique(np.stack(list(rows.values())), axis=1, return_counts=True)
    seen = {tuple(c): k for c, k in zip(cells.T.tolist(), counts.tolist(), strict=True)}
    chi2 = sum((seen.get(c, 0) - n * p) ** 2 / (n * p) for c, p in expected.items())
    assert chi2 < 52  # 23 degrees of freedom: exceeded once in 2000 seeds


def test_log_likelihood_is_the_log_of_the_joint() -> None:
    net = collider()
    rows = net.sample_codes(50, seed=1)
    expected = joint(net)
    cells = zip(*(rows[v].tolist() for v in net.dag.nodes), strict=True)
    total = sum(math.log(expected[cell]) for cell in cells)
    assert net.log_likelihood(rows) == pytest.approx(total, rel=1e-12)
    assert net.log_likelihood({v: np.array([], dtype=int) for v in net.dag.nodes}) == 0


def test_impossible_rows_and_levels() -> None:
    dag = DAG(["x", "y"], [("x", "y")])
    # rows that fall short of one by rounding must not let the impossible last level through
    tables = {"x": [0.5, 0.5, 0.0], "y": [[0.3333333, 0.6666665, 0.0]] * 3}
    net = DiscreteNetwork(dag, {"x": ("a", "b", "c"), "y": (0, 1, 2)}, tables)  # type: ignore[arg-type]
    rows = net.sample_codes(100_000, seed=0)
    assert rows["x"].max() == 1
    assert rows["y"].max() == 1
    assert net.log_likelihood({"x": [2], "y": [0]}) == -math.inf


def test_same_seed_same_rows() -> None:
    net = collider()
    one, two, three = (net.sample_codes(100, seed=s) for s in (5, 5, 6))
    assert all((one[v] == two[v]).all() for v in one)
    assert any((one[v] != three[v]).any() for v in one)


def test_labels_and_codes() -> None:
    net = collider()
    labels = net.sample(300, seed=2)
    codes = net.sample_codes(300, seed=2)
    assert labels["b"].tolist() == [("lo", "mid", "hi")[k] for k in codes["b"]]
    assert labels["a"].dtype == np.bool_
    assert labels["c"].dtype.kind == "i"
    back = net.encode(labels)
    assert all((back[v] == codes[v]).all() for v in codes)
    with pytest.raises(SchemaError, match="'middle'"):
        net.encode({**labels, "b": ["middle"]})
    with pytest.raises(SchemaError, match="lacks an entry for 'b'"):
        net.encode({"a": [True], "c": [1]})


def test_many_levels_need_wider_codes() -> None:
    net = DiscreteNetwork(DAG(["x"]), {"x": tuple(range(300))}, {"x": np.full(300, 1 / 300)})
    assert net.sample_codes(10, seed=0)["x"].dtype == np.uint16
    assert net.parameters == 299
    single = DiscreteNetwork(DAG(["x"]), {"x": ("only",)}, {"x": [1.0]})  # type: ignore[dict-item]
    assert single.sample_codes(3, seed=0)["x"].tolist() == [0, 0, 0]
    assert single.parameters == 0


def test_mixed_levels_keep_their_types() -> None:
    net = DiscreteNetwork(DAG(["x"]), {"x": ("none", 1)}, {"x": [0.5, 0.5]})  # type: ignore[dict-item]
    assert set(net.sample(50, seed=0)["x"].tolist()) == {"none", 1}


def test_equality_follows_axes_not_order() -> None:
    net = collider()
    other = net.reorder(["b", "c", "a"])
    assert other == net
    assert other.tables["c"].shape == (3, 2, 4)
    assert other.parameters == net.parameters == 1 + 2 * 2 + 6 * 3
    assert copy.deepcopy(net) == net
    assert net != collider(seed=1)
    assert net != 3
    assert net.log_likelihood(net.sample_codes(9, seed=0)) == pytest.approx(
        other.log_likelihood(net.sample_codes(9, seed=0))
    )


def test_tables_cannot_be_changed() -> None:
    given = np.array([0.5, 0.5])
    net = DiscreteNetwork(DAG(["x"]), {"x": ("a", "b")}, {"x": given})
    given[0] = 0.9
    assert net.tables["x"][0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        net.tables["x"][0] = 1
    with pytest.raises(TypeError):
        net.tables["x"] = given  # type: ignore[index]


@pytest.mark.parametrize(
    ("levels", "table", "error", "message"),
    [
        ({"x": ("a", "b")}, [0.5, 0.4], DataError, "from one by 0.1"),
        ({"x": ("a", "b")}, [1.5, -0.5], DataError, "not probabilities"),
        ({"x": ("a", "b")}, [float("nan"), 1], DataError, "not probabilities"),
        ({"x": ("a", "b")}, [0.5, 0.25, 0.25], SchemaError, r"shape \(2,\)"),
        ({"x": ("a", "a")}, [0.5, 0.5], SchemaError, "unique"),
        ({"x": "ab"}, [0.5, 0.5], SchemaError, "string"),
        ({"x": ()}, [], SchemaError, "no levels"),
        ({}, [1.0], SchemaError, "lacks an entry for 'x'"),
        ({"x": ("a",), "z": ("b",)}, [1.0], SchemaError, "'z'"),
    ],
)
def test_refusals(
    levels: dict[str, tuple[str, ...]], table: list[float], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        DiscreteNetwork(DAG(["x"]), levels, {"x": np.array(table)})


def test_codes_out_of_range() -> None:
    net = collider()
    good = net.sample_codes(3, seed=0)
    with pytest.raises(DataError, match="from 0 to 1"):
        net.log_likelihood({**good, "a": [0, 1, 2]})
    with pytest.raises(DataError, match="integers from 0"):
        net.log_likelihood({**good, "a": [0.0, 1.0, 1.0]})
    with pytest.raises(DataError, match="equal length"):
        net.log_likelihood({**good, "a": [0, 1]})


@pytest.mark.timing
def test_a_thousand_nodes() -> None:
    rng = np.random.default_rng(0)
    size = 1000
    parents = [sorted({int(p) for p in rng.integers(0, i, 3)}) if i else [] for i in range(size)]
    names = [f"v{i}" for i in range(size)]
    dag = DAG.from_parents(names, parents)
    tables = {
        v: rng.dirichlet(np.ones(3), size=(3,) * len(parents[i])) for i, v in enumerate(names)
    }
    net = DiscreteNetwork(dag, dict.fromkeys(names, ("x", "y", "z")), tables)
    begin = time.perf_counter()
    rows = net.sample_codes(5000, seed=0)
    assert time.perf_counter() - begin < 5  # about 0.3 s on an idle core
    assert len(rows) == size


def test_samples_are_read_as_categories() -> None:
    """Codes of many levels would be read as numbers."""
    levels = {"a": tuple("ABCDEFG"), "b": ("low", "high")}
    tables = {"a": np.full(7, 1 / 7), "b": np.full(2, 0.5)}
    net = DiscreteNetwork(DAG(["a", "b"], []), levels, tables)
    solution = learn(net.sample(200, seed=1))
    assert [column.read_as for column in solution.reading] == ["discrete", "discrete"]
    fitted = solution.fit()
    assert isinstance(fitted, DiscreteNetwork)
    assert fitted.levels == {"a": tuple("ABCDEFG"), "b": ("high", "low")}
