"""Checks of node names and edges, and their error messages."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from isthmus.errors import GraphError
from isthmus.plurals import a_type

SHOWN = 6
LONGEST = 400
"""Maximum number of characters of the edges in the text of a graph."""


def check_nodes(nodes: Iterable[str]) -> tuple[tuple[str, ...], dict[str, int]]:
    """Return the names as a tuple and their positions; raise for duplicates and non-strings."""
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        raise GraphError(
            f"nodes must be a collection of names such as ['a', 'b']; {nodes!r} was given."
        )
    names = check_strings(nodes)
    index = {name: i for i, name in enumerate(names)}
    if len(index) != len(names):
        duplicates = sorted({name for name in names if names.count(name) > 1})
        raise GraphError(f"Node names must be unique; these are repeated: {listed(duplicates)}.")
    return names, index


def check_strings(names: Iterable[str]) -> tuple[str, ...]:
    """Return names as a tuple; raise a GraphError unless all are strings."""
    given = tuple(names)
    for name in given:
        if not isinstance(name, str):
            raise GraphError(
                f"Node names must be strings, got {name!r} of type {type(name).__name__}. "
                "Convert it with str() first."
            )
    return given


def position(index: Mapping[str, int], name: str) -> int:
    """Return the index of a name; raise a GraphError with suggestions if it is unknown."""
    try:
        return index[name]
    except KeyError:
        pass
    except TypeError:
        raise GraphError(
            f"A node is given by its name, and {a_type(name)} was given. If it is a table, it "
            "comes first: predict(table, target)."
        ) from None
    close = get_close_matches(str(name), index, n=3)
    hint = f"Did you mean {listed(close)}?" if close else f"The nodes are {listed(index)}."
    raise GraphError(f"There is no node {reprlib.repr(name)}. {hint}") from None


def listed(names: Iterable[str]) -> str:
    """Return names as text for a message; a long list is abbreviated."""
    all_names = list(names)
    text = ", ".join(repr(name) for name in all_names[:SHOWN])
    more = len(all_names) - SHOWN
    return f"{text} and {more} more" if more > 0 else text or "none"


def edges_in_words(
    directed: Sequence[tuple[str, str]], undirected: Sequence[tuple[str, str]] = ()
) -> str:
    """Return edges as ``": a → b, b — c"`` for the text of a graph; a long list is abbreviated."""
    shown: list[str] = []
    length = 0
    for pairs, mark in ((directed, "→"), (undirected, "—")):
        for a, b in pairs:
            edge = f"{a} {mark} {b}"
            length += len(edge) + 2
            if length > LONGEST:
                more = len(directed) + len(undirected) - len(shown)
                return f": {', '.join(shown)} and {more} more" if shown else ""
            shown.append(edge)
    return f": {', '.join(shown)}" if shown else ""


def same_nodes(a: Sequence[str], b: Sequence[str], what: str) -> None:
    """Raise a GraphError unless two graphs have the same set of nodes."""
    left, right = set(a), set(b)
    if left != right:
        raise GraphError(
            f"{what} needs two graphs over the same nodes. Only in the first: "
            f"{listed(n for n in a if n not in right)}; only in the second: "
            f"{listed(n for n in b if n not in left)}."
        )


def edges_of(edges: Iterable[tuple[str, str]], what: str = "edges") -> list[tuple[str, str]]:
    """Return edges as pairs; raise a GraphError for anything but a collection of pairs."""
    if isinstance(edges, (str, Mapping)) or not isinstance(edges, Iterable):
        raise GraphError(
            f"{what} must be a collection of pairs (from, to) such as [('a', 'b')]; "
            f"{edges!r} was given."
        )
    return [pair_of(edge) for edge in edges]


def pair_of(edge: tuple[str, str]) -> tuple[str, str]:
    """Return an edge as a pair; raise a GraphError if it is not a pair."""
    if not isinstance(edge, str):
        try:
            a, b = edge
        except (TypeError, ValueError):
            pass
        else:
            return a, b
    raise GraphError(f"An edge is a pair of names (from, to), got {edge!r}.")
