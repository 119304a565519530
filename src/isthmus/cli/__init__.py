"""The command `isthmus`."""

from isthmus.cli.app import main
from isthmus.cli.exit_codes import ExitCode

__all__ = ["ExitCode", "main"]
