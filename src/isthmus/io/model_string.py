"""Reader and writer for graphs as model strings of R's bnlearn: ``[a][b|a][c|a:b]``."""

from __future__ import annotations

import re

from isthmus.errors import FormatError, GraphError
from isthmus.graphs import DAG

_SPECIAL = re.compile(r"[\[\]|:]")
_NODE = re.compile(r"\[([^\[\]|:]+)(?:\|([^\[\]|]+))?\]")


def to_model_string(dag: DAG) -> str:
    """Return a graph as a model string, causes first.

    Raises
    ------
    FormatError
        If a name contains one of the characters ``[``, ``]``, ``|`` and ``:``.
    """
    for node in dag.nodes:
        if _SPECIAL.search(node):
            raise FormatError(
                f"The name {node!r} has one of the characters [ ] | : in it; rename it."
            )
    parts = []
    for node in dag.topological_order():
        above = dag.parents(node)
        parts.append(f"[{node}|{':'.join(above)}]" if above else f"[{node}]")
    return "".join(parts)


def from_model_string(text: str) -> DAG:
    """Read a graph from a model string; the nodes are in the order of the string."""
    text = text.strip()
    found = list(_NODE.finditer(text))
    if "".join(match.group() for match in found) != text:
        raise FormatError(f"{text[:60]!r} is not a model string such as '[a][b|a][c|a:b]'.")
    edges = [(p, m.group(1)) for m in found for p in (m.group(2) or "").split(":") if p]
    try:
        return DAG([match.group(1) for match in found], edges)
    except GraphError as error:
        raise FormatError(f"The model string is not a graph: {error}") from None
