"""Exact search by A* on the order graph, with pattern databases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.graphs.names import bits
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.objectives.table import Words
from isthmus.options import require_integer
from isthmus.results.details import ExactDetails
from isthmus.searches.base import (
    Accepts,
    Search,
    SearchResult,
    TableLines,
    TableStage,
    best_graph,
    first_graph,
    parents_of,
)
from isthmus.searches.near_best import Choice, Component, PartSearch, enumerate_near_best
from isthmus.searches.solver import ExactSolver, check_exact_options
from isthmus.watch import Say, Watch

_SINGLE = 12
"""Components up to this size use one pattern, which is dynamic programming."""


@final
@dataclass(frozen=True)
class AStar(Search[LocalScore]):
    """Exact search by A* over sets of placed nodes (Yuan and Malone 2013).

    Finds a provably optimal graph from the parent sets that can be part of one. Each strongly
    connected component of the graph of possible parents (at most 64 nodes) is solved separately.
    Suitable for up to about 30 nodes, or more if the parent sets split the problem; :class:`ILP`
    can solve larger problems.

    Parameters
    ----------
    max_parents
        Maximum number of parents of a node; None for no limit.
    n_best
        Number of best graphs to list in ``details.networks``: pairs of a graph and its score, best
        first, each proven to be the next best. No other graph scores more than
        ``details.networks_bound``.
    bayes_factor
        List only graphs that are at most this many times less probable than the best one. This is
        the Bayes factor if the score is a marginal likelihood.
    pattern
        Maximum number of nodes per pattern database; its table has ``2**pattern`` entries.
    max_states
        Maximum number of states in memory (about 60 bytes each). If it is reached, the best graph
        so far is returned with a gap.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> print(ist.learn(data, score=ist.BIC(), search=ist.AStar()).status)
    optimal: no graph scores higher.
    """

    max_parents: int | None = None
    n_best: int = 1
    bayes_factor: float | None = None
    pattern: int = 20
    max_states: int = 40_000_000
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        check_exact_options(self)
        require_integer(self, "pattern", least=1)
        require_integer(self, "max_states", least=1)

    def search(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        return ExactSolver(
            self,
            objective,
            knowledge,
            rng,
            watch,
            self._open,
            largest=64,
            gave_up="the limit of states was reached; increase max_states or use ILP().",
        ).solve()

    def _open(
        self, part: Component, lines: list[int], known_score: float, slack: float | None
    ) -> ComponentSearch:
        return ComponentSearch(
            part,
            known_score,
            n_best=self.n_best,
            slack=slack,
            pattern=self.pattern,
            max_states=self.max_states,
        )


@final
class ComponentSearch(PartSearch):
    """A running A* search on one component.

    Parameters
    ----------
    part
        The nodes and their parent sets.
    known
        Score of a known graph.
    n_best
        Number of best graphs to list.
    slack
        None to find one optimal graph; otherwise list graphs that score at most this much less.
    pattern
        Maximum number of nodes per pattern database.
    max_states
        Maximum number of states in memory.
    """

    def __init__(
        self,
        part: Component,
        known: float,
        *,
        n_best: int,
        slack: float | None,
        pattern: int,
        max_states: int,
    ) -> None:
        self._part = part
        self._known = known
        self._networks = n_best
        self._slack = slack
        self._graph: _native.OrderGraph | None = None
        self._graphs: list[Choice] = []
        self._pattern, self._max_states = pattern, max_states

    def run(self, watch: Watch, say: Say) -> None:
        """Compute patterns, expand states, and list graphs."""
        groups = group_nodes(self._part, self._pattern, watch)
        self._part = renumber(self._part, [i for group in groups for i in group], watch)
        self._graph = graph = _native.OrderGraph(
            self._part.starts,
            np.ascontiguousarray(self._part.sets[:, 0]),
            self._part.scores,
            groups=np.array([len(group) for group in groups], np.int64),
            known=self._known,
            slack=self._slack,
            max_states=self._max_states,
        )
        watch.run(graph.step, say)
        if self._slack is not None and not graph.gave_up:
            self._graphs = enumerate_near_best(
                self._part, graph.value, graph.known - self._slack, self._networks, watch
            )

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of expanded states."""
        return {"expanded": 0 if self._graph is None else self._graph.expanded}

    @property
    def gap(self) -> float:
        if self._graph is None:
            return max(0.0, float(self._part.tops.sum()) - self._known)
        return self._graph.bound - self._graph.known

    def better_lines(self) -> Iterator[tuple[int, int]]:
        if self._graph is not None:
            chosen = self._graph.lines()
            yield from zip(self._part.nodes, self._part.lines[chosen].tolist(), strict=False)

    def near_best(self) -> tuple[list[Choice], float]:
        """Return the best graphs, best first; none before all relevant states are expanded."""
        if not self._graphs or self._graph is None or self._slack is None:
            known = self._known if self._graph is None else self._graph.known
            return [], known + self.gap
        full = len(self._graphs) == self._networks
        return self._graphs, self._graphs[-1][0] if full else self._graph.known - self._slack

    def describe(self) -> str:
        size = len(self._part)
        if self._graph is None or not self._graph.searching:
            return f"patterns of a component of {size} nodes"
        return f"{self._graph.expanded} states of a component of {size} nodes"


def group_nodes(part: Component, max_size: int, watch: Watch) -> list[list[int]]:
    """Group nodes that compete with each other into the same pattern, as far as they fit."""
    m = len(part)
    if m <= min(max_size, _SINGLE):
        return [list(range(m))]
    alone = np.empty((m, m))
    for v in range(m):
        span = part.span(v)
        alone[:, v] = _loss_without(part.sets[span, 0], part.scores[span], m)
        watch.poll()
    # If two nodes are good parents of each other, only one of the edges can be used.
    rival = np.minimum(alone, alone.T)
    weight = rival + 1e-3 * (alone + alone.T)
    count = max(2, -(-m // max_size))
    return _merge_groups(weight, -(-m // count), watch)


def _loss_without(masks: Words, scores: Floats, m: int) -> Floats:
    """Return how much a node loses if it may not have each of the others as a parent."""
    loss = np.full(m, 1e6)
    common = (1 << m) - 1  # in all sets so far
    shared = np.bitwise_and.accumulate(masks)
    changes = np.flatnonzero(np.diff(shared, prepend=~np.uint64(0)))
    for line in changes.tolist():
        now = int(shared[line])
        for p in bits(common & ~now):
            loss[p] = scores[0] - scores[line]
        common &= now
    return loss


def _merge_groups(weight: Floats, room: int, watch: Watch) -> list[list[int]]:
    """Merge the two groups with the largest mean weight, as long as any two fit together."""
    m = len(weight)
    groups: list[list[int]] = [[v] for v in range(m)]
    ties = np.where(np.tri(m, k=-1, dtype=np.bool_), weight, -np.inf)
    if room < 2:
        return groups
    while True:
        i, j = divmod(int(np.argmax(ties)), m)
        if ties[i, j] == -np.inf:
            return [group for group in groups if group]
        groups[j] = sorted(groups[j] + groups[i])
        groups[i] = []
        for k, other in enumerate(groups):
            ties[max(i, k), min(i, k)] = -np.inf
            if k != j:
                fits = bool(other) and len(other) + len(groups[j]) <= room
                a, b = max(j, k), min(j, k)
                ties[a, b] = _tie(weight, groups[a], groups[b]) if fits else -np.inf
        watch.poll()


def _tie(weight: Floats, a: list[int], b: list[int]) -> float:
    return float(weight[np.ix_(a, b)].sum()) / min(len(a), len(b))


def renumber(part: Component, order: list[int], watch: Watch) -> Component:
    """Put the nodes of a component of at most 64 nodes in another order."""
    starts, sets, index = [0], [], []
    one = np.uint64(1)
    for i in order:
        span = part.span(i)
        masks = part.sets[span, 0]
        moved = np.zeros_like(masks)
        for new, old in enumerate(order):
            moved |= (masks >> np.uint64(old) & one) << np.uint64(new)
        sets.append(moved)
        index.append(np.arange(span.start, span.stop))
        starts.append(starts[-1] + len(masks))
        watch.poll()
    lines = np.concatenate(index)
    return Component(
        tuple(part.nodes[i] for i in order),
        np.array(starts, np.int64),
        np.concatenate(sets)[:, None],
        part.scores[lines],
        part.lines[lines],
    )


# --- Exact search by dynamic programming over all subsets of the nodes --------------------------

_MAX_NODES = 28


@final
@dataclass(frozen=True)
class SubsetDP(Search[LocalScore]):
    """Exact search by dynamic programming over all subsets (Silander and Myllymäki 2006).

    Finds a provably optimal graph. Time and memory double with each node, so it is suitable for up
    to about 25 nodes. It is the simplest exact search and the reference for the others;
    :class:`AStar` gives the same result faster.

    Parameters
    ----------
    max_parents
        Maximum number of parents of a node; None for no limit.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> print(ist.learn(numbers, search=ist.SubsetDP()).status)
    optimal: no graph scores higher: every subset was solved.
    """

    max_parents: int | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        require_integer(self, "max_parents", least=0, optional=True)

    def search(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        d = len(objective.nodes)
        if d > _MAX_NODES:
            raise MismatchError(
                f"SubsetDP visits every subset of the nodes, so it accepts at most {_MAX_NODES} "
                f"nodes; {d} were given. Use AStar() or ILP()."
            )
        stage = TableStage(objective, knowledge, self.max_parents)
        first: SearchResult | None = None
        subsets: _native.SubsetDP | None = None
        with watch.until_stopped():
            table = stage.listed(watch)
            chosen, total = first_graph(TableLines(table, watch), rng, watch)
            details = ExactDetails(None, None, len(table))
            first = SearchResult(parents_of(table, chosen), total, details)
            masks = np.ascontiguousarray(table.sets[:, 0])
            subsets = _native.SubsetDP(table.starts, masks, table.scores)
            text = f"of {2**d} subsets"
            watch.run(
                subsets.step, lambda: (f"{subsets.solved} {text}", total, subsets.solved / 2**d)
            )
        if first is None:
            return stage.fallback(rng)
        if subsets is None or not subsets.done:
            return first
        lines = subsets.lines()
        score = float(table.scores[lines].sum())
        gap = 0.0 if table.complete else None
        bound = None if gap is None else score
        claim = best_graph(knowledge, self.max_parents, table)
        return SearchResult(
            parents_of(table, lines),
            score,
            ExactDetails(bound, gap, len(table), d, {"subsets": 2**d}),
            gap,
            conclusion=f"{claim}: every subset was solved.",
        )
