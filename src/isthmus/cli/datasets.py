"""The subcommand `isthmus datasets`: list the built-in datasets, and write one to a file."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

import isthmus as ist
from isthmus.cli.inputs import DATASETS
from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, add_output_option, at_least, match_name
from isthmus.cli.result_files import write_outputs
from isthmus.tables.write_table import WRITTEN, check_written, write_table


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = "Built-in datasets, for examples and first steps."
    actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
    meaning = "list the datasets"
    actions.add_parser("list", help=meaning, description=meaning).set_defaults(run=_list)
    meaning = "write a dataset to a file"
    write = actions.add_parser("write", help=meaning, description=meaning)
    write.add_argument(
        "name",
        metavar="NAME",
        type=lambda given: match_name(given, DATASETS),
        help=f"one of {', '.join(DATASETS)}",
    )
    add_output_option(
        write,
        f"file to write; may be repeated: {', '.join(WRITTEN)}",
        required=True,
    )
    write.add_argument("--rows", type=at_least(1), help="number of rows, if they are simulated")
    write.add_argument("--seed", type=at_least(0), help="random seed, if they are simulated")
    write.set_defaults(run=_write)


def _list(_: argparse.Namespace) -> ExitCode:
    lines = {name: (inspect.getdoc(_maker(name)) or "").partition("\n")[0] for name in DATASETS}
    give(datasets=lines)
    wide = max(map(len, lines))
    for name, line in lines.items():
        say(f"{name:<{wide}}  {line}")
    return ExitCode.DONE


def _write(options: argparse.Namespace) -> ExitCode:
    for path in options.output:
        check_written(path)
    given = {n: getattr(options, n) for n in ("rows", "seed") if getattr(options, n) is not None}
    make = _maker(options.name)
    known = inspect.signature(make).parameters
    data = make(**{name: value for name, value in given.items() if name in known})
    columns = {name: data[name] for name in data}
    give(name=options.name, columns=list(columns), description=data.description)
    say(f"{data!r}")
    return write_outputs(columns, options.output, write=write_table)


def _maker(name: str) -> Any:
    """Return the function that makes a dataset."""
    return getattr(ist.datasets, name)
