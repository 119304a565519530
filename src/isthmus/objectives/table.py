"""Score tables: the parent sets of each node that can be part of an optimal graph.

A parent set that scores no better than one of its subsets is not listed, because it is never
needed: in every order of the nodes, the best listed parent set among the predecessors of a node is
the best of all (Silander and Myllymäki 2006). Exact searches and searches over orders need nothing
else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from os import PathLike
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import KnowledgeError, SchemaError
from isthmus.graphs import DAG, BoundKnowledge, Knowledge
from isthmus.kernels import _native
from isthmus.objectives.local import Capabilities, Capability, LocalScore, Objective
from isthmus.watch import Sense

Words = NDArray[np.uint64]


PARENT_SETS: Capability[ScoreTable] = Capability("a table of scored parent sets")
"""A list of scored parent sets for each node; see `ScoreTable`."""


@final
@dataclass(frozen=True, eq=False)
class ScoreTable(Objective):
    """A table of parent sets and their scores, best first for each node.

    Attributes
    ----------
    nodes
        Names of the variables; an index means a position in this tuple.
    starts
        The lines of node v are ``starts[v]`` to ``starts[v + 1]``.
    sets
        One parent set per line, as a bitset: parent p is bit ``p % 64`` of word ``p // 64``.
    scores
        Score of each line, to be maximised; descending for each node.
    equivalent
        Whether Markov-equivalent graphs always have the same total.
    complete
        Whether every parent set that can be part of an optimal graph is listed (within
        ``max_parents``). False after a time limit.
    max_parents
        Maximum number of parents; None for no maximum.
    required
        Required edges ``[from, to]``, which all listed sets contain; None for none.
    slack
        Sets are also listed if they score up to this much less than a subset.
    """

    sense: ClassVar[Sense] = Sense.MAXIMISE
    capabilities: ClassVar[Capabilities] = frozenset({PARENT_SETS})  # type: ignore[misc]
    nodes: tuple[str, ...]
    starts: NDArray[np.int64]
    sets: Words
    scores: NDArray[np.float64]
    equivalent: bool = True
    complete: bool = True
    max_parents: int | None = None
    required: NDArray[np.bool_] | None = field(default=None, repr=False)
    slack: float = 0.0

    def __post_init__(self) -> None:
        d, lines = len(self.nodes), len(self.scores)
        if self.starts.shape != (d + 1,) or self.sets.shape != (lines, words_for(d)):
            raise SchemaError(
                f"A score table of {d} nodes and {lines} lines needs {d + 1} starts and sets of "
                f"shape {(lines, words_for(d))}; given are {self.starts.shape} and "
                f"{self.sets.shape}."
            )
        empty = [self.nodes[v] for v in range(d) if self.starts[v] == self.starts[v + 1]]
        if empty:
            raise SchemaError(f"A score table needs a parent set for each node; {empty} have none.")

    @classmethod
    def from_lists(
        cls,
        nodes: Sequence[str],
        lists: Sequence[Iterable[tuple[Iterable[int], float]]],
        *,
        equivalent: bool = True,
        complete: bool = True,
        max_parents: int | None = None,
    ) -> ScoreTable:
        """Build a table from ``(parents, score)`` pairs of each node, by index, in any order."""
        d = len(nodes)
        blocks = []
        for pairs in lists:
            listed = [(tuple(sorted(parents)), float(score)) for parents, score in pairs]
            block = np.zeros((len(listed), words_for(d)), np.uint64)
            for line, (parents, _) in enumerate(listed):
                for p in parents:
                    block[line, p // 64] |= np.uint64(1 << (p % 64))
            blocks.append((block, np.array([score for _, score in listed], np.float64)))
        return cls.from_blocks(
            nodes, blocks, equivalent=equivalent, complete=complete, max_parents=max_parents
        )

    @classmethod
    def from_blocks(
        cls,
        nodes: Sequence[str],
        blocks: Sequence[tuple[Words, NDArray[np.float64]]],
        *,
        equivalent: bool = True,
        complete: bool = True,
        max_parents: int | None = None,
        required: NDArray[np.bool_] | None = None,
        slack: float = 0.0,
    ) -> ScoreTable:
        """Build a table from the sets and the scores of each node, in any order."""
        sorted_blocks = [sort_block(sets, scores) for sets, scores in blocks]
        sizes = [len(scores) for _, scores in sorted_blocks]
        empty = np.empty((0, words_for(len(nodes))), np.uint64)
        return cls(
            tuple(nodes),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([empty, *(sets for sets, _ in sorted_blocks)]),
            np.concatenate([np.empty(0), *(scores for _, scores in sorted_blocks)]),
            equivalent=equivalent,
            complete=complete,
            max_parents=max_parents,
            required=required if required is not None and required.any() else None,
            slack=slack,
        )

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def words(self) -> int:
        """Number of words of a bitset."""
        return int(self.sets.shape[1])

    def lines(self, child: int) -> slice:
        """Return the range of lines of the parent sets of a node."""
        return slice(int(self.starts[child]), int(self.starts[child + 1]))

    def members(self, line: int) -> tuple[int, ...]:
        """Return the parents in one line, in ascending order."""
        return tuple(np.flatnonzero(unpack(self.sets[line], len(self.nodes))).tolist())

    def parent_sets(self, child: int) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield the parent sets of a node and their scores, best first."""
        lines = self.lines(child)
        for line in range(lines.start, lines.stop):
            yield self.members(line), float(self.scores[line])

    def best(self, child: int, allowed: Iterable[int]) -> tuple[tuple[int, ...], float]:
        """Return the best parent set of a node among allowed parents; -inf if there is none."""
        outside = ~pack_set(allowed, len(self.nodes))
        lines = self.lines(child)
        fits = ~(self.sets[lines] & outside).any(axis=1)
        if not fits.any():
            return (), float("-inf")
        line = lines.start + int(np.argmax(fits))
        return self.members(line), float(self.scores[line])

    def local(self, child: int, parents: Iterable[int]) -> float:
        """Return the score of a parent set; -inf if it is not listed."""
        bitset = pack_set(parents, len(self.nodes))
        lines = self.lines(child)
        same = (self.sets[lines] == bitset).all(axis=1)
        return float(self.scores[lines][np.argmax(same)]) if same.any() else float("-inf")

    def total(self, dag: DAG) -> float:
        """Return the score of a graph over the same nodes; -inf if a parent set is not listed."""
        position = {name: i for i, name in enumerate(self.nodes)}
        return sum(
            self.local(position[v], [position[p] for p in dag.parents(v)]) for v in dag.nodes
        )

    def restrict(self, knowledge: BoundKnowledge, max_parents: int | None = None) -> ScoreTable:
        """Return the table restricted to knowledge and a maximum number of parents.

        Forbidden edges can be applied to any table. Required edges must be given when the table is
        built, because sets that contain them may have been left out otherwise. Required parents are
        kept even if they exceed the maximum.
        """
        required = np.zeros_like(knowledge.required) if self.required is None else self.required
        new = knowledge.required & ~required
        if new.any():
            p, v = np.argwhere(new)[0]
            raise KnowledgeError(
                f"The edge {self.nodes[p]} → {self.nodes[v]} is required, but the score table was "
                "built without it. Give the knowledge when the table is built."
            )
        keep = np.ones(len(self), np.bool_)
        for v in range(len(self.nodes)):
            forbidden = pack_set(
                np.flatnonzero(knowledge.forbidden[:, v]).tolist(), len(self.nodes)
            )
            keep[self.lines(v)] = ~(self.sets[self.lines(v)] & forbidden).any(axis=1)
            if max_parents is not None:
                max_size = max(max_parents, int(required[:, v].sum()))
                sizes = unpack(self.sets[self.lines(v)], len(self.nodes)).sum(axis=1)
                keep[self.lines(v)] &= sizes <= max_size
            if not keep[self.lines(v)].any():
                raise KnowledgeError(
                    f"No listed parent set of {self.nodes[v]!r} agrees with the knowledge"
                    + ("." if max_parents is None else f" and has at most {max_parents} parents.")
                    + " Give the knowledge when the table is built."
                )
        if keep.all():
            return self
        counts = np.add.reduceat(keep.astype(np.int64), self.starts[:-1])
        return replace(
            self,
            starts=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            sets=self.sets[keep],
            scores=self.scores[keep],
            max_parents=self.max_parents if max_parents is None else max_parents,
        )

    def with_sets(self, found: Mapping[int, Sequence[tuple[Sequence[int], float]]]) -> ScoreTable:
        """Return a table with additional parent sets and scores.

        Sets that score no better than a new subset stay listed; they do not change results.
        """
        blocks = []
        for v in range(len(self.nodes)):
            sets, scores = self.sets[self.lines(v)], self.scores[self.lines(v)]
            if v in found:
                more = [pack_set(parents, len(self.nodes)) for parents, _ in found[v]]
                sets = np.concatenate([sets, more])
                scores = np.concatenate([scores, [score for _, score in found[v]]])
                order = np.argsort(-scores, kind="stable")
                sets, scores = sets[order], scores[order]
            blocks.append((sets, scores))
        sizes = [len(scores) for _, scores in blocks]
        return replace(
            self,
            starts=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            sets=np.concatenate([sets for sets, _ in blocks]),
            scores=np.concatenate([scores for _, scores in blocks]),
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table in the text format for local scores of other programs."""
        from isthmus.io.text import write_local_scores

        named = {
            node: [
                (score, tuple(self.nodes[p] for p in parents))
                for parents, score in self.parent_sets(v)
            ]
            for v, node in enumerate(self.nodes)
        }
        write_local_scores(named, path)

    @classmethod
    def load(cls, path: str | PathLike[str], *, equivalent: bool = True) -> ScoreTable:
        """Read a table from a file of local scores.

        The file does not state whether the score is equivalent or the list complete; the list is
        assumed to be complete.
        """
        from isthmus.io.text import read_local_scores

        named = read_local_scores(path)
        nodes = tuple(named)
        position = {name: i for i, name in enumerate(nodes)}
        lists = [
            [([position[p] for p in parents], score) for score, parents in named[node]]
            for node in nodes
        ]
        return cls.from_lists(nodes, lists, equivalent=equivalent)


def words_for(d: int) -> int:
    """Return the number of words of a bitset of d members."""
    return max(1, -(-d // 64))


def pack_set(members: Iterable[int], d: int) -> Words:
    """Return the bitset of some members."""
    words = np.zeros(words_for(d), np.uint64)
    for p in members:
        words[p // 64] |= np.uint64(1 << (p % 64))
    return words


def unpack(words: Words, d: int) -> NDArray[np.bool_]:
    """Return bitsets as Boolean arrays, with members along the last axis."""
    raw = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)
    return np.unpackbits(raw, axis=-1, bitorder="little")[..., :d].astype(np.bool_)


def sort_block(sets: Words, scores: NDArray[np.float64]) -> tuple[Words, NDArray[np.float64]]:
    """Sort the parent sets of a node: best first, ties by size and then by members."""
    sizes = unpack(sets, 64 * sets.shape[1]).sum(axis=1) if len(sets) else np.empty(0)
    order = np.lexsort((*(sets[:, w] for w in range(sets.shape[1])), sizes, -scores))
    return np.ascontiguousarray(sets[order]), np.ascontiguousarray(scores[order])


# --- Build score tables from local scores -------------------------------------------------------

Block = tuple[Words, Floats]
"""The parent sets of one node and their scores."""

FEW = 50
"""Up to this many nodes, part of the time is spent on listing sets by size."""
_SLICE = 0.01
"""Seconds of one step."""


def list_parent_sets(
    local: LocalScore,
    *,
    max_parents: int | None = None,
    knowledge: BoundKnowledge | None = None,
    slack: float = 0.0,
    bounded: bool = True,
    jobs: int = -1,
) -> ScoreTable:
    """Build the table of all parent sets that can be part of an optimal graph.

    Parameters
    ----------
    local
        The score. Its bound on supersets (``local.score_bound``) reduces the number of sets that
        are scored; the table is the same without it.
    max_parents
        Maximum number of parents; None for no maximum. Set it if there are many nodes and the score
        has no bound on supersets: otherwise all subsets are scored.
    knowledge
        Required and forbidden edges.
    slack
        Also list sets that score up to this much less than one of their subsets, which is needed to
        find all graphs that are nearly optimal.
    bounded
        Whether to use the bound of the score on supersets.
    jobs
        Number of threads; -1 for one per core. The table does not depend on it.
    """
    builder = TableBuilder(
        local, max_parents=max_parents, knowledge=knowledge, slack=slack, bounded=bounded, jobs=jobs
    )
    while not builder.step():
        pass
    return builder.table()


@final
class TableBuilder:
    """Builds a score table in short steps; see :func:`list_parent_sets`.

    Parameters
    ----------
    children
        The nodes whose parent sets are listed; all by default.
    quota
        Maximum number of sets to score per node; None for no maximum. With few nodes, half of them
        are the smallest sets and the others promising sets of any size. Unlike a time limit, it
        gives the same table on every machine.
    """

    def __init__(
        self,
        local: LocalScore,
        *,
        max_parents: int | None = None,
        knowledge: BoundKnowledge | None = None,
        slack: float = 0.0,
        bounded: bool = True,
        children: Iterable[int] | None = None,
        quota: int | None = None,
        jobs: int = -1,
    ) -> None:
        self._local = local
        self._knowledge = Knowledge().bind(local.nodes) if knowledge is None else knowledge
        self._max_parents = max_parents
        self._slack = slack
        self._jobs = (os.cpu_count() or 1) if jobs == -1 else jobs
        self._bound = local.score_bound if bounded else None
        self._children = list(range(len(local.nodes)) if children is None else children)
        self._native = self._builder(self._children, slack=slack, quota=quota, jobs=self._jobs)

    def _builder(
        self,
        children: list[int],
        *,
        most: int | None = None,
        slack: float = 0.0,
        quota: int | None = None,
        jobs: int = 1,
    ) -> _native.TableBuilder:
        limits = [limit for limit in (self._max_parents, most) if limit is not None]
        return _native.TableBuilder(
            self._local.kernel,
            None if self._bound is None else self._bound.kernel,
            required=self._knowledge.required,
            forbidden=self._knowledge.forbidden,
            max_parents=min(limits, default=None),
            slack=slack,
            children=np.array(children, np.int64),
            quota=quota,
            jobs=jobs,
        )

    def step(self) -> bool:
        """Score families for a few milliseconds; return whether all nodes are finished."""
        return self._native.step(_SLICE)

    def run_until(self, end: float | None) -> bool:
        """Run to the end, or until a monotonic time; return whether the list is complete.

        With few nodes, half of the time is spent on listing sets by size, which may finish. The
        rest is spent on promising sets of any size.
        """
        if end is None:
            while not self.step():
                pass
            return self._native.complete
        if len(self._local.nodes) <= FEW:
            half = 0.5 * (time.monotonic() + end)
            while time.monotonic() < half and not self._step_until(half):
                pass
        self._native.hurry()
        while not self._native.done:
            self._use_share(end)
        return self._native.complete

    def _use_share(self, end: float) -> None:
        """List the parent sets of the next children within their share of the time."""
        finished = self._native.finished
        now = time.monotonic()
        share = now + (end - now) * self._jobs / (self._native.children - finished)
        while not self._step_until(share) and self._native.finished == finished:
            if time.monotonic() >= share:
                self._native.skip()
                return

    def _step_until(self, end: float) -> bool:
        return self._native.step(min(_SLICE, max(0.0, end - time.monotonic())))

    def so_far(self, seconds: float) -> ScoreTable:
        """Return the table of the sets so far.

        Nodes that were not reached have their smallest parent set, and in the given time those of
        one parent.
        """
        if self._native.done:
            return self.table()
        starts, sets, scores = self._native.so_far()
        rest = self._builder(self._children[len(starts) - 1 :], most=1)
        rest.close()
        end = time.monotonic() + seconds
        while not rest.ready or (not rest.done and time.monotonic() < end):
            rest.step(_SLICE)
        more_starts, more_sets, more_scores = rest.table()
        return self._table(
            np.concatenate([starts, starts[-1] + more_starts[1:]]),
            np.concatenate([sets, more_sets]),
            np.concatenate([scores, more_scores]),
        )

    @property
    def scored(self) -> int:
        """Number of families scored so far."""
        return self._native.scored

    @property
    def done(self) -> float:
        """Fraction of the nodes that are finished."""
        return self._native.finished / max(1, self._native.children)

    def blocks(self) -> list[Block]:
        """Return the sets and scores of each child, once all are finished."""
        starts, sets, scores = self._native.table()
        return [(sets[first:last], scores[first:last]) for first, last in pairwise(starts.tolist())]

    def table(self) -> ScoreTable:
        """Return the table, once all nodes are finished."""
        return self._table(*self._native.table())

    def _table(self, starts: Integers, sets: Words, scores: Floats) -> ScoreTable:
        required = self._knowledge.required
        return ScoreTable(
            self._local.nodes,
            starts,
            sets,
            scores,
            equivalent=self._local.equivalent,
            complete=self._native.complete,
            max_parents=self._max_parents,
            required=required if required.any() else None,
            slack=self._slack,
        )
