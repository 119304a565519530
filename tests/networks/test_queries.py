"""Queries and predictions: every number against the whole joint distribution, or simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, DataError, GraphError, MismatchError, SchemaError
from isthmus.networks import DiscreteNetwork, GaussianNetwork


def random_network(seed: int, d: int = 6) -> DiscreteNetwork:
    rng = np.random.default_rng(seed)
    nodes = [f"n {i}" for i in rng.permutation(d)]
    dag = ist.DAG.from_adjacency(nodes, np.triu(rng.random((d, d)) < 0.5, 1))
    levels: dict[str, Any] = {v: tuple(f"l{k}" for k in range(rng.integers(1, 4))) for v in nodes}
    tables = {}
    for v in nodes:
        shape = tuple(len(levels[p]) for p in dag.parents(v))
        tables[v] = rng.dirichlet(np.ones(len(levels[v])), size=shape)
    return DiscreteNetwork(dag, levels, tables)


def joint(network: DiscreteNetwork, do: dict[str, str] | None = None) -> Floats:
    """The probabilities of all configurations, one axis per node."""
    d = len(network.dag.nodes)
    total = np.ones([len(network.levels[v]) for v in network.dag.nodes])
    for v in network.dag.nodes:
        if do and v in do:
            point = np.array([float(level == do[v]) for level in network.levels[v]])
            total = total * point.reshape([-1 if u == v else 1 for u in network.dag.nodes])
            continue
        axes = [network.dag.index(u) for u in (*network.dag.parents(v), v)]
        factor = network.tables[v].transpose(np.argsort(axes))
        shape = [total.shape[i] if i in axes else 1 for i in range(d)]
        total = total * factor.reshape(shape)
    return total


def slow_query(
    network: DiscreteNetwork, targets: list[str], evidence: dict[str, str], do: dict[str, str]
) -> Floats:
    total = joint(network, do)
    for v, level in evidence.items():
        code = network.levels[v].index(level)
        keep = np.arange(len(network.levels[v])) == code
        total = total * keep.reshape([-1 if u == v else 1 for u in network.dag.nodes])
    positions = [network.dag.index(t) for t in targets]
    found = total.sum(axis=tuple(i for i in range(total.ndim) if i not in positions))
    found = found.transpose(np.argsort(np.argsort(positions)))
    return np.asarray(found / found.sum())


def test_seeing_is_not_doing() -> None:
    dag = ist.DAG(["sun", "ice", "swim"], [("sun", "ice"), ("sun", "swim")])
    levels = dict.fromkeys(dag.nodes, ("no", "yes"))
    copy = np.array([[0.9, 0.1], [0.2, 0.8]])
    network = DiscreteNetwork(dag, levels, {"sun": np.array([0.5, 0.5]), "ice": copy, "swim": copy})
    seen = network.query("swim", evidence={"ice": "yes"})
    done = network.query("swim", do={"ice": "yes"})
    assert seen["yes"] == pytest.approx((0.1 * 0.1 + 0.8 * 0.8) / 0.9)
    assert done["yes"] == pytest.approx(0.45)
    assert network.query(["sun", "ice"])["yes", "no"] == pytest.approx(0.1)
    assert network.query(["sun", "ice"]).most_probable() == {"sun": "no", "ice": "no"}
    assert "yes: 0.4500" in str(done)


def test_impossible_evidence_and_wrong_questions() -> None:
    dag = ist.DAG(["a", "b"], [("a", "b")])
    network = DiscreteNetwork(
        dag, dict.fromkeys("ab", (0, 1)), {"a": np.array([1.0, 0.0]), "b": np.eye(2)}
    )
    with pytest.raises(DataError, match="probability zero"):
        network.query("a", evidence={"b": 1})
    with pytest.raises(SchemaError, match="not one of the levels"):
        network.query("a", evidence={"b": 2})
    with pytest.raises(GraphError):
        network.query("c")
    with pytest.raises(ArgumentError, match="each can be in one"):
        network.query("a", evidence={"a": 0})
    with pytest.raises(ArgumentError, match="at least one"):
        network.query([])
    with pytest.raises(ArgumentError, match="must map"):
        network.query("a", evidence=[("b", 1)])  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="one level for each"):
        network.query("a")[0, 1]


@pytest.mark.parametrize("seed", range(6))
def test_discrete_predictions(seed: int) -> None:
    network = random_network(seed)
    rows = network.sample(12, seed=seed)
    target = network.dag.nodes[seed % 6]
    everything = network.predict_probabilities(rows, target)
    few = {v: rows[v] for v in network.dag.nodes[::2]}
    partly = network.predict_probabilities(few, target)
    for i in range(12):
        evidence = {v: str(column[i]) for v, column in rows.items() if v != target}
        np.testing.assert_allclose(
            everything[i], slow_query(network, [target], evidence, {}), atol=1e-10
        )
        evidence = {v: e for v, e in evidence.items() if v in few}
        np.testing.assert_allclose(
            partly[i], slow_query(network, [target], evidence, {}), atol=1e-10
        )
    predicted = network.predict(rows, target)
    assert predicted.tolist() == [network.levels[target][k] for k in everything.argmax(axis=1)]


def random_gaussian(seed: int, d: int = 6) -> GaussianNetwork:
    rng = np.random.default_rng(seed)
    nodes = [f"v{i}" for i in range(d)]
    dag = ist.DAG.from_adjacency(nodes, np.triu(rng.random((d, d)) < 0.6, 1))
    return GaussianNetwork(
        dag,
        {v: rng.normal() for v in nodes},
        {v: {p: rng.normal() for p in dag.parents(v)} for v in nodes},
        {v: rng.gamma(2.0) for v in nodes},
    )


@pytest.mark.parametrize("seed", range(10))
def test_gaussian_queries_by_the_inverse_of_the_precision(seed: int) -> None:
    network = random_gaussian(seed)
    rng = np.random.default_rng(seed)
    # The precision matrix of the joint, written out of the regressions.
    b = np.eye(6) - network.weights()
    noise = np.array([network.variances[v] for v in network.dag.nodes])
    precision = b @ np.diag(1 / noise) @ b.T
    values = rng.normal(size=2)
    found = network.query(["v0", "v3", "v5"], evidence={"v1": values[0], "v4": values[1]})
    free, seen = [0, 2, 3, 5], [1, 4]
    covariance = np.linalg.inv(precision[np.ix_(free, free)])
    mean = network.mean()
    centre = mean[free] - covariance @ precision[np.ix_(free, seen)] @ (values - mean[seen])
    keep = [0, 2, 3]
    np.testing.assert_allclose(found.mean, centre[keep], atol=1e-9)
    np.testing.assert_allclose(found.covariance, covariance[np.ix_(keep, keep)], atol=1e-9)
    rows = {f"v{i}": rng.normal(size=4) for i in (1, 2, 4)}
    predicted = network.predict(rows, "v3")
    for i in range(4):
        one = network.query("v3", evidence={v: float(c[i]) for v, c in rows.items()})
        assert predicted[i] == pytest.approx(one.mean[0])


@pytest.mark.parametrize("seed", range(5))
def test_uncertain_gaussian_evidence_is_a_noisy_copy(seed: int) -> None:
    network = random_gaussian(seed)
    nodes = (*network.dag.nodes, "m1", "m4")
    copies = GaussianNetwork(
        ist.DAG(nodes, (*network.dag.edges, ("v1", "m1"), ("v4", "m4"))),
        {**network.intercepts, "m1": 0.0, "m4": 0.0},
        {**network.coefficients, "m1": {"v1": 1.0}, "m4": {"v4": 1.0}},
        {**network.variances, "m1": 0.5**2, "m4": 2.0**2},
    )
    expected = copies.query(["v1", "v3"], {"m1": 1.5, "m4": -1.0, "v0": 0.2})
    found = network.query(["v1", "v3"], {"v1": (1.5, 0.5), "v4": (-1.0, 2.0), "v0": 0.2})
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-10)
    np.testing.assert_allclose(found.covariance, expected.covariance, atol=1e-10)
    certain = network.query("v3", {"v1": (1.5, 0.0)})
    assert certain.mean[0] == pytest.approx(network.query("v3", {"v1": 1.5}).mean[0])
    with pytest.raises(DataError, match="negative"):
        network.query("v3", {"v1": (1.5, -1.0)})
    with pytest.raises(ArgumentError, match="a pair"):
        network.query("v3", {"v1": (1.5,)})  # type: ignore[dict-item]


def test_the_most_probable_values_of_a_gaussian_network() -> None:
    network = random_gaussian(1)
    found = network.most_probable({"v2": 1.0})
    answer = network.query(["v0", "v1", "v3", "v4", "v5"], {"v2": 1.0})
    assert [found[v] for v in answer.names] == pytest.approx(answer.mean.tolist())
    volume = np.linalg.det(2 * np.pi * answer.covariance)
    assert found.log_probability == pytest.approx(-0.5 * np.log(volume))
    assert network.most_probable({"v2": 1.0}, ["v3"])["v3"] == pytest.approx(found["v3"])


def test_gaussian_predictions_with_missing_cells() -> None:
    network = random_gaussian(2)
    rng = np.random.default_rng(2)
    rows: dict[str, Any] = network.sample(20, seed=1)
    for column in rows.values():
        column[rng.random(20) < 0.3] = np.nan
    rows["v1"] = [None if np.isnan(x) else x for x in rows["v1"]]
    del rows["v4"]
    found = network.predict(rows, "v3")
    for i in range(20):
        seen = {v: c[i] for v, c in rows.items() if v != "v3" and c[i] is not None}
        seen = {v: x for v, x in seen.items() if not np.isnan(x)}
        assert found[i] == pytest.approx(network.query("v3", seen).mean[0])


@pytest.mark.parametrize("seed", range(5))
def test_gaussian_interventions_change_the_sum_over_paths(seed: int) -> None:
    network = random_gaussian(seed)
    effects = np.linalg.inv(np.eye(6) - network.weights())
    for cause, effect in ((0, 5), (2, 4), (5, 0)):
        names = network.dag.nodes
        answers: list[Any] = [
            network.query(names[effect], do={names[cause]: value}) for value in (1.0, 3.0)
        ]
        low, high = (answer.mean[0] for answer in answers)
        assert (high - low) / 2 == pytest.approx(effects[cause, effect], abs=1e-12)


def test_gaussian_evidence_without_noise() -> None:
    dag = ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c")])
    network = GaussianNetwork(
        dag,
        {"a": 1.0, "b": 0.0, "c": 0.0},
        {"a": {}, "b": {"a": 2.0}, "c": {"b": 1.0}},
        {"a": 1.0, "b": 0.0, "c": 1e-4},
    )
    assert network.query("c", evidence={"a": 3.0, "b": 6.0}).mean[0] == pytest.approx(6.0)
    with pytest.raises(DataError, match="impossible"):
        network.query("c", evidence={"a": 3.0, "b": 5.0})
    with pytest.raises(DataError, match="finite"):
        network.query("c", evidence={"a": float("nan")})
    assert network.predict({}, "c").tolist() == [2.0]
    with pytest.raises(SchemaError, match=r"'unknown'.*'a', 'b'"):
        network.predict({"unknown": [1, 2]}, "c")
    assert "±" in str(network.query("c"))


def test_mixed_predictions_by_brute_force() -> None:
    from tests.networks.test_mixed import NETWORK

    rows = NETWORK.sample(6, seed=3)
    for target in ("sex", "drug", "cured"):
        found = NETWORK.predict_probabilities(rows, target)
        for i in range(6):
            logs = []
            for level in NETWORK.levels[target]:
                one = {v: [level if v == target else c[i]] for v, c in rows.items()}
                logs.append(NETWORK.log_densities(one)[0])
            weights = np.exp(np.array(logs) - max(logs))
            np.testing.assert_allclose(found[i], weights / weights.sum(), atol=1e-12)
    grid = np.linspace(-30, 40, 20_001)
    for target in ("dose", "effect"):
        found = NETWORK.predict(rows, target)
        for i in range(6):
            many = {v: grid if v == target else [c[i]] * len(grid) for v, c in rows.items()}
            weights = np.exp(NETWORK.log_densities(many))
            assert found[i] == pytest.approx(weights @ grid / weights.sum(), abs=1e-4)
    assert set(NETWORK.predict(rows, "cured")) <= {"no", "partly", "yes"}
    with pytest.raises(MismatchError, match="continuous"):
        NETWORK.predict_probabilities(rows, "dose")


def test_log_likelihood_of_any_table() -> None:
    pd = pytest.importorskip("pandas")
    network = random_network(2)
    labels = network.sample(50, seed=1)
    expected = network.log_likelihood(network.encode(labels))
    assert ist.log_likelihood(network, labels) == pytest.approx(expected)
    frame = pd.DataFrame(labels).assign(more=1.0)
    assert ist.log_likelihood(network, frame) == pytest.approx(expected)
    gaussian = random_gaussian(0)
    numbers = gaussian.sample(20, seed=0)
    assert ist.log_likelihood(gaussian, numbers) == pytest.approx(gaussian.log_likelihood(numbers))
    assert ist.log_likelihood(gaussian, ist.Frame(numbers)) == pytest.approx(
        gaussian.log_likelihood(numbers)
    )
    with pytest.raises(ArgumentError, match="parameters"):
        ist.log_likelihood(network.dag, labels)  # type: ignore[call-overload]


@pytest.mark.parametrize("n", [-1, 2.5, "3"])
def test_samples_of_a_wrong_size_are_refused(n: Any) -> None:
    gaussian = GaussianNetwork(ist.DAG(["a"], []), {"a": 0.0}, {"a": {}}, {"a": 1.0})
    discrete = DiscreteNetwork(ist.DAG(["a"], []), {"a": ("u", "v")}, {"a": np.array([0.5, 0.5])})
    for network in (gaussian, discrete):
        with pytest.raises(ArgumentError, match=f"of at least 0; got {n!r}"):
            network.sample(n)
        assert len(network.sample(0)["a"]) == 0
        three: Any = np.int64(3)
        assert len(network.sample(three)["a"]) == 3


def test_no_rows_get_no_predictions() -> None:
    network = ist.learn(ist.datasets.asia(rows=200)).fit()
    assert isinstance(network, DiscreteNetwork)
    assert network.predict_probabilities({"smoke": []}, "dysp").shape == (0, 2)
    assert network.predict({"smoke": []}, "dysp").shape == (0,)


@pytest.mark.parametrize("kind", ["discrete", "mixed"])
def test_a_set_of_levels_is_evidence_for_one_of_them(kind: str) -> None:
    """Its answer lies between those of its levels, with the weights of Bayes' rule."""
    rng = np.random.default_rng(0)
    a = rng.choice(["x", "y", "z"], 500, p=[0.5, 0.3, 0.2])
    table = {"a": a, "b": np.where(rng.random(500) < np.where(a == "x", 0.8, 0.3), "yes", "no")}
    if kind == "mixed":
        table |= {"c": rng.normal(size=500)}
    network: Any = ist.fit(table, ist.DAG([*table], [("a", "b")]))
    prior = network.query("a")
    weights = np.array([prior["x"], prior["y"]])
    each = np.array([network.query("b", {"a": level})["yes"] for level in "xy"])
    expected = weights @ each / weights.sum()
    for given in ({"x", "y"}, ["x", "y"], frozenset("xy")):
        assert network.query("b", {"a": given})["yes"] == pytest.approx(expected)
    with pytest.raises(SchemaError, match=r"'X' is not one of the levels of 'a'.*Did you mean 'x'"):
        network.query("b", {"a": {"X", "y"}})
    with pytest.raises(SchemaError, match="Did you mean 'x'"):
        network.query("b", {"a": "X"})


def test_log_likelihoods_of_rows_sum_to_that_of_the_table() -> None:
    """Also if rows with unseen levels are among them, in their places."""
    rng = np.random.default_rng(1)
    table = {"a": rng.choice(["x", "y"], 60), "b": rng.choice(["u", "v"], 60)}
    numbers = {"s": rng.normal(size=60), "t": rng.normal(size=60)}
    discrete: Any = ist.fit(table, ist.DAG(["a", "b"], [("a", "b")]))
    mixed = ist.fit(table | numbers, ist.DAG(["a", "b", "s", "t"], [("a", "s"), ("s", "t")]))
    gaussian = ist.fit(numbers, ist.DAG(["s", "t"], [("s", "t")]))
    for network in (discrete, mixed, gaussian):
        data = {v: (table | numbers)[v] for v in network.dag.nodes}
        each = ist.log_likelihood(network, data, per_row=True)
        assert each.sum() == pytest.approx(ist.log_likelihood(network, data))
        for row in (0, 17):
            single = {v: column[row : row + 1] for v, column in data.items()}
            assert each[row] == pytest.approx(ist.log_likelihood(network, single))
    new = {v: column.copy() for v, column in table.items()}
    new["a"][5] = "w"
    with pytest.warns(UserWarning, match="has not seen"):
        each = ist.log_likelihood(discrete, new, per_row=True)
    assert each[5] == pytest.approx(np.log(discrete.query("b")[str(table["b"][5])]))
    known = ist.log_likelihood(discrete, table, per_row=True)
    assert np.delete(each, 5) == pytest.approx(np.delete(known, 5))
