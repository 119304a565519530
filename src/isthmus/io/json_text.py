"""Reader and writer for graphs and networks as JSON.

Graphs: ``{"format": "isthmus-graph/1", "type": "dag", "nodes": [...], "directed": [[from, to],
...], "undirected": []}`` with the types ``dag``, ``cpdag`` and ``pdag``.

Networks: ``{"format": "isthmus-network/1", "type": "discrete", "nodes": [...], "edges": [...],
"levels": {node: [...]}, "tables": {node: nested lists}}``; the axes of a table are the parents of
the node in the order of ``nodes``, then the node. ``"type": "gaussian"`` has ``intercepts``,
``coefficients`` (from node to parent to number) and ``variances`` instead, and may have the
``covariances`` of their sampling errors. A fitted discrete
network also has ``counts``, in the shape of its tables. ``"type": "mixed"`` has ``conditionals``:
for each node an object with its own ``type``, ``table``, ``gaussian``, ``logit``, ``hurdle`` or
``curved``, and the fields of `ProbabilityTable`, `ConditionalGaussian`, `MultinomialLogit`,
`Hurdle`, which contains two more such objects, or `CurvedGaussian` and `CurvedLogit`, which contain
one: the ``regression`` on their ``terms``. ``maps`` has, for nodes that are not the values of their
columns, the values ``at`` with their normal ``scores``, cut points ``at`` between levels, or the
``unit`` of dates; ``supports`` the ranges of numbers; ``notes`` what answers say of the rows.

Numbers are written with full precision.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from isthmus.errors import FormatError, IsthmusError, a_type
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.io.files import KINDS, build, kind_name, read_text, split_edges, write_text
from isthmus.networks import (
    Conditional,
    ConditionalGaussian,
    CurvedGaussian,
    CurvedLogit,
    DiscreteNetwork,
    Factor,
    GaussianNetwork,
    Hurdle,
    MixedNetwork,
    MultinomialLogit,
    Network,
    ProbabilityTable,
)
from isthmus.networks.column_maps import plain_maps, read_network_maps
from isthmus.networks.conditionals import DiscreteConditional, NormalConditional
from isthmus.networks.support import plain_supports, read_supports

if TYPE_CHECKING:
    from os import PathLike

Writable: TypeAlias = DAG | CPDAG | PDAG | Network

_GRAPH = "isthmus-graph/1"
_NETWORK = "isthmus-network/1"


def to_json(thing: Writable) -> str:
    """Return a graph or a network as JSON text."""
    return json.dumps(_as_dict(thing), ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def from_json(text: str) -> Writable:
    """Read a graph or a network from JSON text.

    Raises
    ------
    FormatError
        If the text is not valid JSON (the message gives the line number), or is in another format.
    """
    data = parse_json(text)
    format_name = data.get("format")
    try:
        if format_name == _GRAPH:
            kind = KINDS[data["type"]]
            return build(kind, data["nodes"], _pairs(data["directed"]), _pairs(data["undirected"]))
        if format_name == _NETWORK:
            return network_from_dict(data)
    except KeyError as error:
        raise FormatError(f"The JSON text has a missing or unknown entry: {error}.") from None
    except (IsthmusError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"The JSON text is not a valid graph or network: {error}") from None
    raise FormatError(
        f'The JSON text must have "format": "{_GRAPH}" or "{_NETWORK}"; it has {format_name!r}. '
        "Read a Gaussian network exported from bnlearn with read_bnlearn_json."
    )


def read_json(path: str | PathLike[str]) -> Writable:
    """Read a graph or a network from a JSON file."""
    return from_json(read_text(path))


def write_json(thing: Writable, path: str | PathLike[str]) -> None:
    """Write a graph or a network to a JSON file."""
    write_text(to_json(thing), path)


def from_bnlearn_json(text: str) -> GaussianNetwork:
    """Read a Gaussian network from JSON text exported from the bnlearn repository.

    The text has ``nodes``, ``arcs`` and ``cpds``. Each entry of ``cpds`` has ``coefficients``
    (including ``(Intercept)``), ``variance`` and ``parents``.
    """
    data = parse_json(text)
    try:
        dag = DAG(data["nodes"], _pairs(data["arcs"]))
        intercepts, coefficients, variances = {}, {}, {}
        for node, cpd in data["cpds"].items():
            own = {name: _number(value) for name, value in cpd["coefficients"].items()}
            intercepts[node] = own.pop("(Intercept)")
            coefficients[node] = own
            variances[node] = _number(cpd["variance"])
        return GaussianNetwork(dag, intercepts, coefficients, variances)
    except KeyError as error:
        raise FormatError(f"The JSON text has no entry {error}.") from None
    except (IsthmusError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"The JSON text is not a valid Gaussian network: {error}") from None


def read_bnlearn_json(path: str | PathLike[str]) -> GaussianNetwork:
    """Read a Gaussian network from a file; see `from_bnlearn_json`."""
    return from_bnlearn_json(read_text(path))


def parse_json(text: str) -> dict[str, Any]:
    """Return the object in a JSON text."""
    try:
        data = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise FormatError(f"Line {error.lineno} of the JSON text: {error.msg}.") from None
    except RecursionError:
        raise FormatError("The JSON text is nested too deeply.") from None
    if not isinstance(data, dict):
        raise FormatError(f"The JSON text must be an object; it is {a_type(data)}.")
    return data


def _as_dict(thing: Writable) -> dict[str, Any]:
    if isinstance(thing, DiscreteNetwork | GaussianNetwork | MixedNetwork):
        return network_to_dict(thing)
    directed, undirected = split_edges(thing)
    return {
        "format": _GRAPH,
        "type": kind_name(thing),
        "nodes": thing.nodes,
        "directed": directed,
        "undirected": undirected,
    }


def _pairs(edges: list[list[str]]) -> list[tuple[str, str]]:
    return [(a, b) for a, b in edges]


def _number(value: float | list[float]) -> float:
    """Return a number; R writes numbers as lists of length one."""
    if isinstance(value, list):
        (value,) = value
    return float(value)


def _refuse(word: str) -> float:
    raise FormatError(f"The JSON text contains {word}, which is not a finite number.")


def network_to_dict(network: Network) -> dict[str, Any]:
    """Return a network as plain data."""
    head: dict[str, Any] = {"nodes": network.dag.nodes, "edges": network.dag.edges}
    if network.cpdag is not None:
        kind = "CPDAG" if isinstance(network.cpdag, CPDAG) else "PDAG"
        undirected = network.cpdag.undirected
        head["class"] = {"type": kind, "undirected": undirected}
    if network.maps:
        head["maps"] = plain_maps(network.maps)
    if not isinstance(network, DiscreteNetwork) and network.supports:
        head["supports"] = plain_supports(network.supports)
    if network.notes:
        head["notes"] = network.notes
    if isinstance(network, DiscreteNetwork):
        counts = network.counts
        return {
            "format": _NETWORK,
            "type": "discrete",
            **head,
            "levels": dict(network.levels),
            "tables": {node: table.tolist() for node, table in network.tables.items()},
            **({} if counts is None else {"counts": {v: counts[v].tolist() for v in counts}}),
        }
    if isinstance(network, MixedNetwork):
        conditionals = {v: _conditional(own) for v, own in network.conditionals.items()}
        return {"format": _NETWORK, "type": "mixed", **head, "conditionals": conditionals}
    return {
        "format": _NETWORK,
        "type": "gaussian",
        **head,
        "intercepts": dict(network.intercepts),
        "coefficients": {node: dict(own) for node, own in network.coefficients.items()},
        "variances": dict(network.variances),
        **({} if network.rows is None else {"rows": network.rows}),
        **(
            {}
            if network.covariances is None
            else {"covariances": {v: own.tolist() for v, own in network.covariances.items()}}
        ),
    }


def network_from_dict(data: dict[str, Any]) -> Network:
    """Build a network from plain data."""
    dag = DAG(data["nodes"], [(a, b) for a, b in data["edges"]])
    cpdag, maps = _class(dag, data.get("class")), read_network_maps(data.get("maps", {}))
    notes = tuple(map(str, data.get("notes", ())))
    if data["type"] == "discrete":
        levels = {node: tuple(own) for node, own in data["levels"].items()}
        tables = {node: np.array(t, dtype=np.float64) for node, t in data["tables"].items()}
        counts = data.get("counts")
        if counts is not None:
            counts = {node: np.array(t) for node, t in counts.items()}
        return DiscreteNetwork(dag, levels, tables, counts, cpdag, maps, notes)
    supports = read_supports(data.get("supports", {}))
    if data["type"] == "gaussian":
        parameters = data["intercepts"], data["coefficients"], data["variances"]
        robust = data.get("covariances")
        if robust is not None:
            robust = {node: np.array(own, dtype=np.float64) for node, own in robust.items()}
        own = dag, *parameters, cpdag, maps, data.get("rows"), robust, supports, notes
        return GaussianNetwork(*own)
    if data["type"] == "mixed":
        given = data["conditionals"].items()
        conditionals = {node: _from_conditional(own) for node, own in given}
        return MixedNetwork(dag, conditionals, cpdag, maps, supports, notes)
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
            **({} if own.covariances is None else {"covariances": own.covariances.tolist()}),
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
    if isinstance(own, CurvedGaussian | CurvedLogit):
        return {
            "type": "curved",
            "discrete": own.discrete,
            "continuous": own.continuous,
            "terms": [[asdict(factor) for factor in term] for term in own.terms],
            "regression": _conditional(own.regression),
        }
    if isinstance(own, Hurdle):
        return {
            "type": "hurdle",
            "at": own.at,
            "elsewhere": _conditional(own.elsewhere),
            "rest": _conditional(own.rest),
            "side": own.side,
        }
    raise FormatError(f"A {type(own).__name__} has no form in JSON.")


def _from_conditional(own: dict[str, Any]) -> Conditional:
    kind = own["type"]
    if kind == "hurdle":
        elsewhere, rest = (_from_conditional(own[part]) for part in ("elsewhere", "rest"))
        if not isinstance(elsewhere, DiscreteConditional) or not isinstance(
            rest, NormalConditional
        ):
            raise FormatError("a hurdle has a table or a logit, and a gaussian distribution.")
        return Hurdle(float(own["at"]), elsewhere, rest, int(own["side"]))
    if kind == "curved":
        return _from_curved(own)
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
        robust = own.get("covariances")
        return ConditionalGaussian(
            discrete,
            continuous,
            intercepts,
            coefficients,
            variances,
            seen,
            covariances=None if robust is None else np.array(robust, dtype=np.float64),
        )
    if kind == "logit":
        effects = tuple(np.array(effect, dtype=np.float64) for effect in own["effects"])
        slopes = np.array(own["slopes"], dtype=np.float64)
        return MultinomialLogit(
            tuple(own["levels"]), discrete, continuous, intercepts, effects, slopes
        )
    raise FormatError(f"the type of a distribution must be known, got {kind!r}.")


def _from_curved(own: dict[str, Any]) -> Conditional:
    regression = _from_conditional(own["regression"])
    terms = tuple(tuple(_factor(factor) for factor in term) for term in own["terms"])
    parents = tuple(own["discrete"]), tuple(own["continuous"])
    if isinstance(regression, ConditionalGaussian):
        return CurvedGaussian(*parents, terms, regression)
    if isinstance(regression, MultinomialLogit):
        return CurvedLogit(*parents, terms, regression)
    raise FormatError("a curved distribution has a gaussian or a logit regression.")


def _factor(own: dict[str, Any]) -> Factor:
    window = own["window"]
    if window is not None:
        low, high = (float(end) for end in window)
        window = low, high
    return Factor(str(own["parent"]), int(own["degree"]), window)
