"""Enumeration of all DAGs over a few nodes, for exact tests."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

from isthmus.graphs import DAG

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def enumerate_dags(nodes: Sequence[str]) -> Iterator[DAG]:
    """Yield every labelled DAG over some nodes once.

    For one to six nodes there are 1, 3, 25, 543, 29,281 and 3,781,503 of them.

    Parameters
    ----------
    nodes
        Names of the nodes.

    Examples
    --------
    >>> from isthmus.testing import enumerate_dags
    >>> sum(1 for _ in enumerate_dags(["a", "b", "c"]))
    25
    """
    names = tuple(nodes)
    for parents in _parent_sets(frozenset(range(len(names)))):
        yield DAG.from_parents(names, [parents.get(i, ()) for i in range(len(names))])


def _parent_sets(members: frozenset[int]) -> Iterator[dict[int, tuple[int, ...]]]:
    """Recurse over the set of sinks, which is unique for a DAG, so that no DAG is repeated."""
    if not members:
        yield {}
        return
    ordered = sorted(members)
    for size in range(1, len(ordered) + 1):
        for sinks in combinations(ordered, size):
            rest = members.difference(sinks)
            choices = [s for k in range(len(rest) + 1) for s in combinations(sorted(rest), k)]
            for upper in _parent_sets(rest):
                # Every sink of the rest must have a child among the new sinks.
                childless = rest.difference(*upper.values())
                for own in product(choices, repeat=size):
                    if childless <= frozenset().union(*own):
                        yield {**upper, **dict(zip(sinks, own, strict=True))}
