"""Slow and obvious versions of what the graphs do fast."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from isthmus.graphs import DAG

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def trails(dag: DAG, x: str, y: str) -> Iterator[list[str]]:
    """Give every path without repeated nodes, whatever the arrows."""
    joined = {n: set(dag.parents(n)) | set(dag.children(n)) for n in dag.nodes}
    stack = [[x]]
    while stack:
        path = stack.pop()
        if path[-1] == y:
            yield path
            continue
        stack.extend([*path, step] for step in joined[path[-1]] if step not in path)


def separated(dag: DAG, x: str, y: str, given: Iterable[str]) -> bool:
    """Check each trail by the definition."""
    known = set(given)
    for path in trails(dag, x, y):
        blocked = False
        for before, here, after in zip(path, path[1:], path[2:], strict=False):
            if dag.has_edge(before, here) and dag.has_edge(after, here):
                blocked |= not known & {here, *dag.descendants(here)}
            else:
                blocked |= here in known
        if not blocked:
            return False
    return True


def signature(dag: DAG) -> tuple[frozenset[frozenset[str]], frozenset[tuple[object, str]]]:
    """Return skeleton and v-structures, straight from the edges."""
    edges = set(dag.edges)
    skeleton = frozenset(frozenset(edge) for edge in edges)
    colliders = frozenset(
        (frozenset((a, b)), c)
        for c in dag.nodes
        for a, b in combinations(dag.nodes, 2)
        if (a, c) in edges and (b, c) in edges and frozenset((a, b)) not in skeleton
    )
    return skeleton, colliders


def essential(members: list[DAG]) -> tuple[set[tuple[str, str]], set[frozenset[str]]]:
    """Return the directed and the undirected edges of the union of a class."""
    union = {edge for dag in members for edge in dag.edges}
    directed = {(a, b) for a, b in union if (b, a) not in union}
    return directed, {frozenset(edge) for edge in union - directed}


@st.composite
def dags(draw: st.DrawFn, largest: int = 7) -> DAG:
    """Draw a DAG with shuffled names."""
    size = draw(st.integers(1, largest))
    names = draw(st.permutations([f"n{i}" for i in range(size)]))
    order = draw(st.permutations(names))
    pairs = list(combinations(order, 2))
    kept = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    return DAG(names, [pair for pair, keep in zip(pairs, kept, strict=True) if keep])
