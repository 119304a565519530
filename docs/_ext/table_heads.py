"""Write the empty corner of a table as a plain cell: a heading without text says nothing aloud."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

EMPTY = re.compile(r"<th([^>]*)>\s*(?:<p>\s*</p>)?\s*</th>")


def _fill(_: Sphinx, __: str, ___: str, context: dict[str, Any], ____: Any) -> None:
    context["body"] = EMPTY.sub(r"<td\1></td>", context.get("body", ""))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("html-page-context", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
