"""Queries and predictions of discrete networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.errors import SchemaError
from isthmus.graphs import DAG
from isthmus.models.columns import Level, common_length, encode_column, refuse_strangers
from isthmus.models.inference import JunctionTree
from isthmus.models.questions import shares
from isthmus.types import Floats

Levels: TypeAlias = Mapping[str, tuple[Level, ...]]


def code_of(name: str, levels: tuple[Level, ...], value: object) -> int:
    """Return the code of a level of a node."""
    plain: Any = value.item() if isinstance(value, np.generic) else value
    if plain not in levels:
        raise SchemaError(f"{plain!r} is not one of the levels of {name!r}: {levels!r}.")
    return levels.index(plain)


def mutilated(
    dag: DAG, tables: Mapping[str, Floats], do: Mapping[str, int]
) -> tuple[DAG, dict[str, Floats]]:
    """Return graph and tables after nodes are set to levels from outside."""
    changed = dict(tables)
    for name, code in do.items():
        changed[name] = np.zeros(tables[name].shape[-1])
        changed[name][code] = 1.0
    return DAG(dag.nodes, [(a, b) for a, b in dag.edges if b not in do]), changed


def predict_probabilities(
    dag: DAG,
    levels: Levels,
    tables: Mapping[str, Floats],
    data: Mapping[str, ArrayLike],
    target: str,
    tree: Callable[[], JunctionTree],
) -> Floats:
    """Return the distribution of the target for each row, of shape (rows, levels)."""
    dag.index(target)
    refuse_strangers(dag, data, target)
    given = [v for v in dag.nodes if v in data and v != target]
    codes = {v: encode_column(v, levels[v], data[v]) for v in given}
    n = common_length(codes) if codes else _rows(data)
    if all(v in codes for v in dag.markov_blanket(target)):
        return _given_blanket(dag, tables, codes, target, n)
    # Each distinct row is asked once.
    rows = np.stack([codes[v] for v in given], axis=1) if given else np.zeros((n, 0), np.int64)
    distinct, places = np.unique(rows, axis=0, return_inverse=True)
    positions = [dag.index(v) for v in given]
    engine = tree()
    answers = [
        engine.joint([dag.index(target)], dict(zip(positions, row.tolist(), strict=True)))
        for row in distinct
    ]
    found: Floats = np.reshape(answers, (-1, len(levels[target])))[places.ravel()]
    return found


def _rows(data: Mapping[str, ArrayLike]) -> int:
    return common_length({k: np.asarray(v) for k, v in data.items()}) if data else 1


def _given_blanket(
    dag: DAG,
    tables: Mapping[str, Floats],
    codes: Mapping[str, NDArray[Any]],
    target: str,
    n: int,
) -> Floats:
    """Return the distribution given the Markov blanket: its factors, multiplied."""
    size = tables[target].shape[-1]
    with np.errstate(divide="ignore"):
        logs = np.zeros((n, size))
        for node in (target, *dag.children(target)):
            axes = (*dag.parents(node), node)
            table = np.moveaxis(np.log(tables[node]), axes.index(target), -1)
            place = tuple(codes[v].astype(np.intp) for v in axes if v != target)
            logs += table[place] if place else table
    return shares(logs)
