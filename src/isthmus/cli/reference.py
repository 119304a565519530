"""The reference of the command line, from which the documentation is built."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

from isthmus.cli.app import leaves, parser
from isthmus.cli.parsing import Parser


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
