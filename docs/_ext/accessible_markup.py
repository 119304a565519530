"""Write what screen readers would say wrongly in another way.

The empty corner of a table is a plain cell, since a heading without text says nothing. The
parameters of a long signature are a list, since they are no definitions of terms.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

EMPTY = re.compile(r"<th([^>]*)>\s*(?:<p>\s*</p>)?\s*</th>")
PARAMETERS = re.compile(r'(<span class="sig-paren">\(</span>\s*)<dl>(.*?)</dl>', re.DOTALL)


def _as_list(match: re.Match[str]) -> str:
    items = match[2].replace("<dd>", "<li>").replace("</dd>", "</li>")
    return f'{match[1]}<ul class="parameters">{items}</ul>'


def _mend(_: Sphinx, __: str, ___: str, context: dict[str, Any], ____: Any) -> None:
    body = EMPTY.sub(r"<td\1></td>", context.get("body", ""))
    context["body"] = PARAMETERS.sub(_as_list, body)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("html-page-context", _mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
