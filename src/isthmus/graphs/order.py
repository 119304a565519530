"""Topological orders and directed cycles."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from isthmus.errors import GraphError
from isthmus.graphs.bits import bits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isthmus.types import Bools, Floats


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
