"""What `learn`, `sample` and `bootstrap` have in common: options, progress, and `--explain`."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import isthmus as ist
from isthmus.cli.inputs import (
    StrategyOption,
    add_knowledge_options,
    add_table_options,
    kinds_of,
    knowledge_of,
    missing_names,
    table_score_from,
    table_score_names,
    transform_from,
    transform_names,
)
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, add_output_option, at_least, seconds
from isthmus.errors import FormatError, NotesWarning, warn
from isthmus.tables.write_table import check_place

if TYPE_CHECKING:
    from isthmus.arrays import Floats
    from isthmus.tables.read_table import TableFile
    from isthmus.verbs.prepare import Problem
    from isthmus.watch import Progress

_FIRST, _INTERVAL = 2.0, 10.0
"""Seconds until the first line of progress where there is no terminal, and between lines."""


def add_run_options(
    command: argparse.ArgumentParser,
    formats: Sequence[str],
    missing: Callable[[], list[str]] = missing_names,
) -> None:
    """Add the options of all commands that learn from a table; `missing` names strategies."""
    add_table_options(command, missing)
    add_output_option(
        command,
        "write the result to this file; may be repeated. The extension tells the format: "
        + ", ".join(formats),
    )
    command.add_argument(
        "--score",
        action=StrategyOption,
        names=table_score_names,
        type=table_score_from,
        help="score to optimise; by default chosen from the column types: %(names)s",
    )
    command.add_argument(
        "--transform",
        action=StrategyOption,
        names=transform_names,
        type=transform_from,
        metavar="STEP",
        help="replace numbers before a graph is learned, by normal scores or by levels: %(names)s",
    )
    command.add_argument(
        "--seed", type=at_least(0), default=0, help="random seed; the same seed, the same result"
    )
    command.add_argument(
        "--time-limit",
        type=seconds,
        metavar="SECONDS",
        help="stop after this many seconds and return the best result so far",
    )
    command.add_argument(
        "--explain",
        action="store_true",
        help="print how the file and each column will be read and what will be done, and stop",
    )
    command.add_argument(
        "-q", "--quiet", action="store_true", help="print no progress and no summary"
    )
    add_knowledge_options(command)


def arguments_of(options: argparse.Namespace, table: object = None) -> dict[str, Any]:
    """Return the arguments that the functions of all these commands take.

    A source of regimes or of series was given the kinds of its columns before.
    """
    from isthmus.tables import Source

    return {
        "score": options.score,
        "knowledge": knowledge_of(options),
        "kinds": None if isinstance(table, Source) else kinds_of(options),
        "missing": options.missing,
        "groups": options.groups,
        "transform": options.transform,
        "seed": options.seed,
        "time_limit": options.time_limit,
        "progress": progress_of(options),
    }


def progress_of(options: argparse.Namespace) -> bool | Callable[[Progress], None] | None:
    """Return how progress is shown: a line that changes on a terminal, else one line at times."""
    if options.quiet:
        return False
    return None if sys.stderr.isatty() else _Lines()


class _Lines:
    """Writes a line of progress at times."""

    def __init__(self) -> None:
        self._next = _FIRST

    def __call__(self, state: Progress) -> None:
        """Write a line if the last one was long ago."""
        if state.seconds < self._next:
            return
        self._next = state.seconds + _INTERVAL
        done = "" if state.done is None else f", {state.done:.0%}"
        best = "" if math.isnan(state.score) else f", best {state.score:.8g}"
        line = f"{state.name}: {state.text}{best}{done}, {state.seconds:.0f} s"
        sys.stderr.write(f"{datetime.now():%H:%M:%S} {line}\n")
        sys.stderr.flush()


def explain(
    options: argparse.Namespace,
    file: TableFile,
    chosen: Callable[[Problem], Sequence[str]],
    **given: Any,
) -> ExitCode:
    """Print how the table is read and what would be done with it, without doing it.

    Parameters
    ----------
    options
        The options of the command.
    file
        The table.
    chosen
        Returns sentences about what would be done.
    **given
        Further arguments of `prepare`, such as the search.
    """
    from isthmus.options import described
    from isthmus.tables import as_source
    from isthmus.verbs.prepare import prepare

    arguments = arguments_of(options, file.table)
    kinds, missing, groups = (arguments[name] for name in ("kinds", "missing", "groups"))
    say(f"{options.file}")
    for line in file.description:
        say(f"  {line}")
    integers = None if options.score is None else options.score.kind
    reading = as_source(
        file.table, kinds=kinds, integers=integers, missing=missing, groups=groups
    ).reading()
    give(file=list(file.description), reading=[asdict(column) for column in reading])
    say(str(reading))
    problem = prepare(
        file.table,
        score=options.score,
        knowledge=arguments["knowledge"],
        kinds=kinds,
        missing=missing,
        groups=groups,
        transform=arguments["transform"],
        **given,
    )
    if problem.reading.cautions:
        warn(NotesWarning(problem.reading.cautions))
    sentences = [
        f"Score {described(problem.score)} ({problem.score_reason}).",
        *chosen(problem),
        *(f"Would write {path}." for path in options.output),
        "Nothing was learned: --explain was given.",
    ]
    for line in sentences:
        say(line)
    give(plan=sentences)
    return ExitCode.DONE


# --- Probabilities or shares of edges, printed and written by `sample` and `bootstrap` ----------

_SHOWN = 0.05
"""Edges with a smaller probability are not printed; files have them all."""

GRAPHS = (".dot", ".gml", ".graphml")
"""Extensions of files that the averaged graph is written to."""


def rows_of(nodes: Sequence[str], edges: Floats, least: float) -> list[tuple[str, str, float]]:
    """Return edges with their probabilities or shares, largest first."""
    places = zip(*(axis.tolist() for axis in (edges >= least).nonzero()), strict=True)
    rows = [(nodes[a], nodes[b], float(edges[a, b])) for a, b in places if a != b]
    return sorted(rows, key=lambda row: -row[2])


def say_edges(
    nodes: Sequence[str], edges: Floats, *, quiet: bool, measure: str = "probability"
) -> None:
    """Print the probable or stable edges, and add them to the JSON document."""
    rows = rows_of(nodes, edges, _SHOWN)
    give(nodes=list(nodes), edges=[{"from": a, "to": b, measure: p} for a, b, p in rows])
    if not quiet:
        for a, b, p in rows:
            say(f"{p:.3f}  {a} → {b}")


def write_edges(
    nodes: Sequence[str], edges: Floats, path: Path, measure: str = "probability"
) -> None:
    """Write the probabilities or shares of all edges that occurred."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("from", "to", measure))
        writer.writerows(rows_of(nodes, edges, math.ulp(0.0)))


def check_formats(paths: Sequence[Path], known: Sequence[str]) -> None:
    """Raise an error if a file has an unknown format or no folder."""
    for path in paths:
        if path.suffix.lower() not in known:
            raise FormatError(
                f"The format of {path.name!r} is unknown here. Give a name that ends in one of "
                f"{', '.join(known)}."
            )
        check_place(path)


def write_graph(graph: ist.DAG, path: Path) -> None:
    """Write a graph in the format of the file."""
    io = ist.io
    writers = {".dot": io.write_dot, ".gml": io.write_gml, ".graphml": io.write_graphml}
    writers[path.suffix.lower()](graph, path)
