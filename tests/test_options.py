"""Every option of every strategy accepts what it documents, and nothing else.

Strategies are found by introspection, so a new one is tested without a change here. Only a strategy
with required options needs an example below, and the test says so.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import math
import pkgutil
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from types import NoneType, UnionType
from typing import Any

import numpy as np
import pytest

import isthmus as ist
import isthmus_joint
import isthmus_joint as joint
from isthmus import searches, simulate
from isthmus.errors import ArgumentError, SchemaError, StudyError
from isthmus.statistics import Kind
from isthmus_joint.shares.protocol import IdentifierKind, TwoParties

VALUES = (
    "isthmus.graphs",
    "isthmus.kernels",
    "isthmus.metrics",
    "isthmus.published",
    "isthmus.networks",
    "isthmus.objectives",
    "isthmus.report",
    "isthmus.results",
    "isthmus.watch",
    "isthmus.statistics",
    "isthmus.fitting",
    "isthmus_joint.agreement",
    "isthmus_joint.records",
    "isthmus_joint.federation",
    "isthmus_joint.secure_sum",
)
"""Packages whose dataclasses are results, statistics or messages, which nobody sets as options."""
VALUE_NAMES = {
    "ADMMDetails",
    "AskConsensus",
    "AskNetworks",
    "AutoregressiveModel",
    "ChainSampler",  # abstract
    "Draws",
    "DryRun",
    "Extract",
    "LinearModel",
    "SearchResult",
    "PAGResult",
    "SecretDetails",
    "SeriesSimulation",
    "Simulation",
    "Synthesis",
}
STRATEGIES_ELSEWHERE = {"Chebyshev"}
REQUIRED: dict[str, dict[str, Any]] = {
    "KnownOrder": {"order": ("a", "b")},
    "L1": {"weight": 0.1},
    "DifferentialPrivacy": {"epsilon": 1.0, "delta": 1e-6},
    "FixedBins": {"cuts": {"a": [1.0]}},
    "MDLBins": {"target": "a"},
}
"""Required options of strategies that cannot be created without arguments."""

TABLE = {"a": np.arange(20.0), "b": np.arange(20.0)[::-1] ** 2}
CALLS: dict[str, Callable[..., Any]] = {
    "scale_free": lambda **options: simulate.scale_free(12, 2, seed=1, **options),
    "sort_and_regress": lambda **options: simulate.sort_and_regress(TABLE, **options),
    "as_source": lambda **options: ist.tables.as_source(TABLE, **options).schema(),
    "Frame": lambda **options: ist.Frame(TABLE, **options).schema(),
    "Lazy": lambda **options: ist.Lazy(_lazy_table(), **options).schema(),
    "transformed": lambda **options: (
        ist.tables.transformed(TABLE | {"c": TABLE["a"] / 3}, ist.QuantileBins(), **options).maps
    ),
}
"""Example calls of public functions and classes with parameters that are enums."""


def _lazy_table() -> Any:
    return pytest.importorskip("polars").LazyFrame(TABLE)


def is_error(item: Any) -> bool:
    return inspect.isclass(item) and issubclass(item, Exception)


def public_objects() -> dict[int, Any]:
    found = {}
    walked = [pkgutil.walk_packages(p.__path__, f"{p.__name__}.") for p in (ist, isthmus_joint)]
    modules = [m.name for found in walked for m in found]
    for name in ["isthmus", "isthmus_joint", *(m for m in modules if "._" not in m)]:
        module = importlib.import_module(name)
        for item in (getattr(module, each) for each in getattr(module, "__all__", ())):
            if getattr(item, "__module__", "").startswith("isthmus") and not is_error(item):
                found[id(item)] = item
    for name in ist.__all__:
        item = getattr(ist, name)
        if getattr(item, "__module__", "").startswith("isthmus"):
            found[id(item)] = item
    return found


def strategies() -> list[type]:
    chosen = []
    for item in public_objects().values():
        if not (inspect.isclass(item) and dataclasses.is_dataclass(item)):
            continue
        value = item.__module__.startswith(VALUES) or item.__name__ in VALUE_NAMES
        if not value or item.__name__ in STRATEGIES_ELSEWHERE:
            chosen.append(item)
    return sorted(chosen, key=lambda item: item.__name__)


def options_of(strategy: type) -> Iterator[tuple[str, tuple[Any, ...]]]:
    hints = typing.get_type_hints(strategy)
    for field in dataclasses.fields(strategy):
        if field.init:
            hint = hints[field.name]
            union = typing.get_origin(hint) in (UnionType, typing.Union)
            yield field.name, typing.get_args(hint) if union else (hint,)


def build(strategy: type, **options: Any) -> Any:
    required = REQUIRED.get(strategy.__name__, {})
    try:
        return strategy(**required | options)
    except TypeError as error:
        if isinstance(error, ArgumentError):
            raise
        missing = f"Add the required options of {strategy.__name__} to REQUIRED in this test."
        raise AssertionError(missing) from error


def is_enum(kind: Any) -> bool:
    return inspect.isclass(kind) and issubclass(kind, Enum)


WRONG_INTEGERS: tuple[Any, ...] = ("3", "", 1.5, math.nan, True, [3], object())
WRONG_NUMBERS: tuple[Any, ...] = ("0.5", "", math.nan, math.inf, -math.inf, True, [0.5], 1j)
WRONG_BOOLEANS: tuple[Any, ...] = ("False", "yes", 0, 1, 0.5, [], None)


def wrong_values(kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    """Values that an option of these types must refuse."""
    wrong: tuple[Any, ...] = ()
    if any(map(is_enum, kinds)):
        wrong = ("nonsense", "", 0, True, ["zero"], Other.SAME)
    elif bool in kinds:
        wrong = WRONG_BOOLEANS
    elif float in kinds:
        wrong = WRONG_NUMBERS
    elif int in kinds:
        wrong = WRONG_INTEGERS
    elif any(inspect.isclass(k) and k.__module__.startswith("isthmus") for k in kinds):
        wrong = ("nonsense", 3, object())
    return wrong if NoneType in kinds or not wrong else (*wrong, None)


class Other(Enum):
    SAME = "sample"


OPTIONS = [
    pytest.param(strategy, name, kinds, id=f"{strategy.__name__}.{name}")
    for strategy in strategies()
    for name, kinds in options_of(strategy)
]


def test_the_strategies_are_found() -> None:
    names = {strategy.__name__ for strategy in strategies()}
    assert {"BGe", "GP", "Notears", "OrderMCMC", "StructuralEM", "ADMM", "LogDet"} <= names
    assert {"UniformWeights", "FamilyEBIC", "RBNetsVariant", "Chebyshev", "Timeouts"} <= names


@pytest.mark.parametrize(("strategy", "name", "kinds"), OPTIONS)
def test_an_option_refuses_other_types(strategy: type, name: str, kinds: tuple[Any, ...]) -> None:
    build(strategy)
    # Documents of a study report all their problems together, as errors of the study.
    joint = strategy.__module__.startswith("isthmus_joint.")
    expected = (ArgumentError, StudyError) if joint else ArgumentError
    for value in wrong_values(kinds):
        with pytest.raises(expected, match=name):
            build(strategy, **{name: value})


@pytest.mark.parametrize(("strategy", "name", "kinds"), OPTIONS)
def test_an_option_accepts_enums_and_their_values(
    strategy: type, name: str, kinds: tuple[Any, ...]
) -> None:
    for enum in filter(is_enum, kinds):
        for member in enum:
            given = build(strategy, **{name: member.value})
            assert given == build(strategy, **{name: member})
            assert repr(given) == repr(build(strategy, **{name: member}))
            assert getattr(given, name) is member


def enum_parameters() -> list[Any]:
    found = []
    for item in public_objects().values():
        if dataclasses.is_dataclass(item) or item.__module__.startswith(VALUES):
            continue
        function = item.__init__ if inspect.isclass(item) else item
        if not inspect.isfunction(function):
            continue
        for name, hint in inspect.get_annotations(function).items():
            # Not all annotations can be evaluated: some names are imported for type checkers only.
            names = [] if "[" in str(hint) else str(hint).split(" | ")
            kinds = [k for k in map(function.__globals__.get, names) if is_enum(k)]
            if name != "return" and kinds:
                label = f"{item.__name__}-{name}"
                found.append(pytest.param(item.__name__, name, kinds[0], id=label))
    return found


def test_the_parameters_are_found() -> None:
    found = {tuple(case.values[:2]) for case in enum_parameters()}
    assert {("scale_free", "hubs"), ("sort_and_regress", "by"), ("Frame", "integers")} <= found


@pytest.mark.parametrize(("function", "name", "enum"), enum_parameters())
def test_a_parameter_accepts_enums_and_their_values(
    function: str, name: str, enum: type[Enum]
) -> None:
    assert function in CALLS, f"Add an example call of {function} to CALLS in this test."
    call = CALLS[function]
    for member in enum:
        assert call(**{name: member.value}) == call(**{name: member})
    expected = SchemaError if enum is Kind else ArgumentError
    with pytest.raises(expected, match=name):
        call(**{name: "nonsense"})


def test_the_message_lists_what_is_allowed() -> None:
    with pytest.raises(ArgumentError) as error:
        ist.BGe(prior_mean="zreo")  # type: ignore[arg-type]
    assert str(error.value) == (
        "BGe was given prior_mean='zreo'; prior_mean must be one of PriorMean.ZERO ('zero'), "
        "PriorMean.SAMPLE ('sample')."
    )


def _any(value: Any) -> Any:
    """Return a value whose type the checker need not compare."""
    return value


def test_a_member_of_another_enum_is_refused() -> None:
    assert str(ist.PriorScale.SAMPLE) == str(ist.PriorMean.SAMPLE)
    with pytest.raises(ArgumentError, match="PriorScale"):
        ist.BGe(prior_scale=ist.PriorMean.SAMPLE)  # type: ignore[arg-type]


def test_strings_mean_what_they_say() -> None:
    rng = np.random.default_rng(0)
    table = {"a": 100 * rng.normal(size=50) + 300, "b": rng.normal(size=50)}
    dag = ist.DAG(["a", "b"], [("a", "b")])
    for name, member in (("prior_mean", ist.PriorMean.ZERO), ("prior_scale", ist.PriorScale.UNIT)):
        cases: list[dict[str, Any]] = [{name: member.value}, {name: member}]
        scores = [ist.score(table, dag, ist.BGe(**bge)) for bge in cases]
        assert scores[0] == scores[1] != ist.score(table, dag, ist.BGe())
    simulation = simulate.linear(simulate.erdos_renyi(6, 9, seed=1), 300, seed=2)
    sorted_by = [simulate.sort_and_regress(simulation, by=by) for by in simulate.SortBy]
    assert simulate.sort_and_regress(simulation, by=_any("variance")) == sorted_by[0]
    assert sorted_by[0] != sorted_by[1]
    effects = simulate.scale_free(20, 2, hubs=_any("effects"), seed=1)
    assert effects == simulate.scale_free(20, 2, hubs=simulate.Hubs.EFFECTS, seed=1)
    assert effects != simulate.scale_free(20, 2, hubs=simulate.Hubs.CAUSES, seed=1)


def test_the_protocol_of_two_parties_converts_its_choice() -> None:
    terms = TwoParties((), "id", (), identifier_kind="integer")  # type: ignore[arg-type]
    assert terms.identifier_kind is IdentifierKind.INTEGER
    with pytest.raises(ArgumentError, match="identifier_kind"):
        TwoParties((), "id", (), identifier_kind="number")  # type: ignore[arg-type]


def test_units_of_a_layer_are_checked() -> None:
    assert ist.RBNets(hidden=_any([8, 8])).hidden == (8, 8)
    for wrong in (("8",), (0,), 8, "88", (8.0,)):
        with pytest.raises(ArgumentError, match="hidden"):
            ist.RBNets(hidden=_any(wrong))


def test_admm_checks_its_options() -> None:
    with pytest.raises(ArgumentError, match="rho1"):
        joint.ADMM(rho1=0)
    with pytest.raises(ArgumentError, match="lagged_threshold"):
        joint.ADMM(lagged_threshold=-1)
    assert searches.LogDet(stages=_any(np.int64(3))).stages == 3
