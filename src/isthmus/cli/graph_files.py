"""Graphs and networks that a command is given: files, and built-in datasets by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from isthmus.cli.parsing import suggestion
from isthmus.errors import FormatError, MismatchError
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.io import (
    read_bif,
    read_dot,
    read_edge_list,
    read_gml,
    read_graphml,
    read_hugin,
    read_json,
    read_xdsl,
    read_xmlbif,
)
from isthmus.models import DiscreteNetwork, GaussianNetwork, MixedNetwork, Network
from isthmus.results import Solution

DATASET = "dataset:"
"""Prefix of the name of a built-in dataset, such as ``dataset:asia``."""
_READERS: dict[str, Callable[[Path], Any]] = {
    ".isthmus": Solution.load,
    ".bif": read_bif,
    ".xmlbif": read_xmlbif,
    ".net": read_hugin,
    ".xdsl": read_xdsl,
    ".json": read_json,
    ".dot": read_dot,
    ".gml": read_gml,
    ".graphml": read_graphml,
    ".csv": read_edge_list,
}
NETWORKS = "a network (.bif, .xmlbif, .net, .xdsl, .json), a solution (.isthmus) or dataset:NAME"
"""What can be asked or simulated, for help texts."""
GRAPHS = f"{NETWORKS}, or a graph (.dot, .gml, .graphml, .csv)"
"""What can be compared, for help texts."""


@final
@dataclass(frozen=True)
class GraphFile:
    """A graph, and the network that it belongs to, if the file has one.

    Attributes
    ----------
    name
        The name that was given.
    graph
        The graph.
    content
        What the file holds: a graph, a network or a solution.
    """

    name: str
    graph: DAG | CPDAG | PDAG
    content: Any

    @property
    def dag(self) -> DAG:
        """The graph, which must be a DAG."""
        if not isinstance(self.graph, DAG):
            raise MismatchError(
                f"{self.name} has undirected edges. Give a file with a direction for each edge."
            )
        return self.graph

    @property
    def network(self) -> Network:
        """The network with parameters."""
        content = self.content.fit() if isinstance(self.content, Solution) else self.content
        if not isinstance(content, (DiscreteNetwork, GaussianNetwork, MixedNetwork)):
            raise MismatchError(
                f"{self.name} holds a graph without parameters. Fit them first: "
                f"isthmus fit {self.name} DATA -o network.json"
            )
        return content


def read_graph_file(given: str) -> GraphFile:
    """Read a graph, a network or a solution."""
    if given.startswith(DATASET):
        network = dataset(given.removeprefix(DATASET)).network
        return GraphFile(given, network.dag, network)
    path = Path(given)
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if not endings or endings[-1] not in _READERS:
        raise FormatError(f"{given!r} is unknown. Give {GRAPHS}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {given!r}. Check the name and the folder.")
    try:
        content = _READERS[endings[-1]](path)
    except FormatError as error:
        raise FormatError(f"{given} cannot be read: {error}") from None
    graph = content if isinstance(content, (DAG, CPDAG, PDAG)) else content.dag
    return GraphFile(given, graph, content)


def dataset(name: str) -> Any:
    """Return a built-in dataset by its name."""
    makers = datasets()
    if name.lower() not in makers:
        raise FormatError(f"There is no dataset {name!r}{suggestion(name, makers)}")
    return makers[name.lower()]()


def datasets() -> dict[str, Callable[..., Any]]:
    """Return the functions that make the built-in datasets."""
    import isthmus.datasets as package

    names = [name for name in package.__all__ if name not in {"Dataset", "fetch"}]
    return {name: getattr(package, name) for name in names}
