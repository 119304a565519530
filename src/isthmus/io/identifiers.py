"""Names that formats allow in place of any text, and back again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from isthmus.errors import FormatError

if TYPE_CHECKING:
    from isthmus.models import Level


def identifiers(texts: Iterable[str], prefix: str) -> dict[str, str]:
    """Return for each text a unique identifier: the text itself if it is one.

    Parameters
    ----------
    texts
        Texts without repetition.
    prefix
        Letter to put before what does not begin with one.
    """
    wanted = list(texts)
    taken = {text for text in wanted if _is_identifier(text)}
    found: dict[str, str] = {}
    for text in wanted:
        if _is_identifier(text):
            found[text] = text
            continue
        base = re.sub(r"[^A-Za-z0-9_]", "_", text)
        base = base if _is_identifier(base) else f"{prefix}_{base}"
        name, number = base, 2
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        found[text] = name
    return found


def level_texts(node: str, levels: Sequence[Level]) -> list[str]:
    """Return levels as text; raise if two of them look the same."""
    texts = [str(level) for level in levels]
    if len(set(texts)) != len(texts):
        raise FormatError(f"The levels of {node!r} are not unique as text: {list(levels)!r}.")
    return texts


def _is_identifier(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text) is not None
