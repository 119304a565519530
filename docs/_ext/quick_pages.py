"""Let browsers show a page before they run its scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _defer(_: Sphinx, page: str, __: str, context: dict[str, Any], ___: Any) -> None:
    # The page of the search calls its scripts while it is read.
    if page != "search":
        for script in context["script_files"]:
            script.attributes.setdefault("defer", "defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    # After the theme and all extensions have added their scripts.
    app.connect("html-page-context", _defer, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
