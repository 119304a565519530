"""The subcommand `isthmus learn FILE`: learn a network from a table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import isthmus as ist
from isthmus.cli.inputs import (
    StrategyOption,
    add_arrangement_options,
    arranged,
    needs_lags,
    opened,
    search_from,
    search_names,
)
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, sentence_of
from isthmus.cli.result_files import (
    PAG_WRITERS,
    WRITERS,
    check_outputs,
    described_solution,
    write_outputs,
    write_result,
)
from isthmus.cli.runs import add_run_options, arguments_of, explain
from isthmus.errors import ArgumentError, MismatchError

if TYPE_CHECKING:
    from isthmus.verbs.prepare import Problem


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Learn a network from a table. Give the options of scores and search algorithms in "
        "parentheses: --score 'BDeu(ess=10)'."
    )
    add_run_options(command, list(WRITERS | PAG_WRITERS))
    command.add_argument(
        "--search",
        action=StrategyOption,
        names=search_names,
        type=search_from,
        help="search algorithm; by default chosen from the column types and their number: "
        "%(names)s",
    )
    add_arrangement_options(command)
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Learn, write the requested files and print a summary."""
    check_outputs(options.output, options.search)
    if options.lags is None and needs_lags(options.search):
        name = type(options.search).__name__
        raise ArgumentError(f"{name} is for time series: add --lags NUMBER, and --time COLUMN.")
    file = arranged(options, opened(options))
    arguments = arguments_of(options, file.table)
    if options.explain:
        return explain(
            options,
            file,
            lambda p: search_sentence(options, p),
            search=options.search,
            pag=True,
        )
    solution = ist.learn(file.table, search=options.search, **arguments)
    if not options.quiet:
        say(described_solution(solution))
    give(file=list(file.description), **facts(solution))
    return write_outputs(solution, options.output, write=_write, quiet=options.quiet)


def _write(solution: ist.Solution | ist.PAGSolution, path: Path) -> None:
    """Write a result; a .isthmus file gets the parameters, so that it can be queried."""
    if path.suffix.lower() != ".isthmus" or isinstance(solution, ist.PAGSolution):
        write_result(solution, path)
        return
    try:
        solution.save(path, parameters=True)
    except MismatchError as refusal:
        say(f"The .isthmus file has no parameters. {sentence_of(refusal)}")
        solution.save(path)


def search_sentence(options: argparse.Namespace, problem: Problem) -> Sequence[str]:
    """Say which search would be used."""
    from isthmus.options import described
    from isthmus.verbs.defaults import choose_search

    search, reason = options.search, "as requested"
    if search is None:
        search, reason = choose_search(problem.schema, problem.objective)
    return [f"Search {described(search)} ({reason})."]


def facts(solution: ist.Solution | ist.PAGSolution) -> dict[str, Any]:
    """Return a solution as plain data."""
    graph: dict[str, Any]
    if isinstance(solution, ist.PAGSolution):
        graph = {"nodes": solution.pag.nodes, "edges": solution.pag.edges}
    else:
        graph = {
            "nodes": solution.dag.nodes,
            "edges": solution.dag.edges,
            "directed": [e for e in solution.dag.edges if e not in solution.directions.open],
            "undirected": solution.directions.open,
            "directions": solution.directions.to_list(),
            "equivalent": solution.equivalent,
            "score": solution.score,
            "sense": solution.sense,
        }
    return graph | {
        "choice": solution.choice,
        "status": asdict(solution.status),
        "reading": [asdict(column) for column in solution.reading],
    }
