"""Queries and predictions of discrete networks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isthmus.graphs import DAG
from isthmus.models.columns import (
    Level,
    Unseen,
    encode_columns,
    number_of_rows,
    refuse_strangers,
)
from isthmus.models.inference import Elimination
from isthmus.models.questions import LIKELIHOODS, likelihood_of, shares, unknown_level
from isthmus.types import Floats

Levels: TypeAlias = Mapping[str, tuple[Level, ...]]


def code_of(name: str, levels: tuple[Level, ...], value: object) -> int:
    """Return the code of a level of a node."""
    plain: Any = value.item() if isinstance(value, np.generic) else value
    if plain not in levels:
        raise unknown_level(name, plain, levels)
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


def after(
    own: DAG,
    tables: Mapping[str, Floats],
    dag: DAG,
    do: Mapping[str, int],
    engine: Elimination | None = None,
) -> Elimination:
    """Return the network of an equivalent graph after nodes are set to levels.

    Parameters
    ----------
    own, tables
        The network. Tables may have draws as their first axis.
    dag
        An equivalent graph.
    do
        Codes of the nodes that are set.
    engine
        What answers questions to the network; a new one by default.
    """
    engine = engine or Elimination(own, tables)
    if not do:
        return engine
    if dag == own:
        return Elimination(*mutilated(own, tables, do))
    along, turned = dag.reorder(own.nodes), dict(tables)
    for name in own.nodes:
        if dag.parents(name) == own.parents(name):
            continue
        family = [own.index(v) for v in (*along.parents(name), name)]
        joint = engine.joints(family, {})
        total = joint.sum(axis=-1, keepdims=True)
        uniform = np.full(joint.shape, 1.0 / joint.shape[-1])
        turned[name] = np.divide(joint, total, out=uniform, where=total > 0)
    return Elimination(*mutilated(along, turned, do))


def ancestors_of(dag: DAG, nodes: Iterable[str]) -> set[str]:
    """Return some nodes and all their ancestors."""
    found: set[str] = set()
    stack = [*nodes]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += dag.parents(node)
    return found


def split_evidence(
    dag: DAG, levels: Levels, seen: Mapping[str, Any]
) -> tuple[dict[int, int], dict[int, Floats]]:
    """Return codes of observed nodes, and likelihoods of those observed with uncertainty."""
    codes, likelihoods = {}, {}
    for name, value in seen.items():
        if isinstance(value, LIKELIHOODS):
            likelihoods[dag.index(name)] = likelihood_of(name, levels[name], value)
        else:
            codes[dag.index(name)] = code_of(name, levels[name], value)
    return codes, likelihoods


def unseen_nodes(
    dag: DAG,
    rows: Mapping[str, tuple[tuple[str, ...], NDArray[Any]]],
    targets: Collection[str],
    evidence: Mapping[str, Any],
    do: Mapping[str, Any],
) -> tuple[str, ...]:
    """Return the nodes in an answer whose distribution comes from the prior alone.

    Parameters
    ----------
    dag
        The graph.
    rows
        For nodes with counts, their discrete parents and the number of rows with each combination.
    targets
        The nodes that are asked for.
    evidence, do
        Codes of nodes that are seen, or set from outside.
    """
    known = {**evidence, **do}
    waiting = [v for v in targets if v not in known]
    found: dict[str, bool] = {}
    while waiting:
        node = waiting.pop()
        if node in found:
            continue
        parents, counts = rows.get(node, ((), np.ones(())))
        place = tuple(int(known[p]) if p in known else slice(None) for p in parents)
        found[node] = any(p in known for p in parents) and not counts[place].any()
        waiting += [p for p in dag.parents(node) if p not in known]
    return tuple(v for v in dag.nodes if found.get(v, False))


def predict_probabilities(
    dag: DAG,
    levels: Levels,
    engine: Elimination,
    data: Mapping[str, ArrayLike],
    target: str,
    unseen: Unseen,
) -> Floats:
    """Return the distribution of the target for each row, of shape (rows, levels)."""
    dag.index(target)
    refuse_strangers(dag, data, target)
    given = [v for v in dag.nodes if v in data and v != target]
    known = encode_columns({v: levels[v] for v in given}, data, unseen)
    codes = {dag.index(v): own for v, own in known.items()}
    n = number_of_rows(data, given)
    return shares(engine.rows(dag.index(target), codes, n))
