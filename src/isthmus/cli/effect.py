"""The subcommand `isthmus effect GRAPH FILE CAUSE EFFECT`: estimate an effect in a given graph."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import isthmus as ist
from isthmus.cli.inputs import (
    GRAPHS,
    GraphFile,
    add_table_options,
    kinds_of,
    missing_from,
    missing_names,
    opened,
    read_graph_file,
)
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, suggestion
from isthmus.errors import SchemaError, rounded

if TYPE_CHECKING:
    from isthmus.tables import Missing


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Estimate the total effect of one variable on another, from a table and a graph that is "
        "causal. For a solution, the answer is a range if the data do not determine it."
    )
    command.add_argument("graph", metavar="GRAPH", help=GRAPHS)
    add_table_options(command, partial(missing_names, "AvailableCases", "StructuralEM"))
    command.add_argument("cause", metavar="CAUSE", help="the variable that is changed")
    command.add_argument("effect", metavar="EFFECT", help="the variable that responds")
    command.add_argument(
        "--hidden",
        action="append",
        default=[],
        metavar="VARIABLE",
        help="a variable of the graph that was not observed; may be repeated",
    )
    command.add_argument(
        "--change",
        nargs=2,
        metavar=("FROM", "TO"),
        help="the levels of a discrete cause to compare; by default its two levels",
    )
    command.add_argument(
        "--outcome",
        metavar="LEVEL",
        help="the level of a discrete effect whose probability is asked for; by default the second",
    )
    command.add_argument(
        "--clusters",
        metavar="COLUMN",
        help="a column whose rows with the same value depend on each other, for the standard error",
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Print the effect and how it was estimated."""
    graph, table = _graph(read_graph_file(options.graph)), opened(options).table
    options.missing = options.missing or _missing_of(graph)
    kinds = kinds_of(options)
    change, outcome = options.change, options.outcome
    if change or outcome:
        levels = _levels(table, graph, kinds, options)
        change = change and [_level(options.cause, text, levels) for text in change]
        outcome = outcome and _level(options.effect, outcome, levels)
    estimate = ist.effect(
        table,
        graph,
        options.cause,
        options.effect,
        hidden=options.hidden,
        change=change,
        outcome=outcome,
        kinds=kinds,
        missing=options.missing,
        groups=options.groups,
        clusters=options.clusters,
    )
    low, high = estimate.interval()
    say(str(estimate))
    if estimate.identified and estimate.zero is None and estimate.has_path:
        say(f"95% interval from {rounded(low, 4)} to {rounded(high, 4)}")
    first = estimate.alternatives[0] if estimate.identified else None
    give(
        identified=estimate.identified,
        value=estimate.value,
        standard_error=estimate.standard_error,
        interval=[low, high],
        possible=estimate.possible,
        method=None if first is None else first.method.value,
        adjustment=estimate.adjustment,
        through=() if first is None else first.through,
    )
    return ExitCode.DONE


def _graph(file: GraphFile) -> Any:
    """Return the equivalence class if the file has one, since not all directions are causal."""
    content = file.content
    if isinstance(content, ist.Solution):
        return content
    known = getattr(content, "cpdag", None)
    return file.graph if known is None or callable(known) else known


def _missing_of(graph: object) -> Missing | None:
    """Return how a solution handled missing values; None if it has none, or does not say."""
    code = graph.provenance.code if isinstance(graph, ist.Solution) else ""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.keyword) and node.arg == "missing":
            return missing_from(ast.unparse(node.value))
    return None


def _levels(
    table: object, graph: Any, kinds: Mapping[str, Any] | None, options: argparse.Namespace
) -> dict[str, tuple[Any, ...]]:
    """Return the levels of cause and effect."""
    from isthmus.verbs.arguments import as_read

    if isinstance(graph, ist.Solution):
        table, kinds = as_read(table, graph.reading, graph.dag.nodes, kinds)
    pair = (options.cause, options.effect)
    source = ist.tables.as_source(table, kinds=kinds, columns=pair, missing=options.missing)
    return {v.name: v.levels for v in source.schema().variables}


def _level(name: str, text: str, levels: dict[str, tuple[Any, ...]]) -> Any:
    named = {str(level).lower(): level for level in levels.get(name, ())}
    if named and text.lower() not in named:
        raise SchemaError(f"{name!r} is never {text!r}{suggestion(text, map(str, named.values()))}")
    return named.get(text.lower(), text)
