"""Equivalence classes of graphs with hidden causes by enumeration, to compare others with.

Nothing here uses the rules: a class is the set of all maximal ancestral graphs with the same
m-separations, and a mark of its PAG is what all its members have in common.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, permutations, product

import numpy as np

from isthmus.graphs import DAG, PAG
from isthmus.graphs.names import reach, transpose
from isthmus.graphs.orientation import connected

Signature = tuple[int, ...]
"""For each set of observed variables and each variable, which others are connected given it."""


def signature(parents: Sequence[int], observed: int) -> Signature:
    """Return all (in)dependences among the first variables of a DAG, the others being hidden."""
    children = transpose(parents, len(parents))
    seen = (1 << observed) - 1
    return tuple(
        connected(parents, children, 1 << x, given) & seen & ~(1 << x)
        for given in range(1 << observed)
        for x in range(observed)
        if not given >> x & 1
    )


def observed_first(dag: DAG, hidden: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return the observed names, and the parents of all nodes with the hidden ones at the end."""
    shown = [name for name in dag.nodes if name not in hidden]
    moved = dag.reorder([*shown, *hidden])
    return shown, list(moved.parent_masks)


def orientations(size: int, skeleton: Sequence[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """Yield the marks of every ancestral graph with a skeleton: 0 for →, 1 for ←, 2 for ↔."""
    for marks in product(range(3), repeat=len(skeleton)):
        if _ancestral(size, skeleton, marks):
            yield marks


@cache
def classes(size: int, skeleton: tuple[tuple[int, int], ...]) -> dict[Signature, np.ndarray]:
    """Return the matrix of the PAG of each class of maximal ancestral graphs with a skeleton."""
    members: dict[Signature, list[tuple[int, ...]]] = defaultdict(list)
    for marks in orientations(size, skeleton):
        parents = _with_hidden(size, skeleton, marks)
        found = signature(parents, size)
        if _maximal(found, size, skeleton):
            members[found].append(marks)
    return {key: _common(size, skeleton, own) for key, own in members.items()}


def _maximal(found: Signature, size: int, skeleton: Sequence[tuple[int, int]]) -> bool:
    always = dict.fromkeys(combinations(range(size), 2), True)
    at = 0
    for given in range(1 << size):
        for x in range(size):
            if given >> x & 1:
                continue
            for y in range(x + 1, size):
                if not given >> y & 1 and not found[at] >> y & 1:
                    always[x, y] = False
            at += 1
    return {pair for pair, joined in always.items() if joined} == set(skeleton)


def _common(
    size: int, skeleton: Sequence[tuple[int, int]], members: Sequence[tuple[int, ...]]
) -> np.ndarray:
    matrix = np.zeros((size, size), np.int8)
    for k, (a, b) in enumerate(skeleton):
        kinds = {marks[k] for marks in members}
        # the mark at b is an arrowhead in → and ↔, a tail in ←
        matrix[a, b] = 1 if 1 in kinds and kinds != {1} else 3 if kinds == {1} else 2
        matrix[b, a] = 1 if 0 in kinds and kinds != {0} else 3 if kinds == {0} else 2
    return matrix


def pag_by_enumeration(names: Sequence[str], parents: Sequence[int]) -> PAG:
    """Return the PAG of the first variables of a DAG; only one of relabelled graphs is computed."""
    size = len(names)
    found = signature(parents, size)
    skeleton = _adjacent(found, size)
    order = _canonical(size, skeleton)
    place = {v: i for i, v in enumerate(order)}
    there = tuple(sorted(tuple(sorted((place[a], place[b]))) for a, b in skeleton))
    moved = [*order, *range(size, len(parents))]
    at = {v: i for i, v in enumerate(moved)}
    renamed = [sum(1 << at[p] for p in range(len(parents)) if parents[v] >> p & 1) for v in moved]
    matrix = classes(size, there)[signature(renamed, size)]
    return PAG.from_matrix([names[v] for v in order], matrix).reorder(names)


def _adjacent(found: Signature, size: int) -> list[tuple[int, int]]:
    return [pair for pair in combinations(range(size), 2) if _always_connected(found, size, *pair)]


def _always_connected(found: Signature, size: int, x: int, y: int) -> bool:
    at = 0
    for given in range(1 << size):
        for v in range(size):
            if given >> v & 1:
                continue
            if v == x and not given >> y & 1 and not found[at] >> y & 1:
                return False
            at += 1
    return True


def _canonical(size: int, skeleton: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    """Return the order of the nodes in which the sorted list of edges comes first."""
    joined = set(skeleton) | {(b, a) for a, b in skeleton}

    def edges(order: tuple[int, ...]) -> list[bool]:
        return [(a, b) not in joined for a, b in combinations(order, 2)]

    return min(permutations(range(size)), key=edges)


def class_by_changes(parents: Sequence[int], observed: int, limit: int) -> tuple[np.ndarray, bool]:
    """Return the common marks of the class of a DAG's first variables, by single changes of marks.

    All members of a class can be reached by such changes (Zhang and Spirtes 2005). Each member is
    checked: two graphs are equivalent if each has the separations that the ancestors of a pair
    give in the other. Stops at a number of members; the second item is whether there were fewer.
    """
    size, hidden = observed, ((1 << len(parents)) - 1) >> observed << observed
    children = transpose(parents, len(parents))
    skeleton, marks = [], []
    for a, b in combinations(range(size), 2):
        both = 1 << a | 1 << b
        given = reach(both, parents) & ~both & ~hidden
        if connected(parents, children, 1 << a, given) >> b & 1:
            skeleton.append((a, b))
            before, after = reach(1 << b, parents) >> a & 1, reach(1 << a, parents) >> b & 1
            marks.append(0 if before else 1 if after else 2)
    apart = [pair for pair in combinations(range(size), 2) if pair not in skeleton]
    start = tuple(marks)
    first = _with_hidden(size, skeleton, start)
    members, waiting = {start}, [start]
    while waiting and len(members) < limit:
        current = waiting.pop()
        for k, mark in enumerate(current):
            for other in (0, 1) if mark == 2 else (2,):
                changed = (*current[:k], other, *current[k + 1 :])
                if changed in members or not _ancestral(size, skeleton, changed):
                    continue
                second = _with_hidden(size, skeleton, changed)
                if _implies(first, second, size, apart) and _implies(second, first, size, apart):
                    members.add(changed)
                    waiting.append(changed)
    return _common(size, skeleton, sorted(members)), not waiting


def _with_hidden(size: int, skeleton: Sequence[tuple[int, int]], marks: Sequence[int]) -> list[int]:
    parents = [0] * size
    for (a, b), mark in zip(skeleton, marks, strict=True):
        if mark == 0:
            parents[b] |= 1 << a
        elif mark == 1:
            parents[a] |= 1 << b
        else:  # one hidden parent of both
            parents[a] |= 1 << len(parents)
            parents[b] |= 1 << len(parents)
            parents.append(0)
    return parents


def _ancestral(size: int, skeleton: Sequence[tuple[int, int]], marks: Sequence[int]) -> bool:
    parents = _with_hidden(size, skeleton, marks)
    above = [reach(own, parents) for own in parents[:size]]  # proper ancestors
    return not any(above[v] >> v & 1 for v in range(size)) and not any(
        mark == 2 and (above[a] >> b & 1 or above[b] >> a & 1)
        for (a, b), mark in zip(skeleton, marks, strict=True)
    )


def _implies(
    first: Sequence[int], second: Sequence[int], size: int, apart: Sequence[tuple[int, int]]
) -> bool:
    """Return whether each pair that is apart is separated in one by its ancestors in the other."""
    children = transpose(first, len(first))
    for a, b in apart:
        both = 1 << a | 1 << b
        given = reach(both, second) & ~both & (1 << size) - 1
        if connected(first, children, 1 << a, given) >> b & 1:
            return False
    return True
