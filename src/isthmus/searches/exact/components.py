"""Components of a score table that can be solved separately, and what solves one of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import final

import numpy as np

from isthmus.kernels import _native
from isthmus.objectives import ScoreTable
from isthmus.objectives.table import Words
from isthmus.runs import Say, Watch
from isthmus.types import Floats, Integers

Line = tuple[int, float, int]
"""A parent set as a bit mask, its score, and its line in the table."""

Choice = tuple[float, dict[int, int]]
"""The score of a graph, and for each node the line of its parent set in the table."""


@final
@dataclass(frozen=True, eq=False)
class Component:
    """Nodes that can be solved independently, with their parent sets among themselves.

    Attributes
    ----------
    nodes
        The nodes, as indices of the table.
    starts
        The parent sets of ``nodes[i]`` are ``starts[i]`` to ``starts[i + 1]``, best first.
    sets
        The parent sets as bitsets of positions in ``nodes``.
    scores
        Their scores.
    lines
        Their lines in the table.
    """

    nodes: tuple[int, ...]
    starts: Integers
    sets: Words
    scores: Floats
    lines: Integers

    def __len__(self) -> int:
        return len(self.nodes)

    def span(self, i: int) -> slice:
        """Return the range of the parent sets of the node at a position."""
        return slice(int(self.starts[i]), int(self.starts[i + 1]))

    @property
    def tops(self) -> Floats:
        """The best score of each node."""
        return self.scores[self.starts[:-1]]

    @cached_property
    def lists(self) -> tuple[tuple[Line, ...], ...]:
        """The parent sets of each node as tuples, for enumerations in Python."""
        masks = masks_of(self.sets)
        scores, lines = self.scores.tolist(), self.lines.tolist()
        return tuple(
            tuple(zip(masks[a:b], scores[a:b], lines[a:b], strict=True))
            for a, b in pairwise(self.starts.tolist())
        )


def masks_of(sets: Words) -> list[int]:
    """Return bitsets as Python integers."""
    masks: list[int] = sets[:, 0].tolist()
    for w in range(1, sets.shape[1]):
        masks = [
            mask | word << 64 * w for mask, word in zip(masks, sets[:, w].tolist(), strict=True)
        ]
    return masks


class PartSearch(ABC):
    """A running search for the best graphs of one component."""

    @abstractmethod
    def run(self, watch: Watch, say: Say) -> None:
        """Search until the graphs are proven."""

    @property
    @abstractmethod
    def gap(self) -> float:
        """Upper bound on how much more than the current best graph the optimal one can score."""

    @property
    @abstractmethod
    def counts(self) -> Mapping[str, int]:
        """Counts of the work so far, which can be added over components."""

    @abstractmethod
    def better_lines(self) -> Iterator[tuple[int, int]]:
        """Yield the nodes and lines of the best graph, if it improves on the known one."""

    @abstractmethod
    def near_best(self) -> tuple[list[Choice], float]:
        """Return the best graphs so far, best first, and an upper bound on all others."""

    @abstractmethod
    def describe(self) -> str:
        """Report progress."""


def decompose(table: ScoreTable, watch: Watch, slack: float = 0.0) -> list[Component]:
    """Split the nodes into strongly connected components of the graph of possible parents.

    Fan, Malone and Yuan 2014. Parents outside a component can precede it in every relevant order,
    so they are always available. Sets that differ only in such parents are merged, which can split
    the component further.
    """
    split = _native.Decomposition(
        np.ascontiguousarray(table.starts, np.int64),
        np.ascontiguousarray(table.sets, np.uint64),
        np.ascontiguousarray(table.scores, np.float64),
        slack=slack,
    )
    watch.run(split.step)
    return [Component(tuple(nodes.tolist()), *arrays) for nodes, *arrays in split.components()]
