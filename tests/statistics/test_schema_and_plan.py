"""Names, kinds, levels and plans."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from isthmus.errors import FormatError, SchemaError
from isthmus.statistics import CountPlan, Kind, Schema, Variable
from isthmus.statistics.schema import sort_levels


def test_schema_round_trip_through_json() -> None:
    schema = Schema(
        (
            Variable("año", Kind.CONTINUOUS, time_unit="year"),
            Variable("c", Kind.DISCRETE, ("b", "a")),
            Variable("i", Kind.DISCRETE, (True, "x", 2, 2.5)),
        )
    )
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert schema.names == ("año", "c", "i")
    assert schema.index("c") == 1
    assert schema["c"].levels == ("b", "a")
    assert "c" in schema
    assert schema.of_kind(Kind.DISCRETE) == ("c", "i")
    assert schema.subset(["i", "año"]).names == ("i", "año")
    assert schema.subset(["i", "c"]).cardinalities.tolist() == [4, 2]
    with pytest.raises(SchemaError, match=r"need discrete.*'año'"):
        schema.cardinalities  # noqa: B018


def test_numpy_levels_become_plain() -> None:
    given: Any = (np.int64(1), np.str_("x"), np.float32(0.5), np.bool_(False))
    v = Variable("a", Kind.DISCRETE, given)
    assert [type(x) for x in v.levels] == [int, str, float, bool]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schema(()), "at least one"),
        (lambda: Schema.continuous("aba"), r"repeated: \['a'\]"),
        (lambda: Variable("", Kind.CONTINUOUS), "non-empty"),
        (lambda: Variable(3, Kind.CONTINUOUS), "non-empty"),  # type: ignore[arg-type]
        (lambda: Variable("a", Kind.CONTINUOUS, (1,)), "is continuous"),
        (lambda: Variable("a", Kind.DISCRETE), "no levels"),
        (lambda: Variable("a", Kind.DISCRETE, (1, 1.0)), "repeated"),
        (lambda: Variable("a", Kind.DISCRETE, (float("nan"),)), "finite"),
        (lambda: Variable("a", Kind.DISCRETE, (None,)), "NoneType"),  # type: ignore[arg-type]
        (lambda: CountPlan.up_to(0), "at least 1"),
        (lambda: CountPlan.sets([]), "at least one"),
    ],
)
def test_refusals(make: object, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        make()  # type: ignore[operator]


def test_bad_dictionaries_are_refused() -> None:
    for data in ({}, {"variables": 3}, {"variables": [{"name": "a", "kind": "odd"}]}):
        with pytest.raises(FormatError):
            Schema.from_dict(data)
    with pytest.raises(FormatError):
        CountPlan.from_dict({"x": 1})


def test_mixed_levels_have_an_order() -> None:
    assert sort_levels(["b", 2, "a", 1]) == (1, 2, "a", "b")
    assert sort_levels([3, 1.5]) == (1.5, 3)


def test_plans() -> None:
    plan = CountPlan.sets([["a", "b"], ["b", "a", "c"], ["d"], []])
    assert plan == CountPlan.sets([["d"], ["c", "b", "a"]])
    assert plan.covers(["c", "a"])
    assert plan.covers([])
    assert not plan.covers(["d", "a"])
    assert not plan.covers(["z"])
    assert sorted(plan.maximal("abcd")) == [(0, 1, 2), (3,)]
    assert plan.restrict(["a", "d"]) == CountPlan.sets([["a"], ["d"]])
    assert plan.restrict(["z"]).groups == ()
    assert CountPlan.up_to(2).size("abcd") == 6
    assert len(list(CountPlan.up_to(9).maximal("abcd"))) == 1
    with pytest.raises(SchemaError, match="'d'"):
        list(plan.maximal("abc"))
    for p in (plan, CountPlan.up_to(3), CountPlan.everything()):
        assert CountPlan.from_dict(json.loads(json.dumps(p.to_dict()))) == p


def test_families_of_a_graph() -> None:
    graphs = pytest.importorskip("isthmus.graphs")
    if not hasattr(graphs, "DAG"):
        pytest.skip("the graph type is not there yet")
    dag = graphs.DAG(["a", "b", "c", "d"], [("a", "c"), ("b", "c")])
    assert CountPlan.families(dag) == CountPlan.sets([["a", "b", "c"], ["d"]])
