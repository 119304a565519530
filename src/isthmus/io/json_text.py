"""Reader and writer for graphs and networks as JSON.

Graphs: ``{"format": "isthmus-graph/1", "type": "dag", "nodes": [...], "directed": [[from, to],
...], "undirected": []}`` with the types ``dag``, ``cpdag`` and ``pdag``.

Networks: ``{"format": "isthmus-network/1", "type": "discrete", "nodes": [...], "edges": [...],
"levels": {node: [...]}, "tables": {node: nested lists}}``; the axes of a table are the parents of
the node in the order of ``nodes``, then the node. ``"type": "gaussian"`` has ``intercepts``,
``coefficients`` (from node to parent to number) and ``variances`` instead. A fitted discrete
network also has ``counts``, in the shape of its tables. ``"type": "mixed"`` has ``conditionals``:
for each node an object with its own ``type``, ``table``, ``gaussian`` or ``logit``, and the fields
of `ProbabilityTable`, `ConditionalGaussian` or `MultinomialLogit`.

Numbers are written with full precision.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from isthmus.errors import FormatError, IsthmusError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.io.building import KINDS, build, kind_name, split_edges
from isthmus.io.files import read_text, write_text
from isthmus.io.json_networks import FORMAT as NETWORK
from isthmus.io.json_networks import network_from_dict, network_to_dict
from isthmus.models import DiscreteNetwork, GaussianNetwork, MixedNetwork, Network

if TYPE_CHECKING:
    from os import PathLike

Writable: TypeAlias = DAG | CPDAG | PDAG | Network

_GRAPH = "isthmus-graph/1"


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
        if format_name == NETWORK:
            return network_from_dict(data)
    except KeyError as error:
        raise FormatError(f"The JSON text has a missing or unknown entry: {error}.") from None
    except (IsthmusError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(f"The JSON text is not a valid graph or network: {error}") from None
    raise FormatError(
        f'The JSON text must have "format": "{_GRAPH}" or "{NETWORK}"; it has {format_name!r}. '
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
        raise FormatError(f"The JSON text must be an object; it is a {type(data).__name__}.")
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
