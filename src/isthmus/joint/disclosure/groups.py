"""Groups of persons that have sums of their own, compared between two studies.

Products with a flag are sums over the persons who have it, and steps of expectation-maximisation
show sums over the persons of each pattern of missing values. Two studies with nearly the same
group, by whatever variables, show the persons who are in only one of both. Persons are recognised
by their values of the variables that the studies have in common. Where these do not tell persons
apart, groups by different variables are not compared reliably.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.joint.disclosure.trace import IDENTIFIER, MISSING, ORIGINAL, Trace, persons_apart_in
from isthmus.types import Floats, Integers

MOST_VALUES = 32
"""Maximum number of values of the variables whose groups are compared."""

FEW_VALUES = 3
"""Up to this number of values, sums and sums of squares determine how many persons have each
value."""

COUNT_TOLERANCE = 1e-6
"""Tolerance of a number of persons: those with several rows are counted in fractions."""


class Apart(NamedTuple):
    """By how few persons two releases differ, where they differ at all.

    Attributes
    ----------
    cohort
        Number of persons, or of persons with combined patterns of missing values; 0 for none.
    cell
        Number of persons with a value of a variable.
    """

    cohort: int
    cell: int


class _Partition(NamedTuple):
    """Groups of the rows of a trace.

    Attributes
    ----------
    name
        The variable that they are from.
    codes
        The group of each row.
    sizes
        Number of persons in each group.
    """

    name: str
    codes: Integers
    sizes: Floats

    @classmethod
    def of(cls, name: str, codes: Integers, weight: Floats) -> _Partition:
        return cls(name, codes, np.bincount(codes, weight).astype(np.float64))


def groups_apart(mine: Trace, theirs: Trace, limit: int) -> Apart:
    """Return by how few persons the groups of two traces with common variables differ.

    Parameters
    ----------
    mine, theirs
        Traces with the same key.
    limit
        Differences of this number of persons and more need not be found.
    """
    common = [n for n in _variables(mine) if n in theirs.names]
    if not common or any(n.startswith(IDENTIFIER) for n in (*mine.names, *theirs.names)):
        return Apart(0, 0)
    cells = _same_values_apart(mine, theirs, common)
    weights = _weights(mine), _weights(theirs)
    left, right = _linked(mine.unhidden(), theirs.unhidden(), common)
    own, its = (
        [_Partition.of(n, codes, weight) for n, codes in _partitions(trace) if n not in common]
        for trace, weight in zip((mine, theirs), weights, strict=True)
    )
    everyone, all_others = (
        _Partition.of("", np.zeros(len(weight), np.int64), weight) for weight in weights
    )
    for a, b in [
        *((p, q) for p in own for q in its),
        *((p, all_others) for p in own),
        *((everyone, q) for q in its),
    ]:
        if _may_be_near(a, b, limit):
            cells.append(_closest(a.codes, b.codes, left, right, weights))
    cohorts = _patterns_apart(mine, theirs, common, left, right, weights, limit)
    return Apart(_smallest(cohorts), _smallest(cells))


def _variables(trace: Trace) -> list[str]:
    return [n for n in trace.names if not n.startswith((IDENTIFIER, ORIGINAL))]


def _smallest(numbers: Sequence[float]) -> int:
    """Return the smallest number that is not zero, as a whole number of persons."""
    return int(
        np.ceil(min((n for n in numbers if n > COUNT_TOLERANCE), default=0.0) - COUNT_TOLERANCE)
    )


def _weights(trace: Trace) -> Floats:
    """Return the share of each row in its person: a person never counts as more than one."""
    return np.asarray(1.0 / np.bincount(trace.owners)[trace.owners])


def _may_be_near(a: _Partition, b: _Partition, limit: int) -> bool:
    """Return whether groups of both differ in size by fewer persons than the limit."""
    return bool((np.abs(a.sizes[:, None] - b.sizes[None, :]) < limit).any())


def _partitions(trace: Trace) -> list[tuple[str, Integers]]:
    """Return the variables with few different values, whose persons have sums of their own."""
    found = []
    for name in _variables(trace):
        cells = trace.cells[:, trace.names.index(name)]
        most = len(cells) if name in trace.discrete else MOST_VALUES
        if len(np.unique(cells[: 4 * MOST_VALUES])) <= most:
            values, codes = np.unique(cells, return_inverse=True)
            if 1 < len(values) <= most:
                found.append((name, codes.reshape(-1)))
    return found


def _same_values_apart(mine: Trace, theirs: Trace, common: Sequence[str]) -> list[float]:
    """Compare the persons with the same value of a common variable, by all common variables."""
    apart: list[float] = []
    rows, others = mine.rows(common), theirs.rows(common)
    for name, codes in _partitions(mine):
        if name not in common or (name not in mine.discrete and codes.max() >= FEW_VALUES):
            continue
        own, its = (t.cells[:, t.names.index(name)] for t in (mine, theirs))
        for value in np.unique(own).tolist():
            a, b = own == value, its == value
            if value != MISSING and b.any():
                apart.append(persons_apart_in(rows[a], mine.owners[a], others[b], theirs.owners[b]))
    return apart


def _linked(
    mine: Trace, theirs: Trace, common: Sequence[str]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of rows with the same values in both; each row is used once.

    Which of several rows with the same values are linked is arbitrary.
    """
    ours, its = mine.rows(common), theirs.rows(common)
    codes = np.unique(np.concatenate([ours, its]), return_inverse=True)[1].reshape(-1)
    own, other = (_numbered(part) for part in (codes[: len(ours)], codes[len(ours) :]))
    _, left, right = np.intersect1d(own, other, assume_unique=True, return_indices=True)
    return left, right


def _numbered(codes: Integers) -> Integers:
    """Return different numbers for equal codes, the same for the first of each, and so on."""
    order = np.argsort(codes, kind="stable")
    first = np.flatnonzero(np.diff(codes[order], prepend=-1))
    lengths = np.diff(np.append(first, len(codes)))
    rank = np.empty(len(codes), dtype=np.int64)
    rank[order] = np.arange(len(codes)) - np.repeat(first, lengths)
    return codes * 2**31 + rank


def _table(a: Integers, b: Integers, weight: Floats, shape: tuple[int, int]) -> Floats:
    counted: Floats = np.bincount(a * shape[1] + b, weight, shape[0] * shape[1]).astype(np.float64)
    return counted.reshape(shape)


def _closest(
    a: Integers,
    b: Integers,
    left: NDArray[np.intp],
    right: NDArray[np.intp],
    weights: tuple[Floats, Floats],
) -> float:
    """Return by how few persons a group of one and a group of the other partition differ.

    Groups count as nearly the same if they have more persons in common than they differ by.
    """
    shape = int(a.max(initial=0)) + 1, int(b.max(initial=0)) + 1
    both = _table(a[left], b[right], weights[0][left], shape)
    only_a = np.bincount(a, weights[0], shape[0])[:, None] - both
    its = _table(a[left], b[right], weights[1][right], shape)
    only_b = np.bincount(b, weights[1], shape[1])[None, :] - its
    apart = np.maximum(only_a, only_b)
    near = apart[(apart > COUNT_TOLERANCE) & (apart < both)]
    return float(near.min(initial=np.inf)) if near.size else 0.0


def _patterns_apart(
    mine: Trace,
    theirs: Trace,
    common: Sequence[str],
    left: NDArray[np.intp],
    right: NDArray[np.intp],
    weights: tuple[Floats, Floats],
    limit: int,
) -> list[float]:
    """Compare all combinations of patterns of missing values, for each common variable.

    Whoever adds and subtracts sums over patterns of one study and of the other can leave out the
    persons who are counted as often in both. The fewest persons that can remain are a minimum cut
    of the graph of patterns whose edges are persons. One more node stands for persons without a sum
    in one of the studies.
    """
    found: list[float] = []
    known = [
        t.cells[:, [t.names.index(n) for n in _variables(t)]] != MISSING for t in (mine, theirs)
    ]
    if all(k.all() for k in known):
        return found
    (own, a), (its, b) = (
        (patterns, codes.reshape(-1))
        for patterns, codes in (np.unique(k, axis=0, return_inverse=True) for k in known)
    )
    shape = len(own), len(its)
    both = _table(a[left], b[right], weights[0][left], shape)
    alone_a = np.bincount(a, weights[0], shape[0])
    alone_b = np.bincount(b, weights[1], shape[1])
    alone_b -= _table(a[left], b[right], weights[1][right], shape).sum(axis=0)
    alone_a -= both.sum(axis=1)
    views = {
        (tuple(own[:, _variables(mine).index(n)]), tuple(its[:, _variables(theirs).index(n)]))
        for n in common
    }
    for see_a, see_b in views:
        i, j = np.flatnonzero(see_a), np.flatnonzero(see_b)
        inside = both[np.ix_(i, j)]
        nodes = len(i) + len(j) + 1
        graph = np.zeros((nodes, nodes))
        graph[: len(i), len(i) : -1] = inside
        graph[: len(i), -1] = alone_a[i] + both[i].sum(axis=1) - inside.sum(axis=1)
        graph[len(i) : -1, -1] = alone_b[j] + both[:, j].sum(axis=0) - inside.sum(axis=0)
        graph[graph < COUNT_TOLERANCE] = 0.0
        found.append(cut_below(graph + graph.T, limit))
    return found


def cut_below(graph: Floats, limit: float) -> float:
    """Return the weight of a cut of an undirected graph that is below a limit, but not zero.

    Nodes are visited in the order of Stoer and Wagner (1997). Two successive nodes that no cut
    below the limit can separate become one node.

    Parameters
    ----------
    graph
        The weights of the edges, symmetric, with zeros on the diagonal.
    limit
        The limit.

    Returns
    -------
    float
        Zero if there is no such cut.
    """
    while len(graph) > 1:
        attached, order, weights = graph[0].copy(), [0], [np.inf]
        rest = np.ones(len(graph), dtype=np.bool_)
        rest[0] = False
        while rest.any():
            k = int(np.argmax(np.where(rest, attached, -1.0)))
            if attached[k] <= 0.0:  # the part of the first node is complete
                break
            order.append(k)
            weights.append(float(attached[k]))
            rest[k] = False
            attached += graph[k]
        if weights[-1] < limit:
            return weights[-1]
        # All nodes of a run become the first one of it; a part of one node is complete.
        runs = np.cumsum(np.array([w < limit for w in weights])) if len(order) > 1 else [-1]
        new = np.full(len(graph), -1)
        new[order] = runs
        new[rest] = new.max() + 1 + np.arange(rest.sum())
        kept = np.flatnonzero(new >= 0)
        merge = np.zeros((new.max() + 1, len(graph)))
        merge[new[kept], kept] = 1.0
        graph = merge @ graph @ merge.T
        np.fill_diagonal(graph, 0.0)
    return 0.0
