"""The reference page of the command line, which the build of the documentation makes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from isthmus.cli.app import leaves, parser
from isthmus.cli.parsing import Parser


def reference_page() -> str:
    """Return all commands with their arguments, in Markdown."""
    parts = [part for leaf in leaves(parser()) for part in _command(leaf)]
    return "\n".join(parts) + "\n"


def _command(leaf: Parser) -> Iterator[str]:
    description = (leaf.description or "").strip()
    sentence = description[:1].upper() + description[1:].rstrip(".")
    yield from (f"## {leaf.prog}", "", f"{_plain(sentence)}.", "")
    yield from ("```text", leaf.example, "```", "")
    yield from ("| argument | meaning |", "| --- | --- |")
    for action in leaf._actions:  # noqa: SLF001 - argparse has no public list of its arguments
        if not isinstance(action, argparse._HelpAction) and action.help != argparse.SUPPRESS:  # noqa: SLF001
            yield f"| {_name(action)} | {_plain(action.help or '')} |"
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
    """Return a text that Markdown does not change."""
    for mark in ("\\", "*", "_", "<", "|", "["):
        text = text.replace(mark, f"\\{mark}")
    return text
