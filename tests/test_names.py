"""One name for one thing: no class name twice, and one type and default per option."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import isthmus
import isthmus_joint

SOURCES = [Path(str(package.__file__)).parent for package in (isthmus, isthmus_joint)]
MODULES = (
    *("isthmus", "isthmus.datasets", "isthmus.fitting", "isthmus.graphs", "isthmus.io"),
    *("isthmus_joint", "isthmus.metrics", "isthmus.networks", "isthmus.objectives"),
    *("isthmus.plots", "isthmus.samplers", "isthmus.scores", "isthmus.searches"),
    *("isthmus.simulate", "isthmus.tables", "isthmus.statistics", "isthmus.testing"),
)
"""Results and reports are left out: their fields are values, not options."""

NONE = "None"
CONCEPTS: dict[str, tuple[set[str], str]] = {
    "candidates": ({"int | None"}, NONE),
    "draws": ({"int"}, "1000"),
    "integers": ({"Kind | str | None"}, NONE),
    "jobs": ({"int", "int | None"}, "-1"),  # None: over processes, as joblib is configured
    "knowledge": ({"Knowledge | None", "BoundKnowledge | None"}, NONE),
    "max_parent_sets": ({"int | None"}, "20000"),
    "max_parents": ({"int | None"}, NONE),
    "missing": ({"Missing | None"}, NONE),
    "n_best": ({"int"}, "1"),
    "patience": ({"int | None"}, NONE),
    "penalty": ({"float | None", "float | Penalty | None"}, NONE),
    "penalty_discount": ({"float"}, "1.0"),
    "progress": ({"bool | Callable[[Progress], None] | None"}, NONE),
    "pseudo_count": ({"float"}, "1.0"),
    "search": ({"AnySearch | None", "Search[Any] | None"}, NONE),
    "seed": ({"int"}, "0"),
    "temperatures": ({"int"}, "1"),
    "thin": ({"int | None"}, NONE),
    "time_limit": ({"float | None"}, NONE),
    "warm_up": ({"int | None"}, NONE),
}
"""Types and default of each option, wherever it has a default."""

OTHERWISE = {
    ("impute", "draws"): "by default one table with expected values, and nothing is drawn",
    ("changes", "draws"): "draws of parameters for an interval, not of graphs",
    ("ADMM", "penalty"): "a federation has no criterion that chooses it",
}


def signatures() -> Iterator[tuple[str, inspect.Signature]]:
    """Yield all public functions, and constructors and methods of public classes."""
    seen = set()
    for module in map(importlib.import_module, MODULES):
        for item in (getattr(module, name) for name in module.__all__):
            if inspect.ismodule(item) or id(item) in seen or not callable(item):
                continue
            seen.add(id(item))
            yield from _of(item.__name__, item)
            if inspect.isclass(item):
                for name, member in vars(item).items():
                    function = getattr(member, "__func__", member)
                    if not name.startswith("_") and inspect.isfunction(function):
                        yield from _of(f"{item.__name__}.{name}", function)


def _of(name: str, function: Callable[..., Any]) -> Iterator[tuple[str, inspect.Signature]]:
    try:
        yield name, inspect.signature(function)
    except (TypeError, ValueError):
        return  # a builtin without a signature


SIGNATURES = list(signatures())


@pytest.mark.parametrize("concept", CONCEPTS)
def test_an_option_means_the_same_everywhere(concept: str) -> None:
    types, default = CONCEPTS[concept]
    found = {
        name: (str(parameter.annotation), repr(parameter.default))
        for name, signature in SIGNATURES
        if (parameter := signature.parameters.get(concept)) is not None
        and parameter.default is not inspect.Parameter.empty
        and (name, concept) not in OTHERWISE
    }
    assert found, f"no public signature has the option {concept}"
    wrong = {n: f for n, f in found.items() if f[0] not in types or f[1] != default}
    assert wrong == {}


def test_exceptions_are_needed() -> None:
    known = {(name, p) for name, signature in SIGNATURES for p in signature.parameters}
    assert OTHERWISE.keys() <= known


def test_no_option_has_two_names() -> None:
    """The names of other libraries for `warm_up`, `jobs`, `seed`, `time_limit` and `progress`."""
    old = {"burn_in", "n_jobs", "random_state", "timeout", "verbose"}
    found = {(n, p) for n, signature in SIGNATURES for p in signature.parameters if p in old}
    assert found == set()


def test_no_class_name_is_defined_twice() -> None:
    homes = defaultdict(list)
    for path in (path for folder in SOURCES for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(path.name)
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
