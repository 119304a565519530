"""Checks of node names and edges, and their error messages."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from heapq import heapify, heappop, heappush
from operator import index as index_of
from typing import TYPE_CHECKING, final, overload

import numpy as np

from isthmus.errors import GraphError, a_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    from isthmus.arrays import Bools, Floats

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


# --- Sets of node indices as Python integers: bit ``i`` is set if node ``i`` is a member --------

_MANY_NODES = 4096
"""With more nodes, bitsets are made when they are used: all of them have d² / 8 bytes."""


def bits(mask: int) -> Iterator[int]:
    """Yield the members of a set in ascending order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def check_masks(masks: Sequence[int], size: int) -> list[int]:
    """Return bitsets as Python integers; raise a GraphError for members outside of `size` nodes."""
    try:
        checked = [index_of(mask) for mask in masks]
    except TypeError:
        raise GraphError(f"Bitsets must be integers, one per node; {masks!r} was given.") from None
    for mask in checked:
        # A negative integer has infinitely many bits.
        if mask < 0 or mask >> size:
            raise GraphError(
                f"A bitset over {size} nodes must be between 0 and {2**size - 1}; {mask} was given."
            )
    return checked


def mask_of(members: Iterable[int]) -> int:
    """Return the bitset of some members."""
    mask = 0
    for member in members:
        mask |= 1 << member
    return mask


@final
class MaskRows(Sequence[int]):
    """One bitset per node, kept as sorted lists of members.

    Parameters
    ----------
    members
        The members of each set, in ascending order.
    """

    __slots__ = ("members",)

    def __init__(self, members: Sequence[tuple[int, ...]]) -> None:
        self.members = tuple(members)

    def __len__(self) -> int:
        return len(self.members)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> MaskRows: ...
    def __getitem__(self, index: int | slice) -> int | MaskRows:
        if isinstance(index, slice):
            return MaskRows(self.members[index])
        return mask_of(self.members[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MaskRows):
            return NotImplemented
        return self.members == other.members

    def __hash__(self) -> int:
        return hash(self.members)


def packed(members: Iterable[Iterable[int]], size: int) -> Sequence[int]:
    """Return one bitset per node, as a tuple, or as `MaskRows` if there are many nodes."""
    if size <= _MANY_NODES:
        return tuple(mask_of(own) for own in members)
    return MaskRows([tuple(sorted(set(own))) for own in members])


def transpose(masks: Iterable[int], size: int) -> Sequence[int]:
    """Return the children of each node from the parents of each node, or the reverse."""
    if isinstance(masks, MaskRows):
        lists: list[list[int]] = [[] for _ in range(size)]
        for i, own in enumerate(masks.members):
            for j in own:
                lists[j].append(i)
        return MaskRows([tuple(own) for own in lists])
    transposed = [0] * size
    for i, mask in enumerate(masks):
        bit = 1 << i
        for j in bits(mask):
            transposed[j] |= bit
    return transposed


# --- Topological orders and directed cycles -----------------------------------------------------


def topological(parents: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
    """Return the topological order with the smallest indices first; None if there is a cycle."""
    size = len(parents)
    children: list[list[int]] = [[] for _ in range(size)]
    waiting = [len(own) for own in parents]
    for node, own in enumerate(parents):
        for parent in own:
            children[parent].append(node)
    free = [node for node in range(size) if not waiting[node]]
    heapify(free)
    order: list[int] = []
    while free:
        node = heappop(free)
        order.append(node)
        for child in children[node]:
            waiting[child] -= 1
            if not waiting[child]:
                heappush(free, child)
    return tuple(order) if len(order) == size else None


def find_cycle(parents: Sequence[Sequence[int]]) -> list[int]:
    """Return the nodes of a directed cycle, in the direction of its edges; one must exist."""
    state = [0] * len(parents)
    for start in range(len(parents)):
        path: list[int] = []
        stack = [(start, iter(parents[start]))] if not state[start] else []
        while stack:
            node, rest = stack[-1]
            if state[node] == 0:
                state[node] = 1
                path.append(node)
            step = next((p for p in rest if state[p] != 2), None)
            if step is None:
                state[node] = 2
                path.pop()
                stack.pop()
            elif state[step] == 1:
                return path[path.index(step) :][::-1]
            else:
                stack.append((step, iter(parents[step])))
    raise AssertionError("the graph has no cycle")


def checked_order(nodes: Sequence[str], parents: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return a topological order; raise a GraphError that names a cycle if there is none."""
    order = topological(parents)
    if order is None:
        cycle = [nodes[i] for i in find_cycle(parents)]
        raise GraphError(
            f"The directed edges contain a cycle: {' → '.join([*cycle, cycle[0]])}. "
            "Remove or reverse one of these edges."
        )
    return order


def reach(start: int, steps: Sequence[int]) -> int:
    """Return the nodes that can be reached from the set ``start``, including ``start``."""
    seen = start
    frontier = start
    while frontier:
        successors = 0
        for node in bits(frontier):
            successors |= steps[node]
        frontier = successors & ~seen
        seen |= frontier
    return seen


def order_of(edges: Bools) -> list[int] | None:
    """Return the topological order with the smallest indices first; None if there is a cycle."""
    order = topological([np.flatnonzero(column).tolist() for column in edges.T])
    return None if order is None else list(order)


def above_threshold(weights: Floats, threshold: float) -> Bools:
    """Return the edges above a threshold, raised as far as needed to break all cycles.

    Edges of equal weight are kept or dropped together.
    """
    sizes = np.abs(weights)
    for cutoff in [threshold, *np.sort(sizes[sizes > threshold]).tolist()]:
        edges: Bools = sizes > cutoff
        if order_of(edges) is not None:
            return edges
    return np.zeros_like(sizes, dtype=np.bool_)
