"""Connect the pages of public names with the pages that use them, in both directions.

Every public name has a page of its own in ``reference/names``. The first time that a section of
another page has such a name in inline code, it becomes a link; and the page of a name lists the
tutorials and guides whose code uses it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import isthmus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sphinx.application import Sphinx

PLACE = "reference/names/"
SECTIONS = ("tutorials", "how-to", "explanation", "papers")
LISTS = re.compile(
    r"^\.\. currentmodule:: (\S+)\n\.\. autosummary::\n(?:   :.*\n)*\n((?:   .*\n)+)", re.M
)
PROMISES = re.compile(r"^\| `(isthmus\.\w+)` \| (.+) \|$", re.M)
CODE = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
IMPORTS = re.compile(r"from isthmus\.?([\w.]*) import ([\w, ]+)")
ATTRIBUTES = re.compile(r"\b(\w+)\.(\w+)\b")


def listed_names(folder: Path) -> list[str]:
    """Return all public names that the reference lists, with their modules."""
    return [
        f"{module}.{name.strip()}"
        for page in sorted(folder.glob("*.md"))
        for module, names in LISTS.findall(page.read_text(encoding="utf-8"))
        for name in names.splitlines()
    ]


def spellings(full: str) -> Iterator[str]:
    """Yield how code refers to a public name, such as ``scores.BIC`` and ``ist.BIC``."""
    module, _, name = full.rpartition(".")
    if module != "isthmus":
        yield f"{module.rpartition('.')[2]}.{name}"
    if module == "isthmus" or (name in isthmus.__all__ and name[:1].isupper()):
        yield f"ist.{name}"


def names_in_code(text: str) -> set[str]:
    """Return the names that the snippets of a page use, spelled as `spellings` does."""
    code = "\n".join(CODE.findall(text))
    found = {f"{owner}.{name}" for owner, name in ATTRIBUTES.findall(code)}
    for module, names in IMPORTS.findall(code):
        owner = module.rpartition(".")[2] or "ist"
        found |= {f"{owner}.{name.strip()}" for name in names.split(",")}
    return found


def promised_names(docs: Path) -> set[str]:
    """Return the names outside the package itself that the page on versions promises, in full."""
    page = (docs / "explanation" / "stability.md").read_text(encoding="utf-8")
    return {
        f"{module}.{name}"
        for module, names in PROMISES.findall(page)
        for name in re.findall(r"`(\w+)`", names)
    }


def is_promised(full: str, promised: set[str]) -> bool:
    """Return whether a documented name is one of the package itself, or promised otherwise."""
    return full in promised or full.rpartition(".")[2] in isthmus.__all__


class Names:
    """The public names: where each is documented, and which pages use it."""

    def __init__(self, docs: Path) -> None:
        self.places: dict[str, str] = {}
        for full in listed_names(docs / "reference"):
            for spelling in spellings(full):
                self.places[spelling] = full
            # A class may be named alone; a function only as part of the package or as a call.
            if full.rpartition(".")[2][:1].isupper():
                self.places.setdefault(full.rpartition(".")[2], full)
        self.users: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for file in (file for section in SECTIONS for file in (docs / section).glob("*.md")):
            text = file.read_text(encoding="utf-8")
            title = re.search(r"^# (.+)$", text, re.M)
            for name in names_in_code(text) & self.places.keys():
                page = f"{file.parent.name}/{file.stem}"
                self.users[self.places[name]].add((page, title[1] if title else page))

    def find(self, code: str) -> str | None:
        """Return the full name that inline code stands for, if it is a public one."""
        match = re.fullmatch(r"(?:(ist|isthmus)\.)?([\w.]+?)(\(.*\))?", code, re.S)
        if match is None:
            return None
        package, name, call = match.groups()
        own = f"ist.{name}" if package or call else name
        return self.places.get(own) or self.places.get(name)


@cache
def names_of(docs: Path) -> Names:
    """Return the public names in the reference of these pages."""
    return Names(docs)


def _mark_provisional(app: Sphinx, page: str, source: list[str]) -> None:
    full = page.removeprefix(PLACE)
    if page.startswith(PLACE) and not is_promised(full, promised_names(Path(app.srcdir))):
        source[0] += (
            "\n.. note:: This name is provisional: a minor version may change it. See "
            ":doc:`Versions and deprecations </explanation/stability>`.\n"
        )


def _list_users(app: Sphinx, page: str, source: list[str]) -> None:
    users = names_of(Path(app.srcdir)).users.get(page.removeprefix(PLACE))
    if page.startswith(PLACE) and users:
        lines = "".join(f"* :doc:`{title} </{user}>`\n" for user, title in sorted(users))
        source[0] += f"\n.. rubric:: Used in\n\n{lines}"


class LinkNames(SphinxTransform):
    """Make links of public names in inline code, once in each section."""

    default_priority = 500

    def apply(self, **_: Any) -> None:
        """Wrap each name in a reference to its page."""
        if self.env.docname.startswith(PLACE):
            return
        names = names_of(Path(self.env.srcdir))
        seen = set()
        for literal in list(self.document.findall(nodes.literal)):
            full = names.find(literal.astext())
            section = self._enclosing(literal, nodes.section)
            if full is None or (id(section), full) in seen:
                continue
            if self._enclosing(literal, nodes.title, nodes.reference, addnodes.pending_xref):
                continue
            seen.add((id(section), full))
            link = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=full)
            link["refexplicit"] = link["refwarn"] = True
            link["refdoc"] = self.env.docname
            literal.replace_self(link)
            link += literal

    @staticmethod
    def _enclosing(node: nodes.Node, *kinds: type[nodes.Node]) -> nodes.Node | None:
        outer: nodes.Node | None = node.parent
        while outer is not None and not isinstance(outer, kinds):
            outer = outer.parent
        return outer


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", _mark_provisional)
    app.connect("source-read", _list_users)
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
