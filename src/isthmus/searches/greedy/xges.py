"""Extremely greedy equivalence search (XGES).

Nazaret and Blei, UAI 2024. A search over equivalence classes that prefers deletions, and that at a
local optimum tests whether forcing the deletion of an edge leads to a better optimum.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError
from isthmus.graphs import DAG, BoundKnowledge
from isthmus.graphs.bits import bits
from isthmus.graphs.orientation import Mixed, consistent_extension
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.options import require_integer
from isthmus.searches.base import Accepts, Run, Search, SearchResult

_CHUNK = 2000  # evaluations between two polls of the driver


@final
@dataclass(frozen=True)
class XGES(Search[LocalScore]):
    """Extremely greedy equivalence search over CPDAGs (Nazaret and Blei 2024).

    Each step applies the best deletion that improves the score; if there is none, the best
    reversal; if there is none, the best insertion. Operators that lead to a class without a member
    that agrees with the background knowledge are skipped.

    Parameters
    ----------
    extended
        At a local optimum, force the deletion of each edge in turn, continue the search from
        there, and keep the result if it is better.
    max_parents
        Maximum number of parents of a node; None for no limit.
    """

    extended: bool = True
    max_parents: int | None = None
    accepts: ClassVar[Accepts] = (LOCAL_SCORES,)

    def __post_init__(self) -> None:
        require_integer(self, "max_parents", least=0, optional=True)

    def begin(
        self, objective: LocalScore, knowledge: BoundKnowledge, rng: np.random.Generator
    ) -> Run[SearchResult]:
        """Start a run; it uses no random numbers."""
        if not objective.equivalent:
            raise MismatchError(
                "XGES searches over equivalence classes, but this score gives equivalent graphs "
                "different values. Use a score-equivalent score, such as BIC, BDeu, GaussianBIC "
                "or BGe, or another search, such as Boss() or HillClimb()."
            )
        return _XGESRun(self, objective, knowledge)


class _Phase(Enum):
    SCORING = auto()
    CLIMBING = auto()
    PLANNING = auto()
    TRYING = auto()


@final
class _XGESRun(Run[SearchResult]):
    def __init__(self, options: XGES, objective: LocalScore, knowledge: BoundKnowledge) -> None:
        from isthmus.numerics import xges, xges_graph, xges_operators, xges_rows

        d = len(objective.nodes)
        self._kernels = xges
        self._operators = xges_operators
        self._rows = xges_rows
        self._saved_layer = xges_graph.SAVED
        self._objective = objective
        self._knowledge = knowledge
        self._extended = options.extended
        self._rules = xges_rows.new_rules(
            knowledge.required, knowledge.forbidden, options.max_parents
        )
        self._asking = xges_rows.new_asking(d)
        self._known = xges_rows.new_known(1 << max(12, (64 * d).bit_length()), 64 * d + d * d + 64)
        self._place = xges_operators.new_place(d)
        if knowledge.required.any():
            self._start_from(knowledge.required)
        self._phase = _Phase.SCORING
        self._trials: list[int] = []
        self._failed: set[tuple[int, int, bytes]] = set()

    def _start_from(self, required: NDArray[np.bool_]) -> None:
        """Start from the equivalence class of the required edges."""
        nodes = self._objective.nodes
        pattern = DAG.from_adjacency(nodes, required).cpdag()
        directed = np.zeros((len(nodes), len(nodes)), np.bool_)
        undirected = directed.copy()
        for a, b in pattern.directed:
            directed[nodes.index(a), nodes.index(b)] = True
        for a, b in pattern.undirected:
            undirected[nodes.index(a), nodes.index(b)] = True
        undirected |= undirected.T
        layers = (directed.T, directed, undirected, directed | directed.T | undirected)
        self._place.bits[: 4 * len(nodes)] = _pack(np.concatenate(layers))

    def step(self) -> bool:
        """Apply one operator, or continue the trial of one forced deletion."""
        if self._phase is _Phase.SCORING:
            self._place.total[0] = self._class_at(0).score
            self._phase = _Phase.CLIMBING
            return False
        if self._phase is _Phase.PLANNING:
            return self._begin_trial()
        code = self._climb(1 if self._phase is _Phase.CLIMBING else 100)
        if code == self._kernels.REFUSED:
            return self._end_trial()
        if code != self._kernels.OPTIMUM:
            return False
        if self._phase is _Phase.TRYING:
            return self._end_trial()
        return self._plan_trials()

    def _plan_trials(self) -> bool:
        """List the deletions to force, the least costly last; return whether the search is done."""
        if not self._extended:
            return True
        place, operators = self._place, self._operators
        place.numbers[0, operators.LISTED_TRIALS] = 0
        place.flags[operators.STALE] = 1
        self._climb(1)
        count = place.numbers[0, operators.LISTED_TRIALS]
        place.numbers[0, operators.LISTED_TRIALS] = -1
        operators.save(place)
        self._trials = np.argsort(place.worth[:count], kind="stable").tolist()
        self._phase = _Phase.PLANNING
        return False

    def _begin_trial(self) -> bool:
        """Force the next deletion that has not failed with the same neighbourhood before."""
        place, operators = self._place, self._operators
        d = len(self._objective.nodes)
        while self._trials:
            i = self._trials.pop()
            x, y = place.trials[:, i].tolist()
            around = place.bits[[layer * d + v for layer in range(3) for v in (x, y)]]
            key = (x, y, place.sets[i].tobytes() + around.tobytes())
            if key in self._failed:
                continue
            self._failed.add(key)
            operators.force(place, i)
            self._phase = _Phase.TRYING
            return False
        return True

    def _end_trial(self) -> bool:
        place, operators = self._place, self._operators
        if place.total[0] > place.total[1] + self._rows.TOLERANCE:
            operators.lift_ban(place)
            self._phase = _Phase.CLIMBING
        else:
            operators.save(place, 1, 0)
            self._phase = _Phase.PLANNING
        return False

    def _climb(self, most_steps: int) -> int:
        """Apply operators, enlarging the cache when the kernel needs it; return its code."""
        while True:
            code = self._kernels.climb(
                self._objective.handle,
                self._place,
                self._asking,
                self._known,
                self._rules,
                most_steps,
                _CHUNK,
            )
            if code == self._rows.SCORE_FAILED:
                self._objective.raise_failure()
                raise RuntimeError("a compiled score failed and gave no reason; please report this")
            if code == self._kernels.BROKEN:
                raise RuntimeError(
                    "an operator led to an invalid graph; this is a bug, please report it"
                )
            if code != self._rows.NEEDS_ROOM:
                return int(code)
            self._known = self._rows.enlarge(self._known)

    def best(self) -> SearchResult:
        """Return a member of the best equivalence class so far."""
        total = self._place.total
        # During a trial, the saved class is the one to return to.
        saved = self._phase is _Phase.TRYING and total[1] >= total[0]
        return self._class_at(self._saved_layer if saved else 0)

    def _class_at(self, layer: int) -> SearchResult:
        """Return a member of the class stored at a layer of bits that agrees with the knowledge."""
        d = len(self._objective.nodes)
        rows = self._place.bits[layer * d : (layer + 3) * d]
        masks = [int.from_bytes(row.tobytes(), "little") for row in rows]
        graph = Mixed(masks[:d], masks[2 * d :])
        known = self._knowledge.required | self._knowledge.forbidden.T
        for a, b in np.argwhere(known).tolist():
            if graph.neighbours[a] >> b & 1:
                graph.orient(a, b)
        member = consistent_extension(graph.parents, graph.neighbours)
        if member is None:
            raise RuntimeError(
                "no member of a class agrees with the knowledge; this is a bug, please report it"
            )
        parents = tuple(tuple(bits(mask)) for mask in member)
        return SearchResult(
            parents, sum(self._objective.local(v, p) for v, p in enumerate(parents))
        )

    def describe(self) -> tuple[str, float, float | None]:
        """Report the number of changes, or of deletions that are left to try."""
        score = float(self._place.total.max())
        if self._trials:
            return f"{len(self._trials)} deletions left to try", score, None
        changes = self._place.numbers[0, self._operators.STEPS]
        return f"{changes} changes", score, None

    def conclusion(self) -> str:
        """Explain why the search stopped."""
        if self._extended:
            return (
                "no edge insertion, deletion or reversal improves the score, even after forcing a "
                "deletion."
            )
        return "no edge insertion, deletion or reversal improves the score."


def _pack(sets: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Pack rows of Booleans into 64-bit words, element 0 in the lowest bit."""
    rows, d = sets.shape
    padded = np.zeros((rows, -(-d // 64) * 64), np.bool_)
    padded[:, :d] = sets
    return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)
