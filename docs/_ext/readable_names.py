"""Let autodoc write signatures and constants as people would.

A default that only the class itself can make is shown as ``...``, arrays have the name that the
source gives them, and constants and aliases show the text below their definition.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MADE = re.compile(r"= <[^<>]*>")
ARRAY = re.compile(r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[([^\]]*)\]\]")


def _shorten(*event: Any) -> tuple[str | None, str | None]:
    *_, signature, result = event
    return _rewritten(signature), _rewritten(result)


def _rewritten(text: str | None) -> str | None:
    return text and ARRAY.sub(r"~numpy.typing.NDArray[\1]", MADE.sub("= ...", text))


def _text_below(package: str, name: str) -> list[str]:
    for module in [package, *sorted(sys.modules)]:
        if module == package or module.startswith(f"{package}."):
            try:
                docs = ModuleAnalyzer.for_module(module).find_attr_docs()
            except PycodeError:
                continue
            if ("", name) in docs:
                return docs["", name]
    return []


def _describe(_: Sphinx, what: str, name: str, __: Any, ___: Any, lines: list[str]) -> None:
    if what == "data":
        lines[:] = _text_below(*name.rsplit(".", 1)) or lines


def _forget_builtins(_: Sphinx, env: Any) -> None:
    # An alias of a built-in type has no source that could be shown.
    getattr(env, "_viewcode_modules", {}).pop("builtins", None)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("autodoc-process-signature", _shorten)
    app.connect("autodoc-process-docstring", _describe)
    app.connect("env-updated", _forget_builtins)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
