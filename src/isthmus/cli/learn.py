"""The subcommand `isthmus learn FILE`: learn a network from a table in a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from isthmus.cli.exit_codes import ExitCode
from isthmus.cli.output import say
from isthmus.cli.outputs import WRITERS, check_outputs, write_outputs
from isthmus.cli.strategies import (
    missing_from,
    names_of_missing,
    names_of_scores,
    names_of_searches,
    score_from,
    search_from,
)
from isthmus.compose.learn import learn
from isthmus.errors import SchemaError
from isthmus.graphs import Knowledge
from isthmus.sources.tables.read_table import read_table
from isthmus.statistics import Kind


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = "Learn a network from a table in a CSV, TSV or Parquet file."
    command.epilog = (
        f"Scores: {', '.join(names_of_scores())}. "
        f"Searches: {', '.join(names_of_searches())}. "
        "Give their options as in Python: --score 'BDeu(ess=10)'."
    )
    command.add_argument("file", type=Path, help="file with the table")
    command.add_argument(
        "-o",
        "--output",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="write the result to this file; may be repeated. The extension tells the format: "
        + ", ".join(WRITERS),
    )
    command.add_argument(
        "--score",
        type=score_from,
        help="score to optimise; by default chosen from the column types",
    )
    command.add_argument(
        "--search",
        type=search_from,
        help="search algorithm; by default chosen from the column types and their number",
    )
    command.add_argument(
        "--missing",
        type=missing_from,
        help="what to do about missing values, which are refused by default: "
        + ", ".join(names_of_missing()),
    )
    command.add_argument(
        "--seed", type=int, default=0, help="random seed; the same seed gives the same graph"
    )
    command.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="stop after this many seconds and return the best graph so far",
    )
    for kind in Kind:
        command.add_argument(
            f"--{kind}",
            action="append",
            default=[],
            metavar="COLUMN",
            help=f"read this column as {kind}; may be repeated",
        )
    command.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="COLUMN",
        help="ignore this column; may be repeated",
    )
    for name, meaning in (("required", "must"), ("forbidden", "must not")):
        command.add_argument(
            f"--{name}",
            action="append",
            nargs=2,
            default=[],
            metavar=("FROM", "TO"),
            help=f"an edge that {meaning} be in the graph; may be repeated",
        )
    command.add_argument(
        "-q", "--quiet", action="store_true", help="print no progress and no summary"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Learn, write the requested files and print a summary."""
    check_outputs(options.output)
    table = read_table(options.file, drop=options.drop)
    kinds = _kinds(options)
    constrained = options.required or options.forbidden
    knowledge = Knowledge(_pairs(options.required), _pairs(options.forbidden))
    solution = learn(
        table,
        score=options.score,
        search=options.search,
        knowledge=knowledge if constrained else None,
        kinds=kinds or None,
        missing=options.missing,
        seed=options.seed,
        time_limit=options.time_limit,
        progress=False if options.quiet else None,
    )
    if not options.quiet:
        say(f"{solution}")
        for a, b in solution.dag.edges:
            say(f"{a} → {b}")
    return write_outputs(solution, options.output, quiet=options.quiet)


def _kinds(options: argparse.Namespace) -> dict[str, Kind]:
    both = sorted(set(options.continuous) & set(options.discrete))
    if both:
        raise SchemaError(f"The columns {both} were given as both continuous and discrete.")
    return {name: kind for kind in Kind for name in getattr(options, kind.value)}


def _pairs(given: list[list[str]]) -> list[tuple[str, str]]:
    return [(a, b) for a, b in given]
