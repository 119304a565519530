"""The subcommand `isthmus validate FILE [GRAPH]`: test whether a table agrees with a graph."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from functools import partial
from typing import Any

import isthmus as ist
from isthmus.cli.inputs import (
    GRAPHS,
    add_knowledge_options,
    add_table_options,
    kinds_of,
    knowledge_of,
    missing_names,
    opened,
    read_graph_file,
)
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, at_least
from isthmus.errors import ArgumentError


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Test the independences that a graph implies against a table: where the data object to the "
        "graph, and which edges they do not show. Background knowledge is compared with the graph; "
        "without a graph, the best one that agrees with the knowledge is tested."
    )
    add_table_options(command, partial(missing_names, "StructuralEM"))
    command.add_argument("graph", metavar="GRAPH", nargs="?", help=GRAPHS)
    add_knowledge_options(command)
    command.add_argument(
        "--alpha",
        type=float,
        default=0.05,
        help="probability of any objection if the graph is true; by default 0.05",
    )
    command.add_argument(
        "--seed", type=at_least(0), default=0, help="random seed of the shuffled names"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Print whether the table agrees with the graph."""
    knowledge = knowledge_of(options)
    graph: Any = knowledge
    if options.graph is not None:
        graph = read_graph_file(options.graph).graph
    elif knowledge is None:
        raise ArgumentError("Name the file of a graph after the table, or give --knowledge FILE.")
    answer = ist.validate(
        opened(options).table,
        graph,
        alpha=options.alpha,
        knowledge=None if options.graph is None else knowledge,
        kinds=kinds_of(options),
        missing=options.missing,
        groups=options.groups,
        seed=options.seed,
    )
    say(str(answer))
    give(
        agrees=answer.agrees,
        rows=answer.n,
        objections=[asdict(each) for each in answer.objections],
        unsupported=[asdict(each) for each in answer.unsupported],
        violated=answer.violated,
        contradicted=answer.contradicted,
        remarks=answer.remarks,
    )
    return ExitCode.DONE
