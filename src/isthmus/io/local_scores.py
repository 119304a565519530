"""Reader and writer for local scores, in the text format of GOBNILP, sumu and benchpress.

The first line is the number of variables. For each variable there is a line with its name and the
number of its parent sets, followed by one line per set: the score, the number of parents, and their
names. Lines that start with ``#`` or ``META`` are comments. The usual extension is ``.jkl``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias

from isthmus.errors import FormatError
from isthmus.io.files import read_text, write_text

if TYPE_CHECKING:
    from os import PathLike

LocalScores: TypeAlias = Mapping[str, Sequence[tuple[float, tuple[str, ...]]]]
"""Parent sets of each variable, as pairs of a score and the names of the parents."""

_COMMENTS = ("#", "META")


def to_local_scores(scores: LocalScores) -> str:
    """Return local scores as text; numbers are written with full precision."""
    for name in scores:
        if not name or name != "".join(name.split()) or name.startswith(_COMMENTS):
            raise FormatError(
                f"The name {name!r} cannot be written as local scores: names must not be empty, "
                "contain spaces, or start with '#' or 'META'. Rename the variable."
            )
    lines = [str(len(scores))]
    for name, sets in scores.items():
        lines.append(f"{name} {len(sets)}")
        lines += [" ".join((repr(float(s)), str(len(ps)), *ps)) for s, ps in sets]
    return "\n".join(lines) + "\n"


def from_local_scores(text: str) -> dict[str, list[tuple[float, tuple[str, ...]]]]:
    """Read local scores from text; see `to_local_scores`."""
    rows = [
        (number, line.split())
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith(_COMMENTS)
    ]
    if not rows or len(rows[0][1]) != 1:
        raise FormatError("Line 1 of the local scores: expected the number of variables.")
    declared = _count(rows[0][1][0], rows[0][0])
    scores: dict[str, list[tuple[float, tuple[str, ...]]]] = {}
    at = 1
    while at < len(rows):
        number, cells = rows[at]
        if len(cells) != 2 or cells[0] in scores:
            raise FormatError(
                f"Line {number} of the local scores: expected the name of a new variable and the "
                f"number of its parent sets, got {' '.join(cells)!r}."
            )
        name, size = cells[0], _count(cells[1], number)
        if size == 0:
            raise FormatError(
                f"Line {number} of the local scores: {name} has no parent sets; at least one "
                "is needed."
            )
        block = rows[at + 1 : at + 1 + size]
        if len(block) < size:
            raise FormatError(f"{name} should have {size} parent sets; the file has {len(block)}.")
        scores[name] = [_parse(name, cells, number) for number, cells in block]
        at += 1 + size
    if len(scores) != declared:
        raise FormatError(f"The file declares {declared} variables and has {len(scores)}.")
    unknown = {p for sets in scores.values() for _, ps in sets for p in ps} - set(scores)
    if unknown:
        raise FormatError(
            f"These parents are not among the variables of the file: {sorted(unknown)[:5]}."
        )
    return scores


def read_local_scores(path: str | PathLike[str]) -> dict[str, list[tuple[float, tuple[str, ...]]]]:
    """Read local scores from a file; see `to_local_scores`."""
    return from_local_scores(read_text(path))


def write_local_scores(scores: LocalScores, path: str | PathLike[str]) -> None:
    """Write local scores to a file; see `to_local_scores`."""
    write_text(to_local_scores(scores), path)


def _count(text: str, line: int) -> int:
    if not text.isdecimal():
        raise FormatError(f"Line {line} of the local scores: expected a number, got {text!r}.")
    return int(text)


def _parse(child: str, cells: list[str], line: int) -> tuple[float, tuple[str, ...]]:
    try:
        score, size = float(cells[0]), int(cells[1])
    except (ValueError, IndexError):
        score, size = 0.0, -1
    if size != len(cells) - 2:
        raise FormatError(
            f"Line {line} of the local scores: expected a score, the number of parents and "
            f"their names, got {' '.join(cells)!r}."
        )
    parents = tuple(cells[2:])
    if not isfinite(score) or child in parents or len(set(parents)) < size:
        raise FormatError(
            f"Line {line} of the local scores: expected a finite score and unique parents "
            f"other than {child}, got {' '.join(cells)!r}."
        )
    return score, parents
