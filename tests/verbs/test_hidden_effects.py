"""Effects in graphs with hidden variables: adjustment, front-door criterion and instruments."""

from __future__ import annotations

import json
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.arrays import Floats
from isthmus.cli.app import main
from isthmus.errors import ArgumentError, DataError, GraphError, MismatchError, SchemaError
from isthmus.graphs.identification import Identification, identify
from isthmus.results import ZeroEffect
from isthmus.statistics import Moments, Schema

SMOKING = ist.DAG(["u", "x", "m", "y"], [("u", "x"), ("u", "y"), ("x", "m"), ("m", "y")])
INSTRUMENT = ist.DAG(["u", "z", "x", "y"], [("u", "x"), ("u", "y"), ("z", "x"), ("x", "y")])
BOW = ist.DAG(["u", "x", "y"], [("u", "x"), ("u", "y"), ("x", "y")])


def random_case(rng: np.random.Generator) -> tuple[ist.DAG, Floats, list[str]]:
    """Return a random graph with hidden common causes of pairs, its weights, and what is seen."""
    pairs = list(combinations([f"v{i}" for i in range(5)], 2))
    edges = [pair for pair in pairs if rng.random() < 0.4]
    chosen = [pairs[k] for k in rng.permutation(len(pairs))[:3]]
    edges += [(f"u{k}", v) for k, pair in enumerate(chosen) for v in pair]
    dag = ist.DAG([*(f"u{k}" for k in range(3)), *(f"v{i}" for i in range(5))], edges)
    d = len(dag.nodes)
    weights = dag.adjacency() * rng.uniform(0.5, 1.5, (d, d)) * rng.choice([-1, 1], (d, d))
    return dag, weights, [f"v{i}" for i in range(5)]


@pytest.mark.long
def test_every_way_gives_the_true_effect_in_the_population() -> None:
    """The exact covariances of random linear models give exactly the sum over directed paths."""
    rng = np.random.default_rng(1)
    seen = dict.fromkeys(Identification, 0)
    for _ in range(120):
        dag, weights, observed = random_case(rng)
        d = len(dag.nodes)
        total = np.linalg.inv(np.eye(d) - weights)
        covariance = total.T @ np.diag(rng.uniform(0.5, 2.0, d)) @ total
        at = [dag.index(v) for v in observed]
        schema, zero = Schema.continuous(tuple(observed)), np.zeros(len(at))
        rows = 10_000_000
        moments = Moments(schema, rows, zero, zero, rows * covariance[np.ix_(at, at)])
        for x, y in combinations(observed, 2):
            if y not in dag.descendants(x):
                continue
            route = identify(dag, x, y, observed)
            subsets = chain.from_iterable(combinations(observed, k) for k in range(len(observed)))
            adjustable = any(
                dag.is_adjustment_set(x, y, s) for s in subsets if x not in s and y not in s
            )
            assert adjustable == (route is not None and route.method is Identification.ADJUSTMENT)
            if route is None:
                continue
            hidden = [v for v in dag.nodes if v not in observed]
            estimate = ist.effect(moments, dag, x, y, hidden=hidden)
            assert estimate.value == pytest.approx(total[dag.index(x), dag.index(y)], abs=1e-6)
            assert estimate.alternatives[0].method is route.method
            seen[route.method] += 1
    assert min(seen.values()) >= 10, seen


def linear(dag: ist.DAG, n: int, seed: int, strength: float = 1.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    table: dict[str, Any] = {}
    for name in dag.topological_order():
        table[name] = rng.normal(size=n) + sum(strength * table[p] for p in dag.parents(name))
    return table


def test_the_way_is_named() -> None:
    table = linear(SMOKING, 2000, 0)
    del table["u"]
    front = ist.effect(table, SMOKING, "x", "y", hidden=["u"])
    assert "by the front-door criterion through m" in str(front)
    assert (front.alternatives[0].through, front.adjustment) == (("m",), ())
    table = linear(INSTRUMENT, 2000, 0)
    iv = ist.effect(table, INSTRUMENT, "x", "y", hidden=["u"])
    assert "by z as an instrument" in str(iv)
    assert iv.robust
    observed = ist.effect(table, INSTRUMENT, "x", "y")
    assert observed.adjustment == ("u",)
    assert observed.standard_error < iv.standard_error
    bow = ist.effect(table, BOW, "x", "y", hidden=["u"])
    assert not bow.identified
    assert bow.interval() == (-np.inf, np.inf)
    assert "not identified; hidden common causes" in str(bow)
    assert ist.effect(table, BOW, "y", "x", hidden=["u"]).zero is ZeroEffect.GRAPH
    weak = linear(INSTRUMENT, 60, 3, 0.1)
    assert "instruments are weak" in str(ist.effect(weak, INSTRUMENT, "x", "y", hidden=["u"]))


def test_moments_and_rows_give_similar_errors_and_the_bootstrap_agrees() -> None:
    rng = np.random.default_rng(5)
    for dag in (SMOKING, INSTRUMENT):
        table = linear(dag, 2000, 1)
        names = [v for v in dag.nodes if v != "u"]
        rows = np.column_stack([table[v] for v in names])
        moments = Moments.from_array(Schema.continuous(tuple(names)), rows)
        one, other = (ist.effect(d, dag, "x", "y", hidden=["u"]) for d in (table, moments))
        assert one.value == pytest.approx(other.value)
        assert (one.robust, other.robust) == (True, False)
        assert one.standard_error == pytest.approx(other.standard_error, rel=0.1)
        again = []
        for _ in range(100):
            drawn = rows[rng.integers(0, len(rows), len(rows))]
            own = Moments.from_array(moments.schema, drawn)
            again.append(ist.effect(own, dag, "x", "y", hidden=["u"]).value)
        assert np.std(again) == pytest.approx(one.standard_error, rel=0.25)


def test_two_stage_least_squares_by_hand() -> None:
    edges = [("w", "z"), ("w", "y"), ("z", "x"), ("q", "x"), ("u", "x"), ("u", "y"), ("x", "y")]
    dag = ist.DAG(["u", "w", "z", "q", "x", "y"], [*edges, ("w", "q")])
    table = linear(dag, 500, 2)
    estimate = ist.effect(table, dag, "x", "y", hidden=["u"])
    assert estimate.alternatives[0].through == ("z", "q")
    assert estimate.adjustment == ("w",)
    one = np.ones(500)
    exogenous = np.column_stack([table["z"], table["q"], table["w"], one])
    stage = exogenous @ np.linalg.lstsq(exogenous, table["x"], rcond=None)[0]
    second = np.column_stack([stage, table["w"], one])
    coefficients = np.linalg.lstsq(second, table["y"], rcond=None)[0]
    assert estimate.value == pytest.approx(coefficients[0])
    residual = table["y"] - np.column_stack([table["x"], table["w"], one]) @ coefficients
    inverse = np.linalg.inv(second.T @ second)
    meat = second.T @ (second * residual[:, None] ** 2)
    robust = np.sqrt((inverse @ meat @ inverse)[0, 0] * 500 / 497)
    assert estimate.standard_error == pytest.approx(robust)


def binary(n: int, seed: int) -> tuple[dict[str, Any], float]:
    """Return rows of smoking, tar and cancer with a hidden cause, and the true effect."""
    rng = np.random.default_rng(seed)
    u = rng.random(n) < 0.5
    x = rng.random(n) < np.where(u, 0.7, 0.3)
    m = rng.random(n) < np.where(x, 0.8, 0.3)
    y = rng.random(n) < 0.1 + 0.3 * m + 0.4 * u
    table = {"x": np.where(x, "yes", "no"), "m": m.astype(int), "y": y.astype(int)}
    return table, 0.5 * 0.3


def test_discrete_front_door() -> None:
    kinds = {"m": "discrete", "y": "discrete"}
    table, truth = binary(4000, 0)
    estimate = ist.effect(table, SMOKING, "x", "y", hidden=["u"], kinds=kinds)
    x, m, y = (table["x"] == "yes").astype(int), table["m"], table["y"]
    inner = [sum(y[(m == k) & (x == a)].mean() * (x == a).mean() for a in (0, 1)) for k in (0, 1)]
    by_hand = [sum((m[x == a] == k).mean() * inner[k] for k in (0, 1)) for a in (0, 1)]
    assert estimate.value == pytest.approx(by_hand[1] - by_hand[0])
    assert estimate.alternatives[0].averages == pytest.approx(by_hand)
    assert abs(estimate.value - truth) < 4 * estimate.standard_error
    values = [
        ist.effect(binary(1000, s)[0], SMOKING, "x", "y", hidden=["u"], kinds=kinds)
        for s in range(60)
    ]
    spread = np.std([one.value for one in values])
    assert np.mean([one.standard_error for one in values]) == pytest.approx(spread, rel=0.25)
    with pytest.raises(MismatchError, match=r"all discrete.*kinds="):
        ist.effect(
            table | {"m": m + np.random.default_rng(0).normal(size=4000)},
            *(SMOKING, "x", "y"),
            hidden=["u"],
            kinds={"y": "discrete"},
        )


def test_what_cannot_be_answered() -> None:
    table = {v: c for v, c in linear(SMOKING, 100, 0).items() if v != "u"}
    for error, words, arguments in (
        (SchemaError, r"hidden=\['u'\]", {}),
        (ArgumentError, "cannot be hidden", {"hidden": ["u", "x"]}),
        (ArgumentError, "list of names", {"hidden": "u"}),
        (GraphError, "nobody", {"hidden": ["nobody"]}),
    ):
        with pytest.raises(error, match=words):
            ist.effect(table, SMOKING, "x", "y", **arguments)
    with pytest.raises(MismatchError, match="for a DAG"):
        ist.effect(table, SMOKING.cpdag(), "x", "y", hidden=["u"])
    with pytest.raises(ArgumentError, match="must be a DAG"):
        ist.effect(table, 3, "x", "y")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="constant"):
        ist.effect(table | {"m": np.ones(100)}, SMOKING, "x", "y", hidden=["u"])
    flags = linear(INSTRUMENT, 100, 0) | {"x": np.arange(100) % 2}
    with pytest.raises(MismatchError, match=r"continuous, and 'x' is not"):
        ist.effect(flags, INSTRUMENT, "x", "y", hidden=["u"], kinds={"x": "discrete"})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = linear(SMOKING, 200, 0)
    rows = zip(table["x"], table["m"], table["y"], strict=True)
    lines = ["x,m,y", *(",".join(map(repr, map(float, row))) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    ist.io.write_dot(SMOKING, tmp_path / "g.dot")
    asked = ["effect", str(tmp_path / "g.dot"), str(tmp_path / "t.csv"), "x", "y"]
    assert main([*asked, "--hidden", "u", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    own = ist.effect(table, SMOKING, "x", "y", hidden=["u"])
    assert told["value"] == pytest.approx(own.value)
    assert (told["method"], told["through"]) == ("front-door criterion", ["m"])
    assert main(asked) != 0
    assert "--hidden u" in capsys.readouterr().err


def test_a_class_gives_the_answer_of_a_solution() -> None:
    table = linear(SMOKING, 300, 0)
    solution = ist.learn(table)
    by_class = ist.effect(table, solution.cpdag, "m", "y")
    assert by_class.alternatives == solution.effect("m", "y").alternatives
    assert ist.effect(table, solution, "m", "y") == solution.effect("m", "y")
