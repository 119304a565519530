"""Reader and writer for discrete networks in XDSL, the format of GeNIe and SMILE.

Nodes and states have identifiers there. Where a name is none, it is kept as a property of its node
and read back.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from isthmus.errors import FormatError
from isthmus.io.files import identifiers, level_texts, read_text, write_text
from isthmus.io.tables import floats, network_of, require_discrete, rows_of
from isthmus.io.xml_tree import Element, escape_xml, parse_xml

if TYPE_CHECKING:
    from os import PathLike

    from isthmus.models import DiscreteNetwork

_NAME, _LEVELS = "isthmus_name", "isthmus_levels"


def to_xdsl(network: DiscreteNetwork, *, name: str = "network") -> str:
    """Return a discrete network as XDSL text; levels are converted to text."""
    require_discrete(network, "GeNIe")
    ids = identifiers(network.dag.nodes, "n")
    nodes, extensions = [], []
    for node in network.dag.topological_order():
        texts = level_texts(node, network.levels[node])
        states = identifiers(texts, "s")
        nodes.append(f'    <cpt id="{ids[node]}">')
        nodes += [f'      <state id="{states[text]}" />' for text in texts]
        above = network.dag.parents(node)
        if above:
            nodes.append(f"      <parents>{' '.join(ids[p] for p in above)}</parents>")
        flat = " ".join(repr(value) for row in rows_of(network, node) for value in row)
        nodes.append(f"      <probabilities>{flat}</probabilities>")
        if ids[node] != node:
            nodes.append(f'      <property id="{_NAME}">{escape_xml(node)}</property>')
        if list(states.values()) != texts:
            kept = escape_xml(json.dumps(texts))
            nodes.append(f'      <property id="{_LEVELS}">{kept}</property>')
        nodes.append("    </cpt>")
        extensions += [
            f'      <node id="{ids[node]}">',
            f"        <name>{escape_xml(node)}</name>",
            "      </node>",
        ]
    title = escape_xml(name)
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<smile version="1.0" id="{identifiers([name], "n")[name]}">',
            "  <nodes>",
            *nodes,
            "  </nodes>",
            "  <extensions>",
            f'    <genie version="1.0" app="Isthmus" name="{title}">',
            *extensions,
            "    </genie>",
            "  </extensions>",
            "</smile>",
            "",
        ]
    )


def from_xdsl(text: str, *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from XDSL text.

    Parameters
    ----------
    text
        The text; nodes that are not tables of probabilities are errors.
    normalise
        Scale each row of probabilities to sum to one.
    """
    levels, parents, numbers = {}, {}, {}
    names: dict[str, str] = {}
    nodes = parse_xml(text, "smile").one("nodes").children
    for node in nodes:
        if node.tag != "cpt":
            raise FormatError(f"Line {node.line}: <{node.tag}> is not supported, only <cpt>.")
        names[node.attribute("id")] = _property(node, _NAME) or node.attribute("id")
    for node in nodes:
        name = names[node.attribute("id")]
        kept = _property(node, _LEVELS)
        states = [state.attribute("id") for state in node.all("state")]
        levels[name] = states if kept is None else _levels(kept, len(states))
        above = " ".join(own.text for own in node.all("parents")).split()
        parents[name] = [names.get(p, p) for p in above]
        numbers[name] = floats(node.one("probabilities").text, f"The table of {name!r}")
    return network_of(levels, parents, numbers, normalise=normalise)


def _property(node: Element, key: str) -> str | None:
    return next((p.text for p in node.all("property") if p.attributes.get("id") == key), None)


def _levels(text: str, size: int) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or len(found) != size:
        raise FormatError(f"The property {_LEVELS} is {text!r}; a list of {size} names is needed.")
    return [str(level) for level in found]


def read_xdsl(path: str | PathLike[str], *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from an XDSL file; see `from_xdsl`."""
    return from_xdsl(read_text(path), normalise=normalise)


def write_xdsl(network: DiscreteNetwork, path: str | PathLike[str]) -> None:
    """Write a discrete network to an XDSL file."""
    write_text(to_xdsl(network), path)
