"""The subcommand `isthmus simulate`: draw a table from a network, or from a random one."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import isthmus as ist
from isthmus.cli.inputs import NETWORKS, read_graph_file
from isthmus.cli.output import data_output, give, say
from isthmus.cli.parsing import ExitCode, UsageError, add_output_option, at_least, one_of
from isthmus.cli.result_files import write_outputs
from isthmus.cli.runs import GRAPHS, check_formats, write_graph
from isthmus.errors import counted
from isthmus.tables.write_table import WRITTEN, check_written, write_table, write_text

MOST_NODES = 100_000
"""A graph has a bitset per node: its memory can grow with the square of the number of nodes."""

SHAPES = ("erdos-renyi", "scale-free")
MODELS = ("discrete", "linear", "mlp", "additive")
TRUTHS = (".bif", *GRAPHS)


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Draw rows from a network in a file, or from a random network (--nodes). Without -o, the "
        "table is printed as CSV."
    )
    command.add_argument("network", nargs="?", metavar="NETWORK", help=NETWORKS)
    command.add_argument(
        "--rows", type=at_least(1), default=1000, help="number of rows; by default 1000"
    )
    command.add_argument("--seed", type=at_least(0), default=0, help="random seed")
    add_output_option(
        command,
        f"write the table to this file; may be repeated: {', '.join(WRITTEN)}",
    )
    command.add_argument(
        "--truth",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help=f"write the graph, or the network as .bif, to this file: {', '.join(TRUTHS)}",
    )
    group = command.add_argument_group("random network")
    group.add_argument("--nodes", type=at_least(2, MOST_NODES), help="number of variables")
    group.add_argument(
        "--degree",
        type=float,
        help="expected number of neighbours of a variable, less than the number of variables; by "
        "default 2, or 1 of two variables",
    )
    group.add_argument(
        "--shape",
        type=one_of(SHAPES),
        choices=SHAPES,
        default=SHAPES[0],
        help="kind of the graph; by default erdos-renyi",
    )
    group.add_argument(
        "--model",
        type=one_of(MODELS),
        choices=MODELS,
        default="linear",
        help="how a variable depends on its parents; by default linear with Gaussian noise",
    )
    group.add_argument(
        "--levels",
        type=at_least(2),
        default=2,
        help="discrete: number of levels of a variable; by default 2",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Draw the table and write it."""
    if (options.network is None) == (options.nodes is None):
        raise UsageError(
            "Give either a network or --nodes for a random one, for instance: "
            "isthmus simulate --nodes 10 --rows 1000 -o data.csv"
        )
    if options.json and not options.output:
        raise UsageError("With --json, name a file for the table: -o data.csv")
    for path in options.output:
        check_written(path)
    check_formats(options.truth, TRUTHS)
    network, dag, columns = _drawn(options)
    give(rows=options.rows, nodes=dag.nodes, edges=dag.edges)
    if not options.output:
        write_text(columns, data_output())
    code = write_outputs(columns, options.output, write=write_table)

    def write_truth(_: Any, path: Path) -> None:
        if path.suffix.lower() != ".bif":
            write_graph(dag, path)
        elif isinstance(network, ist.networks.DiscreteNetwork):
            ist.io.write_bif(network, path)
        else:
            raise UsageError("A .bif file holds discrete networks. Write the graph as .dot.")

    truth = write_outputs(dag, options.truth, write=write_truth, quiet=not options.output)
    if options.output and not code:
        size = f"{counted(len(dag.nodes), 'variable')}, {counted(len(dag.edges), 'edge')}"
        say(f"{counted(options.rows, 'row')} of {size}")
    return code or truth


def _drawn(options: argparse.Namespace) -> tuple[Any, ist.DAG, dict[str, Any]]:
    """Return the network, or None if it has no file format, its graph and the columns."""
    rows, seed = options.rows, options.seed
    if options.network is not None:
        network: Any = read_graph_file(options.network).network
    else:
        graph = _graph(options)
        if options.model in ("mlp", "additive"):
            way = ist.simulate.MLP() if options.model == "mlp" else ist.simulate.FourierAdditive()
            return (
                None,
                graph,
                dict(ist.simulate.nonlinear(graph, rows, mechanism=way, seed=seed).data),
            )
        if options.model == "linear":
            return None, graph, dict(ist.simulate.linear(graph, rows, seed=seed).data)
        network = ist.simulate.discrete_network(graph, cardinalities=options.levels, seed=seed)
    columns = network.sample(rows, seed=seed)
    return network, network.dag, {name: columns[name] for name in network.dag.nodes}


def _graph(options: argparse.Namespace) -> ist.DAG:
    most = options.nodes - 1
    degree = min(2.0, most) if options.degree is None else options.degree
    if not 0 <= degree <= most:
        raise UsageError(
            f"--degree {degree:g}: each of {options.nodes} variables can have 0 to {most} "
            f"neighbours. Give a --degree of at most {most}, or more --nodes."
        )
    if options.shape == "scale-free":
        attachments = max(1, round(degree / 2))
        return ist.simulate.scale_free(options.nodes, attachments, seed=options.seed)
    return ist.simulate.erdos_renyi(options.nodes, degree=degree, seed=options.seed)
