"""An intervention that the learned class does not identify is answered by a range."""

from __future__ import annotations

import copy
import json
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import GraphError
from isthmus.networks import MeanRange, Normal, Probabilities, ProbabilityRange
from isthmus.verbs.fit import fit


def two(order: tuple[str, str]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.random(2000) < 0.5
    table = {"a": a, "b": np.where(rng.random(2000) < 0.9, a, ~a)}
    return {name: table[name] for name in order}


def four(seed: int) -> dict[str, np.ndarray]:
    """Return discrete columns: a - b - c and b, c -> d, or similar."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, 600)
    b = np.where(rng.random(600) < 0.7, a, rng.integers(0, 3, 600))
    c = np.where(rng.random(600) < 0.7, b, rng.integers(0, 3, 600))
    d = np.where(rng.random(600) < 0.6, (b + c) % 3, rng.integers(0, 3, 600))
    return {name: column.astype(str) for name, column in zip("abcd", (a, b, c, d), strict=True)}


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_two_columns_in_either_order(order: tuple[str, str]) -> None:
    network: Any = ist.learn(two(order)).fit()
    seen = network.query("b", evidence={"a": True})[True]
    alone = network.query("b")[True]
    answer = network.query("b", do={"a": True})
    assert isinstance(answer, ProbabilityRange)
    assert answer[True] == pytest.approx((alone, seen))
    assert str(answer).startswith("not identified")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("known", [None, ist.Knowledge(tiers=[["b"], ["a", "c", "d"]])])
def test_discrete_bounds_are_those_of_all_members(seed: int, known: ist.Knowledge | None) -> None:
    table = four(seed)
    solution = ist.learn(table, knowledge=known)
    network: Any = solution.fit()
    members: list[Any] = [fit(table, dag) for dag in solution.cpdag.members()]
    ranges = 0
    for cause, target in permutations("abcd", 2):
        for evidence in ({}, {v: "1" for v in "abcd" if v not in (cause, target)}):
            do = {cause: "2"}
            values = [np.asarray(m.query(target, evidence, do)) for m in members]
            answer = network.query(target, evidence, do)
            low, high = np.min(values, axis=0), np.max(values, axis=0)
            if isinstance(answer, ProbabilityRange):
                ranges += 1
                assert answer.lower == pytest.approx(low)
                assert answer.upper == pytest.approx(high)
            else:
                assert np.asarray(answer) == pytest.approx(low, abs=1e-8)
                assert np.asarray(answer) == pytest.approx(high, abs=1e-8)
    assert ranges or not solution.cpdag.undirected


def test_interventions_on_two_variables() -> None:
    table = four(1)
    solution = ist.learn(table)
    network: Any = solution.fit()
    members: list[Any] = [fit(table, dag) for dag in solution.cpdag.members()]
    do = {"a": "0", "c": "1"}
    values = [np.asarray(m.query(["b", "d"], do=do)) for m in members]
    answer = network.query(["b", "d"], do=do)
    assert answer.lower == pytest.approx(np.min(values, axis=0))
    assert answer.upper == pytest.approx(np.max(values, axis=0))


@pytest.mark.long
def test_gaussian_bounds_are_those_of_all_members() -> None:
    rng = np.random.default_rng(0)
    x = np.zeros((400, 5))
    for i in range(5):
        x[:, i] = 1.0 + x[:, :i] @ np.full(i, 0.5) + rng.normal(size=400)
    table = {f"x{i}": x[:, i] for i in range(5)}
    solution = ist.learn(table)
    network: Any = solution.fit()
    members: list[Any] = [fit(table, dag) for dag in solution.cpdag.members()]
    assert len(members) > 2
    ranges = []
    for cause, target in permutations(table, 2):
        values = [m.query(target, do={cause: 2.0}).mean[0] for m in members]
        answer = network.query(target, do={cause: 2.0})
        if isinstance(answer, MeanRange):
            assert answer[target] == pytest.approx((min(values), max(values)))
            ranges.append(answer)
        else:
            assert isinstance(answer, Normal)
            assert np.ptp(values) < 1e-8
            assert answer.mean[0] == pytest.approx(values[0])
    assert str(ranges[0]).startswith("not identified")


def test_saved_copied_and_reordered_networks_keep_the_class(tmp_path: Path) -> None:
    for table, do in ((two(("a", "b")), {"a": True}), (_numbers(), {"a": 1.0})):
        network: Any = ist.learn(table).fit()
        ist.io.write_json(network, tmp_path / "network.json")
        loaded: Any = ist.io.read_json(tmp_path / "network.json")
        for other in (loaded, copy.deepcopy(network), network.reorder(["b", "a"])):
            assert other.cpdag == network.cpdag
            assert type(other.query("b", do=do)) in (ProbabilityRange, MeanRange)


def test_a_loaded_solution_fits_the_same_network(tmp_path: Path) -> None:
    solution = ist.learn(two(("a", "b")))
    solution.save(tmp_path / "a.isthmus", statistics=True)
    network: Any = ist.Solution.load(tmp_path / "a.isthmus").fit()
    assert isinstance(network.query("b", do={"a": True}), ProbabilityRange)


def test_a_graph_that_the_user_gives_is_causal_by_assumption() -> None:
    table = two(("a", "b"))
    network: Any = fit(table, ist.DAG(["a", "b"], [("b", "a")]))
    answer = network.query("b", do={"a": True})
    assert isinstance(answer, Probabilities)
    assert answer[True] == pytest.approx(network.query("b")[True])
    known = ist.Knowledge(tiers=[["a"], ["b"]])
    ordered: Any = ist.learn(table, knowledge=known).fit()
    assert isinstance(ordered.query("b", do={"a": True}), Probabilities)


def test_mixed_networks_say_that_bounds_were_not_computed() -> None:
    rng = np.random.default_rng(0)
    a = rng.choice(["u", "v"], 400)
    b = np.where(a == "u", 0.0, 2.0) + rng.normal(size=400)
    network: Any = ist.learn({"a": a, "b": b}).fit()
    answer = network.query("b", do={"a": "u"})
    assert isinstance(answer, MeanRange)
    assert answer["b"] == (-np.inf, np.inf)
    assert "not computed" in str(answer)
    assert "inf" not in str(answer)
    back = network.query("a", do={"b": 1.0})
    assert isinstance(back, ProbabilityRange)
    assert back["u"] == (0.0, 1.0)


def test_effect_on_a_mixed_table_says_how_an_answer_is_found() -> None:
    rng = np.random.default_rng(0)
    a = rng.choice(["u", "v"], 400)
    table = {"a": a, "b": np.where(a == "u", 0.0, 2.0) + rng.normal(size=400)}
    open_one = ist.learn(table).effect("a", "b")
    assert not open_one.identified
    assert open_one.possible == pytest.approx((0.0, 2.0), abs=0.3)
    known = ist.learn(table, knowledge=ist.Knowledge(tiers=[["a"], ["b"]]))
    network: Any = known.fit()
    assert np.diff([network.query("b", do={"a": v}).mean[0] for v in "uv"]) == pytest.approx(
        2, abs=0.3
    )
    estimate = ist.learn(two(("a", "b"))).effect("a", "b")
    assert not estimate.identified
    assert str(estimate).startswith("a (False → True) → P(b = True): not identified")


def test_a_class_that_does_not_contain_the_graph_is_refused() -> None:
    network: Any = ist.learn(_numbers()).fit()
    other = ist.DAG(["a", "b"]).cpdag()
    with pytest.raises(GraphError, match="not a member"):
        type(network)(
            network.dag, network.intercepts, network.coefficients, network.variances, other
        )


def _numbers() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    return {"a": a, "b": a + rng.normal(size=300)}


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "network.json"
    ist.io.write_json(ist.learn(two(("a", "b"))).fit(), path)
    ask = ["query", str(path), "--target", "b", "--do", "a=true"]
    assert main(ask) == 0
    assert capsys.readouterr().out.startswith("not identified")
    assert main([*ask, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["identified"] is False
    assert answer["lower"][1] < answer["upper"][1]
