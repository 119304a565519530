"""Graphs and networks that a command is given: files, and built-in datasets by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import isthmus as ist
from isthmus.cli.parsing import suggestion
from isthmus.errors import FormatError, MismatchError

if TYPE_CHECKING:
    from isthmus.graphs import CPDAG, DAG, PAG, PDAG
    from isthmus.models import Network

DATASETS = ("asia", "burglary", "sprinkler", "water_level")
"""Names of the built-in datasets, for help texts, which must not import them."""
DATASET = "dataset:"
"""Prefix of the name of a built-in dataset, such as ``dataset:asia``."""
_READERS = {
    ".bif": "read_bif",
    ".xmlbif": "read_xmlbif",
    ".bifxml": "read_xmlbif",
    ".net": "read_hugin",
    ".xdsl": "read_xdsl",
    ".json": "read_json",
    ".dot": "read_dot",
    ".gml": "read_gml",
    ".graphml": "read_graphml",
    ".csv": "read_edge_list",
    ".txt": "read_tetrad",
}
"""Functions of `isthmus.io` that read files with these extensions."""
NETWORKS = "a network (.bif, .bifxml, .net, .xdsl, .json), a solution (.isthmus) or dataset:NAME"
"""Networks that can be queried or simulated, for help texts."""
GRAPHS = f"{NETWORKS}, or a graph (.dot, .gml, .graphml, .csv, a PAG of Tetrad as .txt)"
"""Graphs that can be compared, for help texts."""


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
        Content of the file: a graph, a network or a solution.
    """

    name: str
    graph: DAG | CPDAG | PDAG | PAG
    content: Any

    @property
    def dag(self) -> DAG:
        """The graph, which must be a DAG."""
        self._refuse_pag()
        if not isinstance(self.graph, ist.DAG):
            raise MismatchError(
                f"{self.name} has undirected edges. Give a file with a direction for each edge."
            )
        return self.graph

    @property
    def network(self) -> Network:
        """The network with parameters."""
        self._refuse_pag()
        content = self.content
        if isinstance(content, ist.Solution):
            try:
                content = content.fit()
            except MismatchError as refusal:
                raise MismatchError(
                    f"{self.name} has the graph but no parameters. Write the fitted network when "
                    "learning: isthmus learn DATA -o network.json. Or fit the graph to a table: "
                    f"isthmus fit {self.name} DATA -o network.json"
                ) from refusal
        models = ist.models
        known = (models.DiscreteNetwork, models.GaussianNetwork, models.MixedNetwork)
        if not isinstance(content, known):
            raise MismatchError(
                f"{self.name} holds a graph without parameters. Fit them first: "
                f"isthmus fit {self.name} DATA -o network.json"
            )
        return content

    def _refuse_pag(self) -> None:
        if isinstance(self.graph, ist.PAG):
            raise MismatchError(
                f"{self.name} has a PAG: hidden common causes are possible, so it has no DAG of "
                "the columns alone and no parameters. Compare it with another PAG, or learn a DAG "
                "that assumes that there are none: isthmus learn DATA --search Boss"
            )


def read_graph_file(given: str) -> GraphFile:
    """Read a graph, a network or a solution."""
    from isthmus.results.solution_file import FORMAT, PAG_FORMAT, read_solution

    if given.startswith(DATASET):
        network = dataset(given.removeprefix(DATASET)).network
        return GraphFile(given, network.dag, network)
    path = Path(given)
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    if not endings or endings[-1] not in (".isthmus", *_READERS):
        raise FormatError(f"{given!r} is unknown. Give {GRAPHS}.")
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {given!r}. Check the name and the folder.")
    try:
        if endings[-1] == ".isthmus":
            kinds: Any = {FORMAT: ist.Solution, PAG_FORMAT: ist.PAGSolution}
            content: Any = read_solution(path, kinds)
        else:
            content = getattr(ist.io, _READERS[endings[-1]])(path)
    except FormatError as error:
        raise FormatError(f"{given} cannot be read: {error}") from None
    graphs = (ist.DAG, ist.CPDAG, ist.PDAG, ist.PAG)
    if isinstance(content, ist.PAGSolution):
        return GraphFile(given, content.pag, content)
    graph = content if isinstance(content, graphs) else content.dag
    return GraphFile(given, graph, content)


def dataset(name: str) -> Any:
    """Return a built-in dataset by its name."""
    if name.lower() not in DATASETS:
        raise FormatError(f"There is no dataset {name!r}{suggestion(name, DATASETS)}")
    return getattr(ist.datasets, name.lower())()
