"""Write the reference of the command line from its parser, so that it cannot be out of date."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.cli.app import reference_pages

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _write(app: Sphinx) -> None:
    folder = Path(app.srcdir, "reference", "commands")
    folder.mkdir(exist_ok=True)
    for command, text in reference_pages().items():
        page = folder / f"{command}.md"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
