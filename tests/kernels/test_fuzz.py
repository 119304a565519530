"""Every entry point of the compiled module with odd arguments: an exception, never a crash.

Each entry point has a script of calls that works. One argument after the other, and then two at a
time, is replaced by something odd: other types, shapes and strides, empty and read-only arrays,
numbers out of any range. What happens then is an exception, or a result; the rest of the script is
run on the result. The sanitizers run this, too.
"""

from __future__ import annotations

import inspect
import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.kernels.random_tables import random_table

from isthmus.kernels import _native

D = 5
Script = list[tuple[str, dict[str, Any]]]


def gaussian() -> _native.LocalScore:
    return _native.GaussianScore(**SCRIPTS["GaussianScore"]()[0][1])


def lines() -> _native.ScoreLines:
    table = _native.ScoreLines(*random_table(1, D, 6))
    while not table.prepare():
        pass
    return table


def boss() -> _native.BossRun:
    run = _native.BossRun(**SCRIPTS["BossRun"]()[0][1])
    run.start(np.arange(D))
    return run


def families() -> _native.FamilyTables:
    tables = _native.FamilyTables(**SCRIPTS["FamilyTables"]()[0][1])
    while not tables.step(0.01, 1):
        pass
    return tables


def posterior() -> _native.ExactPosterior:
    run = _native.ExactPosterior(**SCRIPTS["ExactPosterior"]()[0][1])
    while not run.step():
        pass
    return run


def spd() -> Any:
    x = np.random.default_rng(0).normal(size=(40, D))
    return np.corrcoef(x, rowvar=False)


def codes() -> Any:
    return np.random.default_rng(0).integers(0, 3, (D, 30)).astype(np.uint8)


def no_edges() -> Any:
    return np.zeros((D, D), np.bool_)


def partners(variable: int) -> dict[str, Any]:
    """The first two variables are partners of each other."""
    return {
        "variable": variable,
        "partners": np.array([1 - variable], np.uint32),
        "correlation": np.array([[1.0, 0.5], [0.5, 1.0]]),
        "allowed": np.ones(1, np.bool_),
        "required": np.empty(0, np.uint16),
    }


def floats(size: int = D) -> Any:
    return np.linspace(0.5, 1.5, size)


def integers(*values: int) -> Any:
    return np.array(values, np.int64)


def table_arguments(name: str = "sets", flat: bool = False) -> dict[str, Any]:
    starts, sets, scores = random_table(1, D, 6)
    return {"starts": starts, name: sets[:, 0].copy() if flat else sets, "scores": scores}


SCORED: Script = [
    ("extensions", {"child": 0, "parents": integers(1), "candidates": integers(2, 3)}),
    ("reductions", {"child": 0, "parents": integers(1, 2), "first": 0}),
    ("handle", {}),
    ("size", {}),
]
STEPS: Script = [("step", {"seconds": 0.001})] * 3

SCRIPTS: dict[str, Callable[[], Script]] = {
    "source_hash": lambda: [("source_hash", {})],
    "tally_sets": lambda: [
        (
            "tally_sets",
            {
                "codes": codes(),
                "weights": np.ones(30, np.int64),
                "cardinalities": np.full(D, 3),
                "sets": integers(0, 1, 2, 3).reshape(2, 2),
                "method": _native.CountingMethod.FASTEST,
            },
        )
    ],
    "tally_all": lambda: [
        (
            "tally_all",
            {"codes": codes(), "weights": None, "cardinalities": np.full(D, 3), "size": 2},
        )
    ],
    "GaussianScore": lambda: [
        (
            "GaussianScore",
            {
                "correlation": spd(),
                "log_scale": np.zeros(D),
                "constant": np.zeros(D + 1),
                "log_variance": np.full(D + 1, 20.0),
                "log_determinant": np.zeros(D + 1),
                "squares": np.zeros(D),
                "tolerance": 1e-10,
            },
        ),
        *SCORED,
    ],
    "GaussianScore of a part": lambda: [
        (
            "GaussianScore",
            {
                "whole": spd(),
                "removed": np.full((2, D), 0.1),
                "spread": np.full(D, 0.9),
                "log_scale": np.zeros(D),
                "constant": np.zeros(D + 1),
                "log_variance": np.full(D + 1, 20.0),
                "log_determinant": np.zeros(D + 1),
                "squares": np.zeros(D),
                "tolerance": 1e-10,
            },
        ),
        *SCORED,
    ],
    "GaussianBlockScore": lambda: [
        (
            "GaussianBlockScore",
            {
                "correlation": spd(),
                "starts": integers(0, 1, 3, 4, 5),
                "base": floats(4),
                "half_n": 20.0,
                "penalty": 2.0,
                "tolerance": 1e-10,
            },
        ),
        *SCORED,
    ],
    "CurveScore": lambda: [
        (
            "CurveScore",
            {
                "correlation": spd(),
                "starts": integers(0, 1, 3, 4, 5),
                "own": integers(1, 1, 1, 1),
                "degrees": np.array([[0], [1], [0], [0]], np.int64),
                "base": floats(4),
                "coefficient_price": 2.0,
                "parent_prices": floats(5),
                "column_prices": floats(6),
                "allowed": np.ones((4, 4), np.bool_),
                "half_n": 20.0,
                "tolerance": 1e-10,
            },
        ),
        ("degrees", {"child": 0, "parents": integers(1, 2)}),
        ("without_functions", {"child": 0, "parents": integers(1, 2), "straight": 1}),
        *SCORED,
    ],
    "PenalisedScore": lambda: [
        ("PenalisedScore", {"inner": gaussian(), "prices": floats(D + 1)}),
        *SCORED,
    ],
    "PriorScore": lambda: [
        ("PriorScore", {"inner": gaussian(), "weights": floats(D * D)}),
        *SCORED,
    ],
    "PythonScore": lambda: [
        ("PythonScore", {"size": D, "function": lambda child, parents: -float(len(parents))}),
        *SCORED,
    ],
    "ChildScores": lambda: [("ChildScores", {"scores": (gaussian(),) * D}), *SCORED],
    "IncompleteScore": lambda: [
        (
            "IncompleteScore",
            {
                "codes": codes().astype(np.uint16),
                "weights": np.ones(30, np.int64),
                "cardinalities": np.full(D, 3, np.int64),
                "penalty": 2.0,
                "prices": np.ones((D, D)),
            },
        ),
        *SCORED,
    ],
    "DiscreteScore": lambda: [
        (
            "DiscreteScore",
            {
                "codes": codes(),
                "weights": np.ones(30, np.int64),
                "cardinalities": np.full(D, 3),
                "form": _native.DiscreteForm.BDEU,
                "parameter": 1.0,
                "bitmaps": True,
            },
        ),
        *SCORED,
    ],
    "XgesRun": lambda: [
        (
            "XgesRun",
            {
                "score": gaussian(),
                "required": no_edges(),
                "forbidden": no_edges(),
                "max_parents": 3,
                "extended": True,
            },
        ),
        ("best", {}),
        *STEPS,
        ("best", {}),
    ],
    "BossRun": lambda: [
        (
            "BossRun",
            {
                "score": gaussian(),
                "required": no_edges(),
                "forbidden": no_edges(),
                "max_parents": 3,
                "tolerance": 1e-6,
            },
        ),
        ("best", {}),
        ("start", {"order": np.arange(D)}),
        *STEPS,
        ("sweep", {"turns": np.arange(D)}),
        *STEPS,
        ("parents", {}),
        ("best", {}),
    ],
    "step_together": lambda: [
        ("step_together", {"runs": [boss(), boss()], "seconds": 0.001, "jobs": 2})
    ],
    "BarrierSweeps": lambda: [
        ("BarrierSweeps", {"moments": spd(), "open": ~np.eye(D, dtype=np.bool_), "radius": 1.0}),
        (
            "begin",
            {
                "turns": np.arange(D),
                "scale": floats(),
                "penalty": np.full((D, D), 0.1),
                "barrier": 0.1,
                "tolerance": 1e-6,
            },
        ),
        *STEPS,
        ("incoming", {}),
        ("inverse_error", {}),
        ("set_inverse", {"inverse": np.eye(D)}),
        *STEPS,
    ],
    "GroupDescent": lambda: [
        ("GroupDescent", {"features": spd(), "starts": integers(0, 2, 4, 5), "steeps": floats(3)}),
        (
            "begin",
            {
                "coefficients": np.zeros(D),
                "cross": floats(),
                "penalties": np.full(3, 0.1),
                "causes": integers(0, 2),
                "tolerance": 1e-6,
                "limit": 100,
            },
        ),
        *STEPS,
        ("coefficients", {}),
    ],
    "OrderedLassos": lambda: [
        (
            "OrderedLassos",
            {
                "moments": spd(),
                "scale": floats(),
                "penalty": np.full((D, D), 0.1),
                "open": ~np.eye(D, dtype=np.bool_),
                "required": no_edges(),
                "tolerance": 1e-6,
            },
        ),
        ("start", {"order": np.arange(D), "incoming": np.zeros((D, D))}),
        *STEPS,
        ("sweep", {"turns": np.arange(D), "least": 1e-9, "worth": 0.0}),
        *STEPS,
        ("order", {}),
        ("incoming", {}),
        ("values", {}),
        ("stirred", {}),
    ],
    "ShrinkingRegression": lambda: [
        (
            "ShrinkingRegression",
            {
                "moments": spd(),
                "child": 0,
                "parents": integers(1, 2, 3),
                "removals": integers(2, 1, 3),
                "tolerance": 1e-10,
            },
        ),
        *STEPS,
        ("shares", {}),
        ("weights", {}),
    ],
    "reachable": lambda: [("reachable", {"edges": np.triu(~no_edges(), 1)})],
    "acyclic_edges": lambda: [
        (
            "acyclic_edges",
            {"required": no_edges(), "sources": integers(0, 1, 2), "targets": integers(1, 2, 0)},
        )
    ],
    "regression": lambda: [
        (
            "regression",
            {"moments": spd(), "child": 0, "parents": integers(1, 2), "tolerance": 1e-10},
        )
    ],
    "Decomposition": lambda: [
        ("Decomposition", {**table_arguments(), "slack": 0.0}),
        *STEPS,
        ("components", {}),
    ],
    "ScoreBound": lambda: [
        (
            "ScoreBound",
            {
                "top": np.zeros((D, D + 1)),
                "weight": np.zeros((1, D)),
                "scale": np.zeros(D),
                "levels": np.ones(D),
                "factor": np.ones(D),
                "support": gaussian(),
                "gain": np.empty((0, 0, 0)),
            },
        ),
        ("size", {}),
    ],
    "TableBuilder": lambda: [
        (
            "TableBuilder",
            {
                "score": gaussian(),
                "bound": _native.ScoreBound(**SCRIPTS["ScoreBound"]()[0][1]),
                "required": no_edges(),
                "forbidden": no_edges(),
                "max_parents": 3,
                "slack": 0.0,
                "children": np.arange(D),
                "quota": 100,
                "jobs": 2,
            },
        ),
        *STEPS,
        ("so_far", {}),
        ("hurry", {}),
        ("skip", {}),
        ("close", {}),
        *STEPS,
        ("table", {}),
    ],
    "OrderGraph": lambda: [
        (
            "OrderGraph",
            {
                **table_arguments("masks", flat=True),
                "groups": integers(2, 3),
                "known": -1e9,
                "slack": None,
                "max_states": 10_000,
            },
        ),
        *STEPS,
        ("lines", {}),
        ("value", {"placed": 3}),
        ("closed", {}),
    ],
    "SubsetDP": lambda: [
        ("SubsetDP", table_arguments("masks", flat=True)),
        *STEPS,
        ("lines", {}),
    ],
    "ClusterSearch": lambda: [
        (
            "ClusterSearch",
            {
                "starts": random_table(1, D, 6)[0],
                "sets": random_table(1, D, 6)[1],
                "amounts": floats(len(random_table(1, D, 6)[2])),
                "first": integers(0, 1),
                "second": integers(1, 2),
                "most": 10,
                "limit": 1.5,
            },
        ),
        *STEPS,
        ("found", {}),
    ],
    "ExactPosterior": lambda: [
        (
            "ExactPosterior",
            {
                "score": gaussian(),
                "required": no_edges(),
                "forbidden": no_edges(),
                "max_parents": 3,
            },
        ),
        ("step", {"seconds": 0.1}),
        *STEPS,
        ("edges", {}),
        ("ancestors", {}),
    ],
    "ExactSampler": lambda: [
        ("ExactSampler", {"posterior": posterior(), "seed": 1}),
        ("step", {"draws": 20, "seconds": 0.1}),
        ("parents", {}),
        ("scores", {}),
    ],
    "HillClimb": lambda: [
        (
            "HillClimb",
            {
                "score": gaussian(),
                "required": no_edges(),
                "forbidden": no_edges(),
                "max_parents": 3,
                "tabu": 5,
                "patience": 5,
                "restarts": 2,
                "seed": 1,
            },
        ),
        ("best", {}),
        *STEPS,
        ("best", {}),
        (
            "start",
            {
                "parents": [[], [0], *([] for _ in range(D - 2))],
                "parent": 0,
                "child": 1,
                "restarts": 1,
                "nearby": True,
            },
        ),
        *STEPS,
    ],
    "ScoreLines": lambda: [
        ("ScoreLines", table_arguments()),
        ("prepare", {"seconds": 0.001}),
        ("needed", {}),
        ("size", {}),
    ],
    "ScreenedOrder": lambda: [
        (
            "ScreenedOrder",
            {
                "variables": D,
                "constant": -np.arange(float(D + 1)),
                "factor": 20.0,
                "tolerance": 1e-10,
                "max_parents": 3,
            },
        ),
        *[("set_partners", partners(v)) for v in range(2)],
        ("start", {"order": np.arange(D)}),
        *STEPS,
        ("settle", {"changed": integers(0, 1)}),
        *STEPS,
        ("parents", {}),
        ("coefficients", {}),
    ],
    "TableRun": lambda: [
        ("TableRun", {"table": lines(), "order": np.arange(D)}),
        *STEPS,
        ("sweep", {"firsts": np.arange(D), "size": 1}),
        *STEPS,
        ("select", {}),
        *STEPS,
        ("reset", {"order": np.arange(D)[::-1].copy()}),
        *STEPS,
        ("lines", {}),
    ],
    "SwapSearch": lambda: [
        ("SwapSearch", {"table": lines(), "order": np.arange(D), "memory": 3, "patience": 3}),
        *STEPS,
        ("order", {}),
    ],
    "TableWalks": lambda: [
        ("TableWalks", {"table": lines(), "walks": 4}),
        ("take", {"actions": integers(0, 1, 2, 3)}),
        ("allowed", {}),
        ("take", {"actions": integers(1, 2, 3, 4)}),
        ("restart", {}),
        ("allowed", {}),
    ],
    "FamilyTables": lambda: [
        (
            "FamilyTables",
            {
                "score": gaussian(),
                "required": no_edges(),
                "forbidden": no_edges(),
                "candidates": np.triu(~no_edges(), 1),
                "outside": True,
                "max_parents": 3,
                "previous": None,
            },
        ),
        *[("step", {"seconds": 0.001, "jobs": 2})] * 3,
        (
            "log_sum",
            {"node": 0, "allowed": np.array([6], np.uint64), "wanted": np.array([2], np.uint64)},
        ),
    ],
    "SamplingRun": lambda: [
        (
            "SamplingRun",
            {
                "tables": families(),
                "space": _native.Space.PARTITIONS,
                "starts": np.array([[0, 1, 0, 1, 0], [0, 0, 0, 0, 0]], np.uint32),
                "seeds": np.array([1, 2], np.uint64),
                "levels": 2,
                "warmup": 2,
                "thin": 2,
                "draws": 3,
            },
        ),
        *[("step", {"seconds": 0.001, "jobs": 2})] * 3,
        ("draws", {"chain": 0}),
        ("levels", {"chain": 1}),
        ("edges", {"chain": 1}),
    ],
    "move_probabilities": lambda: [
        (
            "move_probabilities",
            {
                "tables": families(),
                "space": _native.Space.PARTITIONS,
                "labels": np.array([0, 1, 0, 1, 0], np.uint32),
                "move": 3,
                "heat": 0.5,
            },
        )
    ],
    "graph_probabilities": lambda: [
        (
            "graph_probabilities",
            {
                "tables": families(),
                "space": _native.Space.ORDERS,
                "labels": np.arange(5, dtype=np.uint32),
            },
        )
    ],
    "edge_probabilities": lambda: [
        (
            "edge_probabilities",
            {
                "tables": families(),
                "space": _native.Space.PARTITIONS,
                "labels": np.array([0, 1, 0, 2, 1], np.uint32),
            },
        )
    ],
}

LEFT_OUT = {
    "Space": "an enumeration",
    "ForeignScore": "its address is called: a wrong one is a crash by nature",
    "LocalScore": "a base class, which has no constructor",
    "ScoreFailed": "an exception",
    "CountingMethod": "an enumeration",
    "DiscreteForm": "an enumeration",
}


def odd_values(argument: str, value: Any) -> Iterator[Any]:
    """What an argument is replaced by."""
    yield from (None, "text", object())
    if argument == "seconds":
        yield from (np.nan, -np.inf, -1.0, 0.0, 5e-324, 0.01)  # not so long that a run may end
    elif isinstance(value, np.ndarray):
        yield from odd_arrays(value)
    elif isinstance(value, bool):
        yield 7
    elif isinstance(value, int):
        yield from (-1, 0, 1, D, D + 1, 1000, 2**31, 2**63 - 1, 2**64, 1.5)
    elif isinstance(value, float):
        yield from (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, 5e-324)
    elif isinstance(value, list):
        yield from ([], [None], value * 2, value[:1] * 2)


def odd_arrays(value: Any) -> Iterator[Any]:
    for dtype in (np.float64, np.float32, np.int64, np.int32, np.uint8, np.uint16, np.bool_):
        yield value.astype(dtype)
    yield value.astype(object)
    yield value[None]
    yield value.reshape(-1)
    yield np.empty((0,) * value.ndim, value.dtype)
    yield np.empty((0, *value.shape[1:]), value.dtype)
    yield np.concatenate([value, value])
    yield value[:-1]
    yield value[::-1]
    yield np.asfortranarray(value)
    yield np.repeat(value, 2, axis=-1)[..., ::2]
    yield value[..., :-1].copy()
    read_only = value.copy()
    read_only.flags.writeable = False
    yield read_only
    kind = value.dtype.kind
    odd: tuple[Any, ...] = ()
    if kind == "f":
        odd = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e308, 5e-324)
    elif kind in "iu" and value.dtype.itemsize == 8:
        odd = (0, 1, D, D + 1, 2**31, 2**63 - 1, *((-1, -(2**63)) if kind == "i" else (2**64 - 1,)))
    elif kind in "iu":
        odd = (0, 1, 3, np.iinfo(value.dtype).max)
    elif kind == "b":
        odd = (True, False)
    for number in odd:
        yield np.full_like(value, number)
        if value.size:
            changed = value.copy()
            changed.reshape(-1)[value.size // 2] = number
            yield changed


def play(script: Script) -> list[str]:
    """Run a script to its end; return the calls that raised an exception."""
    refused = []
    target: Any = _native
    for place, (name, arguments) in enumerate(script):
        try:
            member = getattr(target, name)
            result = member(**arguments) if callable(member) else member
        except Exception as failure:
            if isinstance(failure, SystemError):
                raise
            refused.append(name)
            if place == 0:
                return refused
        else:
            if place == 0:
                target = result
    return refused


def test_every_entry_point_has_a_script() -> None:
    public = {name for name in dir(_native) if not name.startswith("_")}
    assert public == {name.partition(" ")[0] for name in SCRIPTS} | set(LEFT_OUT)
    for name, make in SCRIPTS.items():
        kind = getattr(_native, name.partition(" ")[0])
        if inspect.isclass(kind):
            mentioned = {call for call, _ in make()}
            methods = {
                m for m in vars(kind) if not m.startswith("_") and callable(getattr(kind, m))
            }
            classes = {m for m in methods if inspect.isclass(getattr(kind, m))}
            assert methods - classes <= mentioned


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_works_as_it_is(name: str) -> None:
    assert play(SCRIPTS[name]()) in ([], ["sweep"], ["table"])


@pytest.mark.long
@pytest.mark.parametrize("name", SCRIPTS)
def test_one_odd_argument(name: str) -> None:
    refused = 0
    for place, (_, arguments) in enumerate(SCRIPTS[name]()):
        for argument, value in arguments.items():
            for odd in odd_values(argument, value):
                script = SCRIPTS[name]()
                call, others = script[place]
                script[place] = (call, {**others, argument: odd})
                refused += bool(play(script))
    assert refused or not SCRIPTS[name]()[0][1]


@pytest.mark.long
@pytest.mark.parametrize("name", SCRIPTS)
def test_two_odd_arguments(name: str) -> None:
    draw = random.Random(0)
    places = [
        (place, argument)
        for place, (_, arguments) in enumerate(SCRIPTS[name]())
        for argument in arguments
    ]
    pairs = list(itertools.combinations(places, 2))
    for _ in range(100 if pairs else 0):
        script = SCRIPTS[name]()
        for place, argument in draw.choice(pairs):
            call, arguments = script[place]
            odd = draw.choice(list(odd_values(argument, arguments[argument])))
            script[place] = (call, {**arguments, argument: odd})
        play(script)
