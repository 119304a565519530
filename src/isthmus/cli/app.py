"""The command `isthmus`. Each subcommand is a module of this package with a function `add`."""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

from isthmus.cli.output import Output, begin, discard_output, harmless
from isthmus.cli.parsing import ExitCode, Parser, UsageError, code_of, in_options, sentence_of
from isthmus.cli.schemas import FACTS, document_schema
from isthmus.errors import IsthmusError, IsthmusWarning, MissingExtraError, NotesWarning

EXAMPLES = {
    "datasets list": "isthmus datasets list",
    "datasets write": "isthmus datasets write asia -o patients.csv",
    "learn": "isthmus learn patients.csv -o network.html -o network.bif",
    "sample": "isthmus sample patients.csv --draws 100 -o edges.csv",
    "bootstrap": "isthmus bootstrap patients.csv --replicates 20 -o stability.csv",
    "compare": "isthmus compare network.bif dataset:asia",
    "fit": "isthmus fit network.bif patients.csv -o fitted.json",
    "query": "isthmus query fitted.json --target lung --given xray=yes --do smoke=no",
    "validate": "isthmus validate patients.csv network.bif",
    "effect": "isthmus effect network.bif patients.csv smoke lung --change no yes --outcome yes",
    "simulate": "isthmus simulate fitted.json --rows 500 -o simulated.csv",
    "completion": "isthmus completion bash",
}


COMMANDS = {
    "learn": "learn a network from a table",
    "sample": "draw networks from their posterior distribution",
    "bootstrap": "learn from resampled rows: how stable each edge is",
    "compare": "compare a graph with another one",
    "fit": "estimate the parameters of a given graph",
    "query": "query a network: distributions given observations or interventions",
    "validate": "test whether a table agrees with a graph",
    "effect": "estimate the effect of a variable on another in a given graph",
    "simulate": "draw a table from a network, or from a random one",
    "datasets": "list the built-in datasets, or write one to a file",
    "completion": "print a script that completes commands and options in your shell",
}
"""Modules of the subcommands, and their lines in the help.

A module has a function `add` that describes the command to a `Parser`, and sets ``run`` of each
leaf: a function from options to an exit code. Only the module of the given command is imported.
"""

JOINT_COMMANDS = {
    "study": "describe, read, check and sign a study of several parties",
    "coordinator": "coordinate a federation",
    "site": "take part in a federation",
    "party": "learn with another party that holds other columns of the same people",
    "ledger": "verify and print what has left a site or a party",
    "synthesise": "write synthetic rows of a table, with differential privacy",
}
"""Commands of the distribution isthmus-joint, which the help lists where it is not installed."""

GROUP = "isthmus.commands"
"""Entry points by which other distributions offer commands: a name, and a module as above. The
module may have ``MEANING``, its line in the help, and ``EXAMPLES`` like those here, and the schemas
of its answers are in the module ``schemas`` beside it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    output = begin(given)
    name, error = " ".join(given[:1]), None
    try:
        options = parser(given).parse_args(given)
        name = options.leaf.prog.removeprefix("isthmus ")
        _keep_inputs(options)
        with warnings.catch_warnings():
            warnings.simplefilter("always", IsthmusWarning)
            warnings.showwarning = partial(_note, output)
            code: ExitCode = options.run(options)
    except KeyboardInterrupt:
        code, error = ExitCode.INTERRUPTED, "Interrupted before there was a result."
    except BrokenPipeError:
        code = ExitCode.DONE  # whoever read the output has seen enough
    except (IsthmusError, OSError, MemoryError) as failure:
        code, error = code_of(failure), sentence_of(failure)
    return _finish(output, name, code, error)


def _note(output: Output, message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning; of one that counts the notes of a result, the notes."""
    for text in message.notes if isinstance(message, NotesWarning) else (str(message),):
        output.note(in_options(text))


def parser(arguments: Sequence[str] | None = None) -> Parser:
    """Return the parser of the command line.

    Parameters
    ----------
    arguments
        If given, only the options of the subcommand that they name are described.
    """
    root = Parser(
        prog="isthmus",
        description="Learn Bayesian networks from one table, or from data that must stay where "
        "they are.",
        epilog="Every command has its own help with an example: isthmus learn --help",
    )
    root.add_argument("--version", action="version", version=f"isthmus {version('isthmus')}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    named = next((a for a in arguments or () if not a.startswith("-")), None)
    for name, meaning in (COMMANDS | JOINT_COMMANDS).items():
        command: Parser = commands.add_parser(name, help=meaning)
        if arguments is None or name == named:
            _describe(name, command)
    if arguments is None or named not in COMMANDS | JOINT_COMMANDS:
        for point in entry_points(group=GROUP):
            if point.name not in COMMANDS | JOINT_COMMANDS:
                meaning = f"a command of {point.module.partition('.')[0]}"
                _describe(point.name, commands.add_parser(point.name, help=meaning))
    return root


def _describe(name: str, command: Parser) -> None:
    """Import the module of a command, and let it describe its arguments."""
    module: Any = import_module(f"isthmus.cli.{name}") if name in COMMANDS else _module(name)
    if module is None:
        command.set_defaults(leaf=command, run=partial(_not_installed, name), json=False)
        command.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
        return
    module.add(command)
    examples = EXAMPLES | getattr(import_module(module.__package__), "EXAMPLES", {})
    for leaf in leaves(command):
        _complete(leaf, examples)


def _module(name: str) -> Any:
    """Return the module of a command of another distribution, if that is installed."""
    return next((point.load() for point in entry_points(group=GROUP, name=name)), None)


def _not_installed(name: str, _: argparse.Namespace) -> ExitCode:
    raise MissingExtraError("isthmus_joint", "horizontal", f"The command {name}")


def leaves(command: Parser) -> Iterator[Parser]:
    """Yield the parsers of a command that have no subcommands."""
    below = [a for a in command._actions if isinstance(a, argparse._SubParsersAction)]  # noqa: SLF001
    if not below:
        yield command
    for actions in below:
        for each in actions.choices.values():
            yield from leaves(each)


def _complete(leaf: Parser, examples: Mapping[str, str]) -> None:
    """Add what all commands have: an example in the help, JSON and its schema."""
    leaf.add_argument(
        "--json", action="store_true", help="print one JSON document to standard output"
    )
    leaf.add_argument(
        "--json-schema", action=_PrintSchema, help="print the JSON schema of that document"
    )
    leaf.set_defaults(leaf=leaf)
    example = examples.get(leaf.prog.removeprefix("isthmus "), "")
    leaf.example = example
    if leaf.epilog:
        leaf.description = f"{leaf.description} {leaf.epilog}"
    leaf.epilog = f"example:\n  {example}"


class _PrintSchema(argparse.Action):
    """Prints what `--json` prints, and ends the command as `--help` does."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, argparse.SUPPRESS, nargs=0, **options)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any, **__: Any) -> NoReturn:
        name = parser.prog.removeprefix("isthmus ")
        schema = document_schema(name, facts_of(name))
        sys.stdout.write(json.dumps(schema, indent=1) + "\n")
        parser.exit()


def facts_of(name: str) -> Mapping[str, Any]:
    """Return the schemas of what a command adds to its document."""
    if name in FACTS:
        return FACTS[name]
    module = _module(name.partition(" ")[0])
    if module is None or find_spec(f"{module.__package__}.schemas") is None:
        raise MissingExtraError("isthmus_joint", "horizontal", f"The command {name}")
    theirs: Any = import_module(f"{module.__package__}.schemas").FACTS
    facts: Mapping[str, Any] = theirs.get(name, {})
    return facts


def _keep_inputs(options: argparse.Namespace) -> None:
    """Raise an error if an output would replace a file that the command reads."""
    given = vars(options)
    outputs = [path for name in ("output", "truth") for path in _paths(given.get(name))]
    inputs = [p for name in given.keys() - {"output", "truth"} for p in _paths(given[name])]
    for path in outputs:
        if _is_file(path) and any(path.samefile(each) for each in inputs if _is_file(each)):
            raise UsageError(
                f"The output {str(path)!r} is a file that the command reads, and would replace it. "
                "Give the output another name."
            )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # too long for a name, as the URL of a database may be
        return False


def _paths(value: Any) -> list[Path]:
    if isinstance(value, list | tuple):
        return [path for each in value for path in _paths(each)]
    return [Path(value)] if isinstance(value, str | Path) and "\0" not in str(value) else []


def _finish(output: Output, command: str, code: ExitCode, error: str | None) -> int:
    if error is not None:
        kind = code.name.lower().replace("_", " ")
        sys.stderr.write(f"isthmus: error {int(code)} ({kind}): {harmless(error)}\n")
    try:
        output.finish(command, int(code), error)
    except OSError as failure:
        code = ExitCode.FILE
        sys.stderr.write(f"isthmus: error {int(code)} (file): {sentence_of(failure)}\n")
    discard_output()
    return int(code)


# --- The reference of the command line, from which the documentation is built -------------------


def reference_pages() -> dict[str, str]:
    """Return a page in Markdown for each command, with its subcommands and all arguments."""
    pages: dict[str, list[str]] = {}
    for leaf in leaves(parser()):
        _, command, *subcommand = leaf.prog.split()
        page = pages.setdefault(command, [f"# isthmus {command}", ""])
        if subcommand:
            page += [f"## isthmus {command} {' '.join(subcommand)}", ""]
        page += _command(leaf)
    return {command: "\n".join(lines) + "\n" for command, lines in pages.items()}


def _command(leaf: Parser) -> Iterator[str]:
    description = (leaf.description or "").strip()
    sentence = description[:1].upper() + description[1:].rstrip(".")
    yield from (f"{_plain(sentence)}.", "")
    yield from ("```text", leaf.example, "```", "")
    yield from ("| argument | meaning |", "| --- | --- |")
    for action in leaf._actions:  # noqa: SLF001 - argparse has no public list of its arguments
        if not isinstance(action, argparse._HelpAction) and action.help != argparse.SUPPRESS:  # noqa: SLF001
            yield f"| {_name(action)} | {_plain((action.help or '') % vars(action))} |"
    yield ""


def _name(action: argparse.Action) -> str:
    metavar = action.metavar or action.dest.upper()
    values = " ".join(metavar) if isinstance(metavar, tuple) else str(metavar)
    if not action.option_strings:
        return f"`{values}`"
    shown = ", ".join(f"`{option}`" for option in action.option_strings)
    if action.nargs == 0:
        return shown
    required = " (required)" if action.required else ""
    return f"{shown} `{values}`{required}"


def _plain(text: str) -> str:
    """Return a text that Markdown does not change, with the options in it as code."""
    for mark in ("\\", "*", "_", "<", "|", "["):
        text = text.replace(mark, f"\\{mark}")
    return re.sub(r"(?<![\w-])(--[a-z][a-z-]*)", r"`\1`", text)
