"""The subcommand `isthmus compare A B`: how two graphs differ."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

import isthmus as ist
from isthmus.cli.inputs import GRAPHS, read_graph_file
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, one_of
from isthmus.errors import MismatchError

if TYPE_CHECKING:
    from isthmus.graphs import CPDAG, DAG, PAG, PDAG

AS = ("auto", "dag", "cpdag")


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Compare a graph with a reference over the same variables: the structural Hamming "
        "distance, and the edges that are added, missing, reversed, or have a direction in one "
        "graph only."
    )
    command.add_argument("graph", metavar="GRAPH", help=GRAPHS)
    command.add_argument("reference", metavar="REFERENCE", help="the same")
    command.add_argument(
        "--as",
        dest="how",
        type=one_of(AS),
        choices=AS,
        default="auto",
        help="compare the directed graphs (dag) or their equivalence classes (cpdag); by default "
        "dag if both graphs are directed",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Print how two graphs differ."""
    files = [read_graph_file(options.graph), read_graph_file(options.reference)]
    pags = [file.graph for file in files if isinstance(file.graph, ist.PAG)]
    graphs = [file.graph for file in files if not isinstance(file.graph, ist.PAG)]
    if pags and graphs:
        raise MismatchError("A PAG is compared with another PAG, and one of the files has none.")
    if pags:
        return compare_pags(*pags)
    if options.how == "dag":
        graphs = [file.dag for file in files]
    elif options.how == "cpdag" or not all(isinstance(graph, ist.DAG) for graph in graphs):
        graphs = [graph.cpdag() if isinstance(graph, ist.DAG) else graph for graph in graphs]
    graph, reference = graphs
    distance = ist.shd(graph, reference)
    groups = differences(graph, reference)
    kind = "directed graphs" if isinstance(graph, ist.DAG) else "equivalence classes"
    give(compared=kind, shd=distance, **groups)
    say(f"Structural Hamming distance of the {kind}: {distance}")
    if isinstance(reference, ist.DAG):
        metrics = ist.metrics.edge_metrics(reference, graph)
        give(metrics=asdict(metrics))
        say(
            f"Precision {metrics.precision:.3f}, recall {metrics.recall:.3f}, "
            f"F1 {metrics.f1:.3f}; without directions F1 {metrics.skeleton_f1:.3f}"
        )
    for name, edges in groups.items():
        if name != "same" and edges:
            say(f"{name.replace('_', ' ')} ({len(edges)}):")
            for edge in edges:
                say(f"  {edge}")
    say(f"same: {len(groups['same'])}")
    return ExitCode.DONE


def compare_pags(graph: PAG, reference: PAG) -> ExitCode:
    """Print how two PAGs differ."""
    metrics = ist.metrics.pag_metrics(reference, graph)
    ours, theirs = (
        {frozenset((a, b)): (a, k, b) for a, k, b in g.edges} for g in (graph, reference)
    )
    same = set(graph.edges) & set(reference.reorder(graph.nodes).edges)
    groups: dict[str, list[str]] = {
        "added": [" ".join(edge) for pair, edge in ours.items() if pair not in theirs],
        "missing": [" ".join(edge) for pair, edge in theirs.items() if pair not in ours],
        "marks_differ": [
            f"{' '.join(edge)}, not {' '.join(theirs[pair])}"
            for pair, edge in ours.items()
            if pair in theirs and edge not in same
        ],
    }
    give(compared="PAGs", metrics=asdict(metrics), **groups)
    say(f"F1 of edges {metrics.adjacency_f1:.3f}, of arrowheads {metrics.arrowhead_f1:.3f}")
    for name, edges in groups.items():
        if edges:
            say(f"{name.replace('_', ' ')} ({len(edges)}):")
            for edge in edges:
                say(f"  {edge}")
    say(f"same: {len(same)}")
    return ExitCode.DONE


def differences(graph: DAG | CPDAG | PDAG, reference: DAG | CPDAG | PDAG) -> dict[str, list[str]]:
    """Return the edges of two graphs, grouped by how they differ; the graph's edge is shown."""
    ours, theirs = _edges(graph), _edges(reference)
    groups: dict[str, list[str]] = {
        name: [] for name in ("added", "missing", "reversed", "direction_differs", "same")
    }
    for pair, edge in ours.items():
        if pair not in theirs:
            groups["added"].append(_shown(edge))
        elif theirs[pair] == edge:
            groups["same"].append(_shown(edge))
        elif edge[2] and theirs[pair][2]:
            groups["reversed"].append(_shown(edge))
        else:
            groups["direction_differs"].append(f"{_shown(edge)}, not {_shown(theirs[pair])}")
    groups["missing"] = [_shown(edge) for pair, edge in theirs.items() if pair not in ours]
    return groups


Edge = tuple[str, str, bool]
"""From, to, and whether it is directed; the names of an undirected edge are sorted."""


def _edges(graph: DAG | CPDAG | PDAG) -> dict[frozenset[str], Edge]:
    directed = graph.edges if isinstance(graph, ist.DAG) else graph.directed
    undirected = () if isinstance(graph, ist.DAG) else graph.undirected
    edges: list[Edge] = [(a, b, True) for a, b in directed]
    edges += [(min(a, b), max(a, b), False) for a, b in undirected]
    return {frozenset((a, b)): (a, b, is_directed) for a, b, is_directed in edges}


def _shown(edge: Edge) -> str:
    a, b, is_directed = edge
    return f"{a} {'→' if is_directed else '—'} {b}"
