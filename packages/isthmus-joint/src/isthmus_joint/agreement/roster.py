"""The roster of a study: its parties, their organisations and their pinned keys."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import final

from isthmus.errors import StudyError
from isthmus_joint.agreement.confusables import PROTOTYPES
from isthmus_joint.agreement.identity import AUTHOR, KEY, Key


@final
@dataclass(frozen=True)
class Member:
    """A party of a study.

    Attributes
    ----------
    name
        Name of the site.
    organisation
        The legal entity that operates it. Several sites may belong to one organisation.
    key
        Its Ed25519 public key, 32 bytes.
    """

    name: str
    organisation: str
    key: Key


@final
@dataclass(frozen=True)
class Roster:
    """The parties of a study.

    Parameters
    ----------
    study
        SHA-256 of the study file.
    members
        The parties, in the order of the study.
    coordinator
        The Ed25519 public key of the coordinator; ``None`` if the protocol has none.
    """

    study: bytes
    members: tuple[Member, ...]
    coordinator: bytes | None

    def __post_init__(self) -> None:
        problems = [
            f"two sites have the same {field}"
            for field in ("name", "key")
            if len({getattr(m, field) for m in self.members}) != len(self.members)
        ]
        keys = [m.key for m in self.members]
        others = [self.study] if self.coordinator is None else [self.coordinator, self.study]
        if any(len(key) != KEY for key in (*keys, *others)):
            problems.append("keys and the hash of the study must have 32 bytes")
        if self.coordinator in keys:
            problems.append("the coordinator must not use the key of a site")
        if problems:
            raise StudyError("The roster cannot be used: " + "; ".join(problems) + ".")

    def __len__(self) -> int:
        return len(self.members)

    def position(self, name: str) -> int:
        """Return the position of a party in the roster."""
        try:
            return self._positions[name]
        except KeyError:
            raise StudyError(
                f"The study has no site {name!r}; its sites are {[m.name for m in self.members]}."
            ) from None

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {m.name: i for i, m in enumerate(self.members)}

    def names(self, positions: frozenset[int]) -> list[str]:
        """Return the names of the parties at these positions, in the order of the roster."""
        return [self.members[i].name for i in sorted(positions)]

    def organisations(self, positions: frozenset[int]) -> set[str]:
        """Return the organisations behind the parties at these positions."""
        return {self.members[i].organisation for i in positions}

    def sites_of_organisations(self) -> Counter[str]:
        """Return how many sites each organisation operates."""
        return Counter(m.organisation for m in self.members)

    @property
    def everyone(self) -> frozenset[int]:
        """The positions of all parties."""
        return frozenset(range(len(self.members)))


# --- Names that people take for each other, although programs do not ----------------------------
#
# People confirm keys and sign studies by reading names. An organisation that appears twice under
# names that look the same would count as two, and a stranger could pass for a peer.

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


# --- Who the rows of a site describe, as its policy states it -----------------------------------

ROWS = "rows"
NOT_PERSONS = "none"
_COLUMN = "column:"


@final
@dataclass(frozen=True)
class Persons:
    """The person or persons that a row of the site describes.

    Parameters
    ----------
    text
        ``"rows"`` if every row describes another person; in a study of time series, every
        realisation then does. ``"none"`` if rows do not describe persons (machines, regions), so
        that the rules count rows. ``"column:NAME"`` if a column of the site's table identifies the
        person.
    """

    text: str = ROWS

    def __post_init__(self) -> None:
        if self.text not in (ROWS, NOT_PERSONS) and not self.column:
            raise StudyError(
                f"persons is {self.text!r}; it must be {ROWS!r}, {NOT_PERSONS!r}, or {_COLUMN!r} "
                "followed by the name of the column that identifies a person"
            )

    @property
    def column(self) -> str:
        """The column that identifies a person, or nothing."""
        return self.text.removeprefix(_COLUMN) if self.text.startswith(_COLUMN) else ""

    @property
    def not_persons(self) -> bool:
        """Whether rows do not describe persons."""
        return self.text == NOT_PERSONS

    def __str__(self) -> str:
        return self.text
