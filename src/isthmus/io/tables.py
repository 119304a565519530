"""Build a discrete network from what a file of tables says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from isthmus.errors import FormatError, IsthmusError, MismatchError
from isthmus.graphs import DAG
from isthmus.models import DiscreteNetwork
from isthmus.plurals import a_type
from isthmus.types import Floats


def require_discrete(network: object, kind: str) -> None:
    """Raise if a network is not one of discrete variables, which is all that a format holds."""
    if not isinstance(network, DiscreteNetwork):
        raise MismatchError(
            f"A {kind} file holds a DiscreteNetwork, and {a_type(network)} was given. "
            "Use write_json, which holds every network, or write the graph alone: "
            "write_graphml(network.dag, path). For solutions, call solution.fit() first."
        )


def network_of(
    levels: Mapping[str, Sequence[str]],
    parents: Mapping[str, Sequence[str]],
    numbers: Mapping[str, Sequence[float]],
    *,
    normalise: bool = False,
) -> DiscreteNetwork:
    """Return a network from the tables of a file.

    Parameters
    ----------
    levels
        Levels of each node.
    parents
        Parents of each node, in the order of the axes of its table.
    numbers
        The table of each node: the first parent changes slowest, the node itself fastest.
    normalise
        Scale each row to sum to one.
    """
    try:
        for node in levels:
            if node not in numbers:
                raise FormatError(f"node {node!r} has no table.")
        dag = DAG(list(levels), [(p, v) for v, own in parents.items() for p in own])
        tables = {}
        for node in dag.nodes:
            given = list(parents[node])
            shape = [len(levels[v]) for v in (*given, node)]
            table: Floats = np.array(numbers[node], dtype=np.float64)
            if table.size != int(np.prod(shape)):
                raise FormatError(
                    f"the table of {node!r} has {table.size} numbers; {int(np.prod(shape))} are "
                    f"needed for the shape {tuple(shape)}."
                )
            table = table.reshape(shape)
            if normalise:
                with np.errstate(invalid="ignore", divide="ignore"):
                    table = table / table.sum(axis=-1, keepdims=True)
            axes = [given.index(p) for p in dag.parents(node)]
            tables[node] = table.transpose(*axes, len(axes))
        return DiscreteNetwork(dag, {v: tuple(own) for v, own in levels.items()}, tables)
    except (IsthmusError, KeyError) as error:
        raise FormatError(f"The file does not hold a valid network: {error}") from None


def floats(text: str, where: str) -> list[float]:
    """Return the numbers in a text."""
    try:
        return [float(word) for word in text.split()]
    except ValueError as error:
        raise FormatError(f"{where}: {error}.") from None


def rows_of(network: DiscreteNetwork, node: str) -> list[list[float]]:
    """Return the table of a node as one row per configuration of its parents."""
    table = network.tables[node]
    rows: list[list[float]] = table.reshape(-1, table.shape[-1]).tolist()
    return rows
