"""Options of commands that read a table, and the table that they describe."""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import isthmus as ist
from isthmus.cli.output import name_table
from isthmus.cli.parsing import at_least, one_of, suggestion
from isthmus.cli.strategies import StrategyOption, missing_from, missing_names
from isthmus.errors import ArgumentError, FormatError, SchemaError
from isthmus.sources.tables.read_table import ENDINGS, TableFile, open_table
from isthmus.sources.tables.text_files import TextFormat

# Names for help texts, which must not import the library: a test compares them.
KINDS = ("continuous", "discrete")
UNITS = ("seconds", "minutes", "hours", "days", "weeks", "years")


def add_table_options(
    command: argparse.ArgumentParser, missing: Callable[[], list[str]] = missing_names
) -> None:
    """Add the table, and options that say how to read it; `missing` names strategies."""
    command.add_argument(
        "file",
        metavar="FILE",
        help=f"file with the table ({', '.join(ENDINGS)}), or the URL of a database",
    )
    reading = command.add_argument_group("how to read the table")
    reading.add_argument(
        "--table", metavar="NAME", help="table of a database, or sheet of a workbook"
    )
    reading.add_argument("--separator", help="character between cells; by default recognised")
    reading.add_argument("--decimal", help="decimal mark, '.' or ','; by default recognised")
    reading.add_argument("--encoding", help="such as utf-8 or cp1252; by default recognised")
    reading.add_argument(
        "--na",
        action="append",
        metavar="MARK",
        help="cells with this text are missing; may be repeated; by default empty cells, NA, ? "
        "and the like",
    )
    reading.add_argument(
        "--no-header", action="store_true", help="the first line is data and not names"
    )
    reading.add_argument(
        "--skip-rows",
        type=at_least(0),
        default=0,
        metavar="NUMBER",
        help="rows above the names of the columns, such as titles; by default 0",
    )
    for kind in KINDS:
        reading.add_argument(
            f"--{kind}",
            action="append",
            default=[],
            metavar="COLUMN",
            help=f"read this column as {kind}; may be repeated",
        )
    reading.add_argument(
        "--dates",
        action="append",
        nargs=2,
        default=[],
        metavar=("COLUMN", "UNIT"),
        help=f"read a column of dates as a number, in {', '.join(UNITS)}; may be repeated",
    )
    reading.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="COLUMN",
        help="ignore this column; may be repeated",
    )
    reading.add_argument(
        "--missing",
        action=StrategyOption,
        names=missing,
        type=missing_from,
        metavar="METHOD",
        help="what to do about missing values, which are refused by default: %(names)s",
    )
    reading.add_argument(
        "--groups",
        metavar="COLUMN",
        help="column that says to which site, clinic or batch a row belongs; the mean of each "
        "group is removed",
    )


def add_knowledge_options(command: argparse.ArgumentParser) -> None:
    """Add options for background knowledge."""
    group = command.add_argument_group("background knowledge")
    group.add_argument(
        "--knowledge",
        metavar="FILE",
        help="TOML or JSON file with required, forbidden, tiers, roots, probabilities and "
        "expected_parents; the options below are added to it",
    )
    for name, meaning in (("required", "must"), ("forbidden", "must not")):
        group.add_argument(
            f"--{name}",
            action="append",
            nargs=2,
            default=[],
            metavar=("FROM", "TO"),
            help=f"an edge that {meaning} be in the graph; may be repeated",
        )
    group.add_argument(
        "--tier",
        action="append",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="columns of one tier; repeat for later tiers, which do not affect earlier ones",
    )


def add_arrangement_options(command: argparse.ArgumentParser) -> None:
    """Add options for rows of experiments, and for rows of a time series."""
    group = command.add_argument_group("interventions and time series")
    group.add_argument(
        "--interventions",
        metavar="COLUMN",
        help="the column that names the regime of each row, such as the experiment",
    )
    group.add_argument(
        "--targets",
        action="append",
        nargs="+",
        default=[],
        metavar=("REGIME", "VARIABLE"),
        help="a value of that column, and the variables that were set in its rows; may be "
        "repeated; rows of other regimes are observations",
    )
    group.add_argument(
        "--lags",
        type=at_least(1),
        metavar="NUMBER",
        help="the rows are a time series: learn how they depend on this many earlier rows",
    )
    group.add_argument("--time", metavar="COLUMN", help="column of times of a series, to sort by")
    group.add_argument("--by", metavar="COLUMN", help="column that tells several series apart")


def arranged(options: argparse.Namespace, file: TableFile) -> TableFile:
    """Return the table as rows of several regimes, or of time series, if options say so."""
    for name, needed in (("targets", "interventions"), ("time", "lags"), ("by", "lags")):
        if getattr(options, name) and getattr(options, needed) is None:
            raise ArgumentError(f"--{name} needs --{needed}.")
    if options.interventions is None and options.lags is None:
        return file
    if options.interventions is not None and options.lags is not None:
        raise ArgumentError("Give --interventions or --lags; there are no series of regimes.")
    for name in ("missing", "transform", "groups"):
        if getattr(options, name) is not None:
            raise ArgumentError(f"--{name} is for tables without --interventions and --lags.")
    kinds, column = kinds_of(options), options.interventions
    if column is None:
        series = ist.Series(
            file.table, lags=options.lags, by=options.by, time=options.time, kinds=kinds
        )
        return replace(file, table=series)
    import numpy as np

    from isthmus.sources.tables.series import numpy_columns

    if not options.targets:
        raise ArgumentError(
            "--interventions needs --targets, which say for each regime of an experiment what was "
            "set in its rows: --targets REGIME VARIABLE. Without them, all rows are observations."
        )
    regimes = numpy_columns(file.table)
    labels = np.unique(regimes[column]).tolist() if column in regimes else []
    named = {str(label): label for label in labels}
    targets: dict[Any, list[str]] = {label: [] for label in labels}
    for regime, *variables in options.targets:
        if labels and regime not in named:
            raise SchemaError(f"{column!r} is never {regime!r}{suggestion(regime, named)}")
        targets.setdefault(named.get(regime, regime), []).extend(variables)
    return replace(file, table=ist.Interventions(file.table, targets, column=column, kinds=kinds))


def opened(options: argparse.Namespace) -> TableFile:
    """Open the table that the options describe."""
    name_table(options.file)
    given = TextFormat(
        separator={"tab": "\t", "\\t": "\t"}.get(options.separator, options.separator),
        decimal=options.decimal,
        encoding=options.encoding,
        missing=None if options.na is None else tuple(options.na),
        header=not options.no_header,
        skip_rows=options.skip_rows,
    )
    return open_table(
        options.file,
        drop=options.drop,
        text_format=given,
        table=options.table,
    )


def kinds_of(options: argparse.Namespace) -> dict[str, Any] | None:
    """Return how the user wants some columns to be read."""
    both = sorted(set(options.continuous) & set(options.discrete))
    if both:
        raise SchemaError(f"The columns {both} were given as both continuous and discrete.")
    kinds: dict[str, Any] = {n: ist.Kind(kind) for kind in KINDS for n in getattr(options, kind)}
    unit = one_of(UNITS)
    try:
        return (kinds | {name: ist.TimeUnit(unit(given)) for name, given in options.dates}) or None
    except argparse.ArgumentTypeError as error:
        raise SchemaError(f"--dates: {error}") from None


def knowledge_of(options: argparse.Namespace) -> ist.Knowledge | None:
    """Return the background knowledge of the options, or None."""
    written = {} if options.knowledge is None else _read_knowledge(Path(options.knowledge))
    knowledge = ist.Knowledge(
        required=[*written.get("required", ()), *((a, b) for a, b in options.required)],
        forbidden=[*written.get("forbidden", ()), *((a, b) for a, b in options.forbidden)],
        tiers=[*written.get("tiers", ()), *options.tier],
        roots=written.get("roots", ()),
        probabilities=written.get("probabilities", ()),
        expected_parents=written.get("expected_parents"),
    )
    return None if knowledge == ist.Knowledge() else knowledge


def _read_knowledge(path: Path) -> dict[str, Any]:
    """Read background knowledge from a file."""
    with path.open("rb") as stream:
        try:
            content = json.load(stream) if path.suffix == ".json" else tomllib.load(stream)
        except ValueError as error:
            raise FormatError(f"{path} is neither TOML nor, as .json, JSON: {error}") from None
    keys = ("required", "forbidden", "tiers", "roots", "probabilities", "expected_parents")
    unknown = [key for key in content if key not in keys] if isinstance(content, dict) else [path]
    if unknown:
        raise FormatError(
            f"{path} has {unknown[0]!r}, and knowledge consists of {', '.join(keys)}. Write, for "
            'instance, forbidden = [["cancer", "smoking"]].'
        )
    return dict(content)
