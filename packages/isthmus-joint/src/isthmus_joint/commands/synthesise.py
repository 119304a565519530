"""`isthmus synthesise`: synthetic rows of a table, with differential privacy."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, UsageError, at_least
from isthmus.tables.read_table import read_table
from isthmus.tables.write_table import check_written, write_table


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Write synthetic rows of a table, with differential privacy: they tell little about any "
        "single row, which must be one person. Each run costs epsilon again, and nothing keeps "
        "count. DATA is the table. The variables are described by 'isthmus study variables'."
    )
    command.add_argument("data", type=Path, metavar="DATA", help="file of the table")
    command.add_argument(
        "--variables",
        type=Path,
        required=True,
        metavar="FILE",
        help="the columns, with levels and bounds that are known without looking at the data",
    )
    command.add_argument("--epsilon", type=float, required=True, help="what the rows may cost")
    command.add_argument("--delta", type=float, default=1e-6, help="by default %(default)s")
    command.add_argument(
        "--whole",
        action="append",
        default=[],
        metavar="NAME",
        help="a column of numbers without decimals; may be repeated",
    )
    command.add_argument("--rows", type=at_least(1), help="by default about as many as DATA has")
    command.add_argument(
        "--bins", type=at_least(2), default=16, help="parts of the range of a number; by default 16"
    )
    command.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="table to write"
    )
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Make the rows, write them and print what may be said of them."""
    from isthmus.statistics import Kind
    from isthmus_joint import read_variables, synthesise

    check_written(options.output)
    schema, bounds = read_variables(options.variables)
    numbers = schema.of_kind(Kind.CONTINUOUS)
    if unknown := [name for name in options.whole if name not in numbers]:
        raise UsageError(
            f"--whole names {unknown}, which {options.variables} does not describe as numbers. "
            f"The numbers are {list(numbers)}."
        )
    made = synthesise(
        read_table(options.data, missing=("",)),
        options.epsilon,
        delta=options.delta,
        levels={n: schema[n].levels for n in schema.of_kind(Kind.DISCRETE)},
        bounds={n: _inside(*bounds[n]) if n in options.whole else bounds[n] for n in numbers},
        rows=options.rows,
        bins=options.bins,
    )
    write_table({name: made.columns[name] for name in schema.names}, options.output)
    say(str(made))
    pairs = [[*pair, *map(float, told)] for pair, told in made.fidelity.items()]
    give(epsilon=made.epsilon, delta=made.delta, fidelity=pairs, written=str(options.output))
    return ExitCode.DONE


def _inside(low: float, high: float) -> tuple[int, int]:
    """Return the whole numbers within bounds."""
    return math.ceil(low), math.floor(high)
