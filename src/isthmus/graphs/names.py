"""Names of nodes: checked once, then turned into indices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from isthmus.errors import GraphError

SHOWN = 6


def check_nodes(nodes: Iterable[str]) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the names as a tuple and their positions; refuse duplicates and non-strings."""
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        raise GraphError(
            f"nodes must be a collection of names such as ['a', 'b']; {nodes!r} was given."
        )
    names = check_strings(nodes)
    index = {name: i for i, name in enumerate(names)}
    if len(index) != len(names):
        doubles = sorted({name for name in names if names.count(name) > 1})
        raise GraphError(
            f"Node names must be unique; these come more than once: {listed(doubles)}."
        )
    return names, index


def check_strings(names: Iterable[str]) -> tuple[str, ...]:
    """Return names as a tuple; refuse anything but strings."""
    given = tuple(names)
    for name in given:
        if not isinstance(name, str):
            raise GraphError(
                f"Node names must be strings, got {name!r} of type {type(name).__name__}. "
                "Convert it with str() first."
            )
    return given


def position(index: Mapping[str, int], name: str) -> int:
    """Return the index of a name, or say which names there are."""
    try:
        return index[name]
    except (KeyError, TypeError):
        pass
    close = get_close_matches(str(name), index, n=3)
    hint = f"Did you mean {listed(close)}?" if close else f"The nodes are {listed(index)}."
    raise GraphError(f"There is no node {name!r}. {hint}") from None


def listed(names: Iterable[str]) -> str:
    """Write names for a message; cut a long list short."""
    every = list(names)
    text = ", ".join(repr(name) for name in every[:SHOWN])
    return f"{text} and {len(every) - SHOWN} more" if len(every) > SHOWN else text or "none"


def same_nodes(a: Sequence[str], b: Sequence[str], what: str) -> None:
    """Raise unless two graphs have the same set of nodes."""
    left, right = set(a), set(b)
    if left != right:
        raise GraphError(
            f"{what} needs two graphs over the same nodes. Only in the first: "
            f"{listed(n for n in a if n not in right)}; only in the second: "
            f"{listed(n for n in b if n not in left)}."
        )


def edges_of(edges: Iterable[tuple[str, str]], what: str = "edges") -> list[tuple[str, str]]:
    """Return edges as pairs; refuse anything that is not a collection of pairs."""
    if isinstance(edges, (str, Mapping)) or not isinstance(edges, Iterable):
        raise GraphError(
            f"{what} must be a collection of pairs (from, to) such as [('a', 'b')]; "
            f"{edges!r} was given."
        )
    return [pair_of(edge) for edge in edges]


def pair_of(edge: tuple[str, str]) -> tuple[str, str]:
    """Return an edge as a pair, or say that it is none."""
    if not isinstance(edge, str):
        try:
            a, b = edge
        except (TypeError, ValueError):
            pass
        else:
            return a, b
    raise GraphError(f"An edge is a pair of names (from, to), got {edge!r}.")
