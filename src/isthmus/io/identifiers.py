"""Names that formats allow in place of any text, and back again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from isthmus.errors import FormatError

if TYPE_CHECKING:
    from isthmus.models import Level


def is_identifier(text: str) -> bool:
    """Return whether a text has only letters, digits and underscores, and a letter first."""
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text) is not None


def identifiers(
    texts: Iterable[str], prefix: str, fits: Callable[[str], bool] = is_identifier
) -> dict[str, str]:
    """Return for each text a unique identifier: the text itself if it is one.

    Parameters
    ----------
    texts
        Texts without repetition.
    prefix
        Letter to put before what is still no identifier.
    fits
        Which texts are identifiers; at least those of letters, digits and underscores that begin
        with the prefix and an underscore.
    """
    wanted = list(texts)
    taken = {text for text in wanted if fits(text)}
    found: dict[str, str] = {}
    for text in wanted:
        if fits(text):
            found[text] = text
            continue
        base = re.sub(r"[^A-Za-z0-9_]", "_", text)
        base = base if fits(base) else f"{prefix}_{base}"
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
