"""Exact inference in discrete networks: enumeration, longer networks, and pyAgrum's opinion."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from tests.networks.test_queries import joint, random_network, slow_query

import isthmus as ist
from isthmus.errors import ArgumentError, DataError, SchemaError
from isthmus.networks import DiscreteNetwork


def with_report(network: DiscreteNetwork, node: str, likelihood: list[float]) -> DiscreteNetwork:
    """Add a report on a node, which is "made" with a probability proportional to a likelihood."""
    dag = ist.DAG((*network.dag.nodes, "report"), (*network.dag.edges, (node, "report")))
    chance = np.array(likelihood) / (2 * max(likelihood))
    levels = dict(network.levels) | {"report": ("made", "not made")}
    tables = dict(network.tables) | {"report": np.stack([chance, 1 - chance], axis=1)}
    return DiscreteNetwork(dag, levels, tables)


def test_random_questions_to_two_hundred_networks() -> None:
    for seed in range(200):
        rng = np.random.default_rng(seed)
        network = random_network(seed, d=int(rng.integers(2, 8)))
        for _ in range(3):
            nodes = rng.permutation(network.dag.nodes).tolist()
            size = int(rng.integers(1, min(3, len(nodes)) + 1))
            targets, rest = nodes[:size], nodes[size:]
            split = rng.integers(0, 4, size=len(rest))
            pick = {v: str(rng.choice(network.levels[v])) for v in rest}
            evidence = {v: pick[v] for v, part in zip(rest, split, strict=True) if part == 0}
            do = {v: pick[v] for v, part in zip(rest, split, strict=True) if part == 1}
            found: Any = network.query(targets, evidence=evidence, do=do)
            assert found.names == tuple(targets)
            expected = slow_query(network, targets, evidence, do)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=1e-12)
            # An uncertain observation, also of a target, is a certain report on it.
            node = nodes[0] if rng.random() < 0.5 else nodes[-1]
            if node not in evidence and node not in do:
                likelihood = rng.random(len(network.levels[node]))
                uncertain = dict(zip(network.levels[node], likelihood, strict=True))
                reported = with_report(network, node, likelihood.tolist())
                expected = slow_query(reported, targets, evidence | {"report": "made"}, do)
                asked: Any = network.query(targets, evidence | {node: uncertain}, do)
                np.testing.assert_allclose(np.asarray(asked), expected, rtol=0, atol=1e-12)
        first = found.marginal(targets[0])
        assert first[network.levels[targets[0]][0]] == pytest.approx(first.values[0])


def test_most_probable_levels_by_enumeration() -> None:
    for seed in range(60):
        rng = np.random.default_rng(seed)
        network = random_network(seed, d=6)
        nodes = rng.permutation(network.dag.nodes).tolist()
        evidence: dict[str, Any] = {v: str(rng.choice(network.levels[v])) for v in nodes[:2]}
        total = joint(network)
        for v, level in evidence.items():
            keep = np.array(network.levels[v]) == level
            total = total * keep.reshape([-1 if u == v else 1 for u in network.dag.nodes])
        best = np.unravel_index(int(total.argmax()), total.shape)
        found = network.most_probable(evidence)
        for v, code in zip(network.dag.nodes, best, strict=True):
            assert v in evidence or found[v] == network.levels[v][code]
        assert np.exp(found.log_probability) == pytest.approx(total.max() / total.sum())
        some = nodes[2:4]
        few = network.most_probable(evidence, some)
        answer = network.query(some, evidence)
        assert dict(few.values) == answer.most_probable()
        assert np.exp(few.log_probability) == pytest.approx(np.asarray(answer).max())
    with pytest.raises(ArgumentError, match="not one of"):
        few["no such node"]
    assert "log-probability" in str(few)


def test_predictions_with_any_missing_cells() -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        network = random_network(seed, d=6)
        rows: dict[str, Any] = {v: c.astype(object) for v, c in network.sample(15, seed=1).items()}
        for column in rows.values():
            column[rng.random(15) < 0.4] = [None, float("nan")][seed % 2]
        del rows[network.dag.nodes[5]]
        target = network.dag.nodes[seed % 5]
        found = network.predict_probabilities(rows, target)
        for i in range(15):
            seen = {v: c[i] for v, c in rows.items() if v != target and isinstance(c[i], str)}
            expected = slow_query(network, [target], seen, {})
            np.testing.assert_allclose(found[i], expected, atol=1e-12)


def test_likelihoods_that_are_refused() -> None:
    network = random_network(0)
    node = next(v for v in network.dag.nodes if len(network.levels[v]) == 3)
    other = next(v for v in network.dag.nodes if v != node)
    with pytest.raises(SchemaError, match="a likelihood for each of its levels"):
        network.query(other, {node: {"l0": 1.0}})
    with pytest.raises(DataError, match="one of them above 0"):
        network.query(other, {node: {"l0": 0.0, "l1": 0.0, "l2": 0.0}})
    with pytest.raises(DataError, match="must be a finite number"):
        network.query(other, {node: {"l0": 0.5, "l1": float("nan"), "l2": 0.0}})


def test_long_chains_do_not_underflow() -> None:
    d = 800
    names = [f"v{i}" for i in range(d)]
    dag = ist.DAG(names, list(pairwise(names)))
    turn = np.array([[0.9, 0.1], [0.3, 0.7]])
    tables = dict.fromkeys(names, turn) | {"v0": np.array([0.5, 0.5])}
    network = DiscreteNetwork(dag, dict.fromkeys(names, (0, 1)), tables)
    evidence = {v: 1 for v in names[1:] if v != "v400"}
    weights = 0.7 * 0.7, 0.3 * 0.1  # 1 → 1 → 1 and 1 → 0 → 1
    expected = weights[0] / sum(weights)
    assert network.query("v400", evidence)[1] == pytest.approx(expected, abs=1e-12)
    soft = {v: {0: 1e-3, 1: 1.0} for v in names[1:]}
    assert 0.999 < network.query("v400", soft)[1] < 1.0
    assert network.most_probable(evidence)["v0"] == 1


def test_what_is_too_large_says_what_to_do() -> None:
    rng = np.random.default_rng(0)
    causes = [f"c{i}" for i in range(28)]
    pairs = {f"s{i}": pair for i, pair in enumerate(combinations(causes, 2))}
    signs = list(pairs)
    dag = ist.DAG([*causes, *signs], [(c, s) for s, both in pairs.items() for c in both])
    tables: dict[str, Any] = dict.fromkeys(causes, np.array([0.5, 0.5]))
    tables |= {s: rng.dirichlet([1, 1], size=(2, 2)) for s in signs}
    network = DiscreteNetwork(dag, dict.fromkeys(dag.nodes, (0, 1)), tables)
    with pytest.raises(DataError, match=r"table of \S+ cells over .*network.sample"):
        network.query("c0", dict.fromkeys(signs, 1))
    everything = dict.fromkeys(signs, 1) | dict.fromkeys(causes[1:], 0)
    assert network.query("c0", everything).values.sum() == pytest.approx(1)


def test_pyagrum_gives_the_same_probabilities() -> None:
    gum: Any = pytest.importorskip("pyagrum")
    network = random_network(7, d=14)
    peer = gum.BayesNet()
    for i, name in enumerate(network.dag.nodes):
        labels = [str(k) for k in range(len(network.levels[name]))]
        peer.add(gum.LabelizedVariable(f"v{i}", "", labels))
    for i, parents in enumerate(network.dag.parent_indices()):
        for p in reversed(parents):
            peer.addArc(f"v{p}", f"v{i}")
        peer.cpt(f"v{i}").fillWith(network.tables[network.dag.nodes[i]].ravel().tolist())
    rows = network.sample_codes(10, seed=2)
    for i in range(10):
        seen = {v: int(rows[network.dag.nodes[v]][i]) for v in range(i % 5)}
        engine = gum.LazyPropagation(peer)
        engine.setEvidence({f"v{v}": code for v, code in seen.items()})
        engine.makeInference()
        evidence = {
            network.dag.nodes[v]: network.levels[network.dag.nodes[v]][code]
            for v, code in seen.items()
        }
        for t in range(10, 14):
            theirs = engine.posterior(f"v{t}").toarray()
            ours = network.query(network.dag.nodes[t], evidence)
            np.testing.assert_allclose(np.asarray(ours), theirs.ravel(), rtol=0, atol=1e-9)
