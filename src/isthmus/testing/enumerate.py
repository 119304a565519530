"""All graphs over a few nodes, for tests that are exact instead of statistical."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING

from isthmus.graphs import DAG

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def enumerate_dags(nodes: Sequence[str]) -> Iterator[DAG]:
    """Give every labelled DAG over some nodes, each once.

    There are 1, 3, 25, 543, 29 281 and 3 781 503 of them for one to six nodes.

    Parameters
    ----------
    nodes
        Names.

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
    """Peel off the set of sinks: it is unique to a DAG, so nothing comes twice."""
    if not members:
        yield {}
        return
    ordered = sorted(members)
    for size in range(1, len(ordered) + 1):
        for sinks in combinations(ordered, size):
            rest = members.difference(sinks)
            choices = [s for k in range(len(rest) + 1) for s in combinations(sorted(rest), k)]
            for upper in _parent_sets(rest):
                # every sink of the upper part must lose that role, so it needs a child here
                bare = rest.difference(*upper.values())
                for own in product(choices, repeat=size):
                    if bare <= frozenset().union(*own):
                        yield {**upper, **dict(zip(sinks, own, strict=True))}
