"""Names that people take for each other, although programs do not.

People confirm keys and sign studies by reading names. An organisation that appears twice under
names that look the same would count as two, and a stranger could pass for a peer.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from isthmus.joint.agreement.confusables import PROTOTYPES
from isthmus.joint.agreement.roster import Member
from isthmus.joint.agreement.signatures import AUTHOR

ALPHABETS = ("LATIN", "CYRILLIC", "GREEK")
"""Alphabets that share the shapes of some letters."""

INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Python calls printable and nobody sees (Default_Ignorable_Code_Point)."""

ACCENTS = 200
"""Smallest combining class of marks above, below and beside a letter."""

OVERLAY = 1
"""Combining class of strokes through a letter."""


def without_marks(text: str) -> str:
    """Return a text in compatibility decomposition, without accents and strokes.

    Vowel signs and voiced sound marks of other scripts stay: they are letters of their own.
    """
    plain = unicodedata.normalize("NFKD", text)
    classes = ((c, unicodedata.combining(c)) for c in plain)
    return "".join(c for c, kind in classes if kind != OVERLAY and kind < ACCENTS)


def skeletons(text: str) -> set[str]:
    """Return what remains of a text if people overlook case, marks, spaces and alphabets.

    Letters are compared by their shapes, with the prototypes of UTS #39: as they are written, and
    in lower case. Two texts look alike if they have a skeleton in common.
    """
    written = without_marks(text).translate(PROTOTYPES)
    folded = (without_marks(form.casefold()).translate(PROTOTYPES) for form in (written, text))
    return {"".join(c for c in form.casefold() if _is_read(c)) for form in folded}


def _is_read(character: str) -> bool:
    return unicodedata.category(character)[0] in "LMN"  # letters, their marks, and numbers


def name_problems(members: Iterable[Member]) -> list[str]:
    """Return a phrase for each name that people could misread."""
    given = list(members)
    names, organisations = [m.name for m in given], [m.organisation for m in given]
    problems = []
    for what, texts in (("site", names), ("organisation", organisations)):
        for text in dict.fromkeys(texts):
            if not text.isprintable() or INVISIBLE.search(text) or text != text.strip():
                problems.append(f"the {what} {text!a} has invisible characters")
            elif any(len(_alphabets(word)) > 1 for word in text.split()):
                problems.append(f"the {what} {text!r} mixes the letters of several alphabets")
        problems += _alike(what, texts)
    problems += [f"a site cannot be named {n!r}" for n in names if AUTHOR in skeletons(n)]
    return problems


def _alike(what: str, texts: Sequence[str]) -> list[str]:
    seen: dict[str, str] = {}
    problems = []
    for text in texts:
        own = skeletons(text) - {""} or {text}
        first = next((seen[s] for s in own if s in seen), text)
        seen |= dict.fromkeys(own - seen.keys(), text)
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
