"""The subcommand `isthmus fit GRAPH FILE`: estimate the parameters of a given graph."""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

import isthmus as ist
from isthmus.cli.inputs import (
    GRAPHS,
    add_table_options,
    kinds_of,
    missing_names,
    opened,
    read_graph_file,
)
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, add_output_option
from isthmus.cli.result_files import write_outputs
from isthmus.cli.runs import check_formats
from isthmus.errors import MismatchError

FORMATS = (".json", ".bif", ".bifxml", ".xmlbif", ".net", ".xdsl")


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = "Estimate the parameters of a given graph from a table."
    command.add_argument("graph", metavar="GRAPH", help=GRAPHS)
    add_table_options(command, partial(missing_names, "AvailableCases", "StructuralEM"))
    add_output_option(
        command,
        f"write the network to this file; may be repeated: {', '.join(FORMATS)}",
        required=True,
    )
    command.add_argument(
        "--pseudo-count",
        type=float,
        default=1.0,
        metavar="ROWS",
        help="weight of the prior of discrete variables in rows; by default 1; 0 gives the maximum "
        "likelihood estimate",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Estimate the parameters and write the network."""
    from isthmus.verbs.fit import fit_as_read

    check_formats(options.output, FORMATS)
    file = read_graph_file(options.graph)
    solution = isinstance(file.content, ist.Solution)
    network = fit_as_read(
        opened(options).table,
        dag := file.dag,
        file.content.reading if solution else ist.results.Reading(),
        options.pseudo_count,
        kinds=kinds_of(options),
        missing=options.missing,
        groups=options.groups,
    )
    if solution and file.content.equivalent:
        network = replace(network, cpdag=file.content.cpdag)
    give(nodes=dag.nodes, edges=dag.edges, parameters=network.parameters)
    say(f"{network!r}")
    return write_outputs(network, options.output, write=_write)


def _write(network: ist.networks.Network, path: Path) -> None:
    ending = path.suffix.lower()
    if ending == ".json":
        ist.io.write_json(network, path)
    elif isinstance(network, ist.networks.DiscreteNetwork):
        io = ist.io
        xmlbif = dict.fromkeys((".bifxml", ".xmlbif"), io.write_xmlbif)
        writers = {".bif": io.write_bif, ".net": io.write_hugin, **xmlbif}
        writers.get(ending, io.write_xdsl)(network, path)
    else:
        raise MismatchError(
            f"{ending} files hold discrete networks only, and this one has continuous variables. "
            "Write .json."
        )
