"""Reader and writer for discrete networks in XMLBIF 0.3."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isthmus.errors import FormatError
from isthmus.io.files import level_texts, read_text, write_text
from isthmus.io.tables import floats, network_of, require_discrete, rows_of
from isthmus.io.xml_tree import escape_xml, parse_xml

if TYPE_CHECKING:
    from os import PathLike

    from isthmus.models import DiscreteNetwork


def to_xmlbif(network: DiscreteNetwork, *, name: str = "unknown") -> str:
    """Return a discrete network as XMLBIF text; levels are converted to text."""
    require_discrete(network, "XMLBIF")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>"]
    lines.append(f"<NAME>{escape_xml(name)}</NAME>")
    for node in network.dag.nodes:
        texts = level_texts(node, network.levels[node])
        lines += ['<VARIABLE TYPE="nature">', f"  <NAME>{escape_xml(node)}</NAME>"]
        lines += [f"  <OUTCOME>{escape_xml(text)}</OUTCOME>" for text in texts]
        lines.append("</VARIABLE>")
    for node in network.dag.nodes:
        lines += ["<DEFINITION>", f"  <FOR>{escape_xml(node)}</FOR>"]
        lines += [f"  <GIVEN>{escape_xml(p)}</GIVEN>" for p in network.dag.parents(node)]
        rows = [" ".join(map(repr, row)) for row in rows_of(network, node)]
        lines += ["  <TABLE>", *(f"    {row}" for row in rows), "  </TABLE>", "</DEFINITION>"]
    return "\n".join([*lines, "</NETWORK>", "</BIF>", ""])


def from_xmlbif(text: str, *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from XMLBIF text.

    Parameters
    ----------
    text
        The text. Properties are ignored.
    normalise
        Scale each row of probabilities to sum to one.
    """
    root = parse_xml(text, "BIF").one("NETWORK")
    levels, parents, numbers = {}, {}, {}
    for variable in root.all("VARIABLE"):
        if variable.attributes.get("TYPE", "nature") != "nature":
            raise FormatError(f"Line {variable.line}: only variables of type nature are supported.")
        levels[variable.one("NAME").text] = [own.text for own in variable.all("OUTCOME")]
    for definition in root.all("DEFINITION"):
        node = definition.one("FOR").text
        parents[node] = [given.text for given in definition.all("GIVEN")]
        numbers[node] = floats(definition.one("TABLE").text, f"The table of {node!r}")
    return network_of(levels, parents, numbers, normalise=normalise)


def read_xmlbif(path: str | PathLike[str], *, normalise: bool = False) -> DiscreteNetwork:
    """Read a discrete network from an XMLBIF file; see `from_xmlbif`."""
    return from_xmlbif(read_text(path), normalise=normalise)


def write_xmlbif(network: DiscreteNetwork, path: str | PathLike[str]) -> None:
    """Write a discrete network to an XMLBIF file; for pyAgrum, its name must end in ``.bifxml``."""
    write_text(to_xmlbif(network), path)
