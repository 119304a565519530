"""Write the reference of the command line from its parser, so that it cannot be out of date."""

from __future__ import annotations

from typing import Any

from isthmus.cli.reference import reference_page

PAGE = "reference/command-line"


def _append(_: Any, name: str, source: list[str]) -> None:
    if name == PAGE:
        source[0] += "\n" + reference_page()


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", _append)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
