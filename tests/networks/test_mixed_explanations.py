"""Most probable levels of mixed networks."""

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.networks import MixedNetwork
from isthmus.networks.mixed import likely_codes, most_probable_codes
from isthmus.networks.mixed_queries import MixedQuery


def fitted(rows: int = 3000, *, levels: int = 3) -> Any:
    rng = np.random.default_rng(4)
    letters = np.array(list("abcdefgh"[:levels]))
    x = rng.normal(size=rows)
    table: dict[str, Any] = {"x": x}
    edges = []
    before = rng.integers(0, levels, rows)
    table["d0"] = letters[before]
    for i in range(1, 9):
        own = np.where(rng.random(rows) < 0.6, before, rng.integers(0, levels, rows))
        own = np.where((x > 0.5) & (rng.random(rows) < 0.3), levels - 1, own)
        table[f"d{i}"] = letters[own]
        edges += [(f"d{i - 1}", f"d{i}"), ("x", f"d{i}")]
        before = own
    table["y"] = x + before + rng.normal(size=rows)
    edges += [("x", "y"), ("d8", "y")]
    return ist.fit(table, ist.DAG(list(table), edges))


def test_elimination_agrees_with_the_joint_table() -> None:
    network: MixedNetwork = fitted()
    targets = [f"d{i}" for i in (0, 1, 4, 7)]
    evidence: dict[str, Any] = {"x": 0.8, "d2": "b", "d5": {"a": 0.2, "b": 0.5, "c": 0.3}, "y": 1.0}
    found = network.most_probable(evidence, targets)
    joint: Any = network.query(targets, evidence)
    assert found.values == joint.most_probable()
    assert found.log_probability == pytest.approx(np.log(joint.values.max()), abs=1e-9)


def test_the_search_agrees_with_elimination() -> None:
    network: MixedNetwork = fitted()
    targets = tuple(f"d{i}" for i in range(9))
    question = MixedQuery(network.dag, network.conditionals, targets, {"x": 0.8, "y": 1.0}, {})
    exact = most_probable_codes(question)
    assert exact is not None
    codes, logarithm = likely_codes(question, 20_000, 0)
    assert codes == exact[0]
    assert logarithm == pytest.approx(exact[1], abs=0.1)


def test_more_levels_than_a_table_could_have() -> None:
    network = fitted(levels=8)
    found = network.most_probable()
    assert len(found.values) == 9
    assert len(set(found.values.values())) == 1  # a chain that mostly stays where it is
