"""The subcommand `isthmus bootstrap FILE`: how much edges depend on the rows that were seen."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import isthmus as ist
from isthmus.cli.inputs import missing_names, opened, table_search_from
from isthmus.cli.learn import search_sentence
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, at_least
from isthmus.cli.result_files import summary, write_outputs, write_report
from isthmus.cli.runs import (
    GRAPHS,
    add_run_options,
    arguments_of,
    check_formats,
    explain,
    say_edges,
    write_edges,
    write_graph,
)

FORMATS = (".html", ".csv", *GRAPHS)


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Learn a network from each of many tables whose rows are drawn with replacement, and "
        "print the share of them that have an edge. Graph files hold the averaged graph."
    )
    add_run_options(
        command, FORMATS, partial(missing_names, "ExpectationMaximisation", "StructuralEM")
    )
    command.add_argument("--search", type=table_search_from, help="search algorithm, as for learn")
    command.add_argument(
        "--replicates", type=at_least(1), default=200, help="number of tables; by default 200"
    )
    command.add_argument(
        "--jobs", type=int, default=-1, help="number of threads; by default one per core"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Learn the networks, write the requested files and print the shares."""
    check_formats(options.output, FORMATS)
    arguments = arguments_of(options)
    file = opened(options)
    if options.explain:
        return explain(
            options,
            file,
            lambda problem: [
                *search_sentence(options, problem),
                f"It would be run on {options.replicates} tables of drawn rows.",
            ],
            search=options.search,
        )
    ensemble = ist.bootstrap(
        file.table,
        search=options.search,
        replicates=options.replicates,
        jobs=options.jobs,
        **arguments,
    )
    if not options.quiet:
        say(summary(ensemble))
        say("Share of the replicates with each edge (how stable it is, not how probable):")
    give(warnings=ensemble.notes, threshold=ensemble.threshold())
    shares = ensemble.edge_probabilities()
    say_edges(ensemble.nodes, shares, quiet=options.quiet, measure="share")
    return write_outputs(ensemble, options.output, write=_write, quiet=options.quiet)


def _write(ensemble: ist.Ensemble, path: Path) -> None:
    if path.suffix.lower() == ".html":
        write_report(ensemble, path)
    elif path.suffix.lower() == ".csv":
        write_edges(ensemble.nodes, ensemble.edge_probabilities(), path, "share")
    else:
        write_graph(ensemble.averaged_graph(), path)
