"""Names that people take for each other, although programs do not.

People confirm keys and sign studies by reading names. An organisation that appears twice under
names that look the same would count as two, and a stranger could pass for a peer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from isthmus.joint.agreement.roster import Member
from isthmus.joint.agreement.signatures import AUTHOR

ALPHABETS = ("LATIN", "CYRILLIC", "GREEK")
"""Alphabets that share the shapes of some letters."""

LIKE_LATIN = str.maketrans(
    "АВЕКМНОРСТУХЅІЈаеорсухѕіјԁһӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧοαν",
    "ABEKMHOPCTYXSIJaeopcyxsijdhlABEZHIKMNOPTYXoav",
)
"""Cyrillic and Greek letters, and the Latin letters that look the same."""


def skeleton(text: str) -> str:
    """Return a text without what people overlook: case, spaces, punctuation and alphabets."""
    plain = unicodedata.normalize("NFKC", text).translate(LIKE_LATIN).casefold()
    return "".join(c for c in plain if c.isalnum())


def name_problems(members: Iterable[Member]) -> list[str]:
    """Return a phrase for each name that people could misread."""
    given = list(members)
    names, organisations = [m.name for m in given], [m.organisation for m in given]
    problems = []
    for what, texts in (("site", names), ("organisation", organisations)):
        for text in dict.fromkeys(texts):
            if any(not c.isprintable() for c in text) or text != text.strip():
                problems.append(f"the {what} {text!a} has invisible characters")
            elif any(len(_alphabets(word)) > 1 for word in text.split()):
                problems.append(f"the {what} {text!r} mixes the letters of several alphabets")
        problems += _alike(what, texts)
    problems += [f"a site cannot be named {n!r}" for n in names if skeleton(n) == AUTHOR]
    return problems


def _alike(what: str, texts: Sequence[str]) -> list[str]:
    seen: dict[str, str] = {}
    problems = []
    for text in texts:
        first = seen.setdefault(skeleton(text) or text, text)
        if first != text:
            problems.append(
                f"the {what}s {first!r} and {text!r} look alike; write one in one way, and "
                "different ones differently"
            )
    return problems


def _alphabets(word: str) -> set[str]:
    kinds = (unicodedata.name(c, "").split(" ")[0] for c in word if c.isalpha())
    return {kind for kind in kinds if kind in ALPHABETS}


def printable(text: str) -> str:
    """Return a text as one line: a space for white space, � for whatever controls a terminal.

    A line break could forge a line of our own, and an escape sequence could hide one.
    """
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)
