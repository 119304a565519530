"""Results as labelled tables: one row per probability, edge or variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from isthmus.errors import ArgumentError, MismatchError
from isthmus.models import (
    DiscreteNetwork,
    GaussianNetwork,
    MeanRange,
    Nonparanormal,
    Normal,
    NormalMixture,
    Probabilities,
    ProbabilityRange,
)
from isthmus.models.columns import label_array
from isthmus.plurals import a_type
from isthmus.results import Ensemble, Posterior, Solution
from isthmus.sources.tables.like import table_like
from isthmus.types import Floats


def to_frame(result: object, like: object, *, node: str | None = None) -> Any:
    """Return a result as a table with names and levels, of the same kind as another table.

    ======================================= ============================================
    result                                  one row per
    ======================================= ============================================
    answer to a query                       combination of levels, or variable
    discrete network, with ``node``         cell of the probability table of this node
    Gaussian network                        edge, with its coefficient
    solution                                edge, and who decides its direction, by what margin
    posterior                               edge that occurs, with its probability
    bootstrap (ensemble)                    edge that occurs, with its share
    ======================================= ============================================

    Parameters
    ----------
    result
        What to show. Its own documentation says which errors it has.
    like
        A table, for instance the one that was learned from: the answer is a table of pandas, Polars
        or PyArrow, too. For a dictionary of columns, it is a dictionary.
    node
        The node of a discrete network.

    Examples
    --------
    >>> import isthmus as ist
    >>> network = ist.learn(ist.datasets.asia(rows=1000, seed=1)).fit()
    >>> answer = network.query("lung", evidence={"xray": "yes"})
    >>> sorted(ist.to_frame(answer, like={}))
    ['lung', 'probability', 'sampling_error']
    """
    if isinstance(result, DiscreteNetwork) and node is None:
        raise ArgumentError(
            f"Name the node whose table is asked for: node={result.dag.nodes[0]!r}."
        )
    if node is not None and not isinstance(result, DiscreteNetwork):
        raise ArgumentError(f"node is for discrete networks only; the result is {a_type(result)}.")
    return table_like(_columns(result, node), like)


def _columns(result: object, node: str | None) -> dict[str, Any]:
    match result:
        case Probabilities():
            return _cells(result.levels, {"probability": result.values} | _errors(result))
        case ProbabilityRange():
            return _cells(result.levels, {"lower": result.lower, "upper": result.upper})
        case Normal() | NormalMixture():
            columns = {"variable": np.array(result.names), "mean": result.mean}
            columns["standard_deviation"] = result.deviation
            return columns | _errors(result)
        case Nonparanormal():
            low, high = result.interval()
            columns = {"variable": np.array(result.names), "median": result.median}
            return columns | {"lower": low, "upper": high} | _errors(result)
        case MeanRange():
            names = np.array(result.names)
            return {"variable": names, "lower": result.lower, "upper": result.upper}
        case DiscreteNetwork() if node is not None:
            family = (*result.dag.parents(node), node)
            values = {"probability": result.tables[node]}
            counts = {} if result.counts is None else {"count": result.counts[node]}
            return _cells({v: result.levels[v] for v in family}, values | counts)
        case GaussianNetwork():
            return _edges(result.dag.nodes, result.weights(), "coefficient")
        case Posterior():
            return _edges(result.nodes, result.edge_probabilities(), "probability")
        case Ensemble():
            return _edges(result.nodes, result.edge_probabilities(), "share")
        case Solution():
            directions, edges = result.directions, result.dag.edges
            determined = set(directions.determined)
            return {
                "from": np.array([a for a, _ in edges], dtype=object),
                "to": np.array([b for _, b in edges], dtype=object),
                "direction_determined": np.array([edge in determined for edge in edges], np.bool_),
                "decided_by": np.array([directions.decided_by(e) for e in edges], dtype=object),
                "margin": np.array([directions.margins.get(e, np.nan) for e in edges], np.float64),
            }
        case _:
            raise MismatchError(
                f"There is no table for {a_type(result)}. Give an answer to a query, a discrete or "
                "Gaussian network, a solution, a posterior or a bootstrap."
            )


def _errors(answer: Probabilities | Normal | NormalMixture | Nonparanormal) -> dict[str, Any]:
    simulation = None if isinstance(answer, Normal) else answer.error
    errors = {"simulation_error": simulation, "sampling_error": answer.sampling_error}
    return {name: error for name, error in errors.items() if error is not None}


def _cells(levels: Any, values: dict[str, Any]) -> dict[str, Any]:
    """Return one row per combination of levels; a name of a value gives way to a variable."""
    shape = tuple(len(own) for own in levels.values())
    places = np.indices(shape).reshape(len(shape), -1)
    columns = {
        name: label_array(own)[place]
        for (name, own), place in zip(levels.items(), places, strict=True)
    }
    for name, array in values.items():
        while name in columns:
            name += "_"
        columns[name] = np.asarray(array).ravel()
    return columns


def _edges(nodes: Sequence[str], matrix: Floats, measure: str) -> dict[str, Any]:
    """Return one row per edge that occurs, the largest value first."""
    places = np.argwhere(matrix != 0.0)
    values = matrix[places[:, 0], places[:, 1]]
    order = np.argsort(-np.abs(values), kind="stable")
    names = np.array(nodes, dtype=object)
    return {
        "from": names[places[order, 0]],
        "to": names[places[order, 1]],
        measure: values[order],
    }
