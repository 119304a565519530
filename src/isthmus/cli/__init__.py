"""The command `isthmus`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from isthmus.cli.output import prepare_streams
from isthmus.cli.parsing import ExitCode

__all__ = ["ExitCode", "main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments
        Arguments of the command; by default those that were typed.
    """
    prepare_streams()
    try:
        # Imported here, so that Ctrl-C also ends an import without a traceback.
        from isthmus.cli import app

        return app.main(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("isthmus: error 130 (interrupted): Interrupted.\n")
        return ExitCode.INTERRUPTED
