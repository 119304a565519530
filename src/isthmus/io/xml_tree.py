"""XML as a tree of elements; entities are refused, so that no file can expand or name others."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NoReturn, final
from xml.parsers import expat

from isthmus.errors import FormatError

_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
# XML parsers replace these characters unless they are escaped.
_ESCAPES |= {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


@final
@dataclass
class Element:
    """An element with its attributes, its text and the elements in it."""

    tag: str
    attributes: dict[str, str]
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, tag: str) -> list[Element]:
        """Return the children with a tag."""
        return [child for child in self.children if child.tag == tag]

    def one(self, tag: str) -> Element:
        """Return the first child with a tag; raise if there is none."""
        found = self.all(tag)
        if not found:
            raise FormatError(f"<{self.tag}> in line {self.line} has no <{tag}>.")
        return found[0]

    def attribute(self, name: str) -> str:
        """Return an attribute; raise if there is none."""
        if name not in self.attributes:
            raise FormatError(f"<{self.tag}> in line {self.line} has no attribute {name!r}.")
        return self.attributes[name]


def parse_xml(text: str, root: str) -> Element:
    """Return the root element of a text, which must have this tag.

    Document types are allowed, but no entities in them.
    """
    stack: list[Element] = []
    roots: list[Element] = []
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        # Without the prefix of a namespace.
        element = Element(tag.rpartition(":")[2], attributes, parser.CurrentLineNumber)
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(_: str) -> None:
        stack.pop()

    def characters(part: str) -> None:
        stack[-1].text += part

    def refuse(*_: object) -> NoReturn:
        raise FormatError("entities are not supported; remove <!ENTITY ...>.")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.EntityDeclHandler = refuse
    parser.ExternalEntityRefHandler = refuse
    try:
        parser.Parse(text.encode("utf-8"), True)  # noqa: FBT003 - the last part
    except expat.ExpatError as error:
        raise FormatError(f"Line {error.lineno} of the XML text: {error}.") from None
    except FormatError as error:
        raise FormatError(f"Line {parser.CurrentLineNumber} of the XML text: {error}") from None
    if roots[0].tag != root:
        raise FormatError(f"The XML text begins with <{roots[0].tag}>; <{root}> is needed.")
    return roots[0]


def escape_xml(text: str) -> str:
    """Return text that is safe between tags and in attributes."""
    if _ILLEGAL.search(text):
        raise FormatError(f"{text!r} contains characters not allowed in XML; rename it.")
    return "".join(_ESCAPES.get(letter, letter) for letter in text)
