"""Networks as plain data for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np

from isthmus.errors import FormatError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.models import (
    Conditional,
    ConditionalGaussian,
    DiscreteNetwork,
    GaussianNetwork,
    MixedNetwork,
    MultinomialLogit,
    Network,
    ProbabilityTable,
)

FORMAT = "isthmus-network/1"


def network_to_dict(network: Network) -> dict[str, Any]:
    """Return a network as plain data."""
    head: dict[str, Any] = {"nodes": network.dag.nodes, "edges": network.dag.edges}
    if network.cpdag is not None:
        kind = "CPDAG" if isinstance(network.cpdag, CPDAG) else "PDAG"
        undirected = network.cpdag.undirected
        head["class"] = {"type": kind, "undirected": undirected}
    if isinstance(network, DiscreteNetwork):
        counts = network.counts
        return {
            "format": FORMAT,
            "type": "discrete",
            **head,
            "levels": dict(network.levels),
            "tables": {node: table.tolist() for node, table in network.tables.items()},
            **({} if counts is None else {"counts": {v: counts[v].tolist() for v in counts}}),
        }
    if isinstance(network, MixedNetwork):
        conditionals = {v: _conditional(own) for v, own in network.conditionals.items()}
        return {"format": FORMAT, "type": "mixed", **head, "conditionals": conditionals}
    return {
        "format": FORMAT,
        "type": "gaussian",
        **head,
        "intercepts": dict(network.intercepts),
        "coefficients": {node: dict(own) for node, own in network.coefficients.items()},
        "variances": dict(network.variances),
    }


def network_from_dict(data: dict[str, Any]) -> Network:
    """Build a network from plain data."""
    dag = DAG(data["nodes"], [(a, b) for a, b in data["edges"]])
    cpdag = _class(dag, data.get("class"))
    if data["type"] == "discrete":
        levels = {node: tuple(own) for node, own in data["levels"].items()}
        tables = {node: np.array(t, dtype=np.float64) for node, t in data["tables"].items()}
        counts = data.get("counts")
        if counts is not None:
            counts = {node: np.array(t) for node, t in counts.items()}
        return DiscreteNetwork(dag, levels, tables, counts, cpdag)
    if data["type"] == "gaussian":
        return GaussianNetwork(
            dag, data["intercepts"], data["coefficients"], data["variances"], cpdag
        )
    if data["type"] == "mixed":
        given = data["conditionals"].items()
        return MixedNetwork(dag, {node: _from_conditional(own) for node, own in given}, cpdag)
    raise FormatError(
        f"the network type must be 'discrete', 'gaussian' or 'mixed', got {data['type']!r}."
    )


def _class(dag: DAG, given: dict[str, Any] | None) -> CPDAG | PDAG | None:
    """Return the equivalence class; its directed edges are the other edges of the graph."""
    if given is None:
        return None
    open_edges = [(a, b) for a, b in given["undirected"]]
    pairs = {frozenset(edge) for edge in open_edges}
    directed = [edge for edge in dag.edges if frozenset(edge) not in pairs]
    if given["type"] not in ("CPDAG", "PDAG"):
        raise FormatError(f"the class must be a 'CPDAG' or a 'PDAG', got {given['type']!r}.")
    kind = CPDAG if given["type"] == "CPDAG" else PDAG
    return kind(dag.nodes, directed, open_edges)


def _conditional(own: Conditional) -> dict[str, Any]:
    if isinstance(own, ProbabilityTable):
        return {
            "type": "table",
            "levels": own.levels,
            "parents": own.given,
            "probabilities": own.probabilities.tolist(),
            "counts": None if own.counts is None else own.counts.tolist(),
        }
    if isinstance(own, ConditionalGaussian):
        return {
            "type": "gaussian",
            "discrete": own.discrete,
            "continuous": own.continuous,
            "intercepts": own.intercepts.tolist(),
            "coefficients": own.coefficients.tolist(),
            "variances": own.variances.tolist(),
            "counts": None if own.counts is None else own.counts.tolist(),
        }
    if isinstance(own, MultinomialLogit):
        return {
            "type": "logit",
            "levels": own.levels,
            "discrete": own.discrete,
            "continuous": own.continuous,
            "intercepts": own.intercepts.tolist(),
            "effects": [effect.tolist() for effect in own.effects],
            "slopes": own.slopes.tolist(),
        }
    raise FormatError(f"A {type(own).__name__} has no form in JSON.")


def _from_conditional(own: dict[str, Any]) -> Conditional:
    kind = own["type"]
    counts = own.get("counts")
    seen = None if counts is None else np.array(counts, dtype=np.int64)
    if kind == "table":
        probabilities = np.array(own["probabilities"], dtype=np.float64)
        return ProbabilityTable(tuple(own["levels"]), tuple(own["parents"]), probabilities, seen)
    discrete, continuous = tuple(own["discrete"]), tuple(own["continuous"])
    intercepts = np.array(own["intercepts"], dtype=np.float64)
    if kind == "gaussian":
        coefficients = np.array(own["coefficients"], dtype=np.float64)
        variances = np.array(own["variances"], dtype=np.float64)
        return ConditionalGaussian(discrete, continuous, intercepts, coefficients, variances, seen)
    if kind == "logit":
        effects = tuple(np.array(effect, dtype=np.float64) for effect in own["effects"])
        slopes = np.array(own["slopes"], dtype=np.float64)
        return MultinomialLogit(
            tuple(own["levels"]), discrete, continuous, intercepts, effects, slopes
        )
    raise FormatError(f"the type of a distribution must be known, got {kind!r}.")
