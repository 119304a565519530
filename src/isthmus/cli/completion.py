"""The subcommand `isthmus completion SHELL`: completion of commands and options."""

from __future__ import annotations

import argparse

from isthmus.cli.output import give, say
from isthmus.cli.parsing import ExitCode, one_of
from isthmus.errors import MissingExtraError

SHELLS = ("bash", "zsh", "fish", "tcsh")


def add(command: argparse.ArgumentParser) -> None:
    """Describe the command."""
    command.description = (
        "Print a script that completes commands, options and file names. Load it when the shell "
        "starts: add the line 'source <(isthmus completion bash)' to ~/.bashrc, or write the "
        "output to a file in the folder of completions of your shell."
    )
    command.add_argument("shell", type=one_of(SHELLS), choices=SHELLS, help="name of the shell")
    command.set_defaults(run=run)


def run(options: argparse.Namespace) -> ExitCode:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        raise MissingExtraError("shtab", "cli", "Completion") from None
    from isthmus.cli.app import parser

    root = parser()
    script = shtab.complete(root, options.shell)
    give(script=script)
    say(script)
    return ExitCode.DONE
