"""The run that order and partition sampling share: starts, tables, chains."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.kernels.mcmc import FamilyTables, SamplingRun, Space
from isthmus.kernels.orders import BossRun
from isthmus.objectives import LocalScore
from isthmus.plurals import counted
from isthmus.results.details import ChainDetails
from isthmus.results.ensemble import unpack
from isthmus.results.features import descendants
from isthmus.samplers.base import Draws, Run
from isthmus.samplers.candidates import Candidates, Pairs

_SLICE = 0.02
_PILOT_DRAWS = 200
_PILOTS = 3
"""Candidates are exchanged and added at most this many times."""
_LEAST_GAIN = 0.05
"""A parent becomes a candidate if the pilot draws it this much more often than a candidate."""


_HIGHEST_GAIN = 50.0
_LEFT_OUT_DRAWS = 400
"""Draws from which the weight of left-out parent sets is estimated; fewer of many variables."""
_LEFT_OUT_PAIRS = 2**24


class ChainOptions(Protocol):
    """The options that both samplers have; None means a default that depends on the problem."""

    @property
    def candidates(self) -> int | None:
        """Number of candidate parents per node."""

    @property
    def max_parents(self) -> int | None:
        """Maximum number of parents of a node."""

    @property
    def temperatures(self) -> int:
        """Number of temperatures."""

    @property
    def warm_up(self) -> int | None:
        """Number of rounds before the first draw."""

    @property
    def thin(self) -> int | None:
        """Number of rounds per draw."""

    @property
    def jobs(self) -> int:
        """Number of threads."""


def default_thin(variables: int) -> int:
    """Return the number of rounds per draw.

    It keeps errors of edge probabilities below 0.02 for 14 variables with the default number of
    draws and chains; see ``benchmarks/posterior/accuracy.py``.
    """
    return max(4, min(2 * variables, 25))


@final
class ChainRun(Run[Draws]):
    """Chains in progress: a graph to start from for each, candidate parents, tables, then moves.

    Parameters
    ----------
    options
        Options of the sampler.
    space
        State space of the chains.
    objective, knowledge, rng, draws, chains
        As for ``Sampler.begin``.
    """

    def __init__(
        self,
        options: ChainOptions,
        space: Space,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        *,
        draws: int,
        chains: int,
    ) -> None:
        self._options = options
        self._jobs = max(options.jobs, 0)
        self._space = space
        self._kernel = objective.kernel
        self._knowledge = knowledge
        self._rng = rng
        self._draws = draws
        self._chains = chains
        d = len(objective.nodes)
        self._thin = default_thin(d) if options.thin is None else options.thin
        warm_up = max(100, min(draws * self._thin // 4, 200 * d))
        self._warm_up = warm_up if options.warm_up is None else options.warm_up
        self._candidates = Candidates(self._kernel, knowledge, options.candidates)
        self._exchanged = 0
        self._missing: dict[int, list[Pairs]] = {}
        self._left_out: float | None = 0.0 if self._candidates.complete else None
        self._most_parents = d if options.max_parents is None else options.max_parents
        self._starts: list[tuple[tuple[int, ...], ...]] = []
        self._best = -np.inf
        self._tables: FamilyTables | None = None
        self._run: SamplingRun | None = None
        self._text = "starts"
        self._stages = self._work()

    def step(self) -> bool:
        return next(self._stages, None) is None

    def _work(self) -> Iterator[bool]:
        """Do everything, a few milliseconds at a time."""
        yield from self._find_starts()
        for pilot in range(_PILOTS + 1):
            yield from self._build_tables()
            if self._candidates.complete or pilot == _PILOTS:
                break
            self._text = "pilot chains"
            run = self._sampling(max(50, 2 * len(self._starts[0])), 2, _PILOT_DRAWS)
            while not run.step(_SLICE, self._jobs):
                yield True
            edges = run.edges().mean(axis=0)
            exchanged = self._candidates.exchange(edges, _LEAST_GAIN)
            self._exchanged += exchanged
            yield from self._weigh_missing(run)
            if exchanged + self._candidates.grow(self._missing) == 0:
                break
        self._text = "chains"
        self._run = self._sampling(self._warm_up, self._thin, self._draws)
        while not self._run.step(_SLICE, self._jobs):
            yield True
        if not self._candidates.complete:
            yield from self._weigh_missing(self._run)
            self._left_out = sum(
                float(weights.sum()) for own in self._missing.values() for _, _, weights in own
            )

    def _weigh_missing(self, run: SamplingRun) -> Iterator[bool]:
        """Estimate the weight of graphs in which one node has two parents that are no candidates.

        Each arises by adding either of them to a graph that can be drawn, so the weight relative to
        that of all these graphs is the expectation of half the ratios of weights.
        """
        self._text = "weight of left-out parent sets"
        graphs, _ = run.draws()
        rows = graphs.reshape(-1, *graphs.shape[2:])
        most = min(_LEFT_OUT_DRAWS, max(20, _LEFT_OUT_PAIRS // self._kernel.size**2))
        rows = rows[:: max(1, len(rows) // most)]
        self._missing = {}
        for adjacency in unpack(rows):
            below = descendants(adjacency[None])[0]
            for child, own in enumerate(adjacency.T):
                extra = self._candidates.outside(child)
                first = np.flatnonzero(own & extra)
                if len(first) == 0 or own.sum() >= self._most_parents:
                    continue
                others = np.flatnonzero(extra & ~own & ~below[child])
                gains = self._candidates.gains(child, own, others)
                weights = 0.5 * np.exp(np.minimum(gains, _HIGHEST_GAIN)) / len(rows)
                self._missing.setdefault(child, []).append((int(first[0]), others, weights))
            yield True

    def _find_starts(self) -> Iterator[bool]:
        """Find a good graph for each chain, from a random order of its own."""
        for rng in self._rng.spawn(self._chains):
            search = BossRun(
                self._kernel,
                rng,
                starts=1,
                required=self._knowledge.required,
                forbidden=self._knowledge.forbidden,
                max_parents=self._options.max_parents,
            )
            while not search.step(_SLICE):
                self._best = max(self._best, search.score)
                yield True
            graph, score = search.best()
            self._starts.append(graph)
            self._best = max(self._best, score)
            yield True
        self._text = "candidate parents"
        for child in range(self._kernel.size):
            self._candidates.rank(child, self._starts)
            yield True

    def _build_tables(self) -> Iterator[bool]:
        self._text = "scores of parent sets"
        self._tables = FamilyTables(
            self._kernel,
            self._candidates.matrix(),
            required=self._knowledge.required,
            forbidden=self._knowledge.forbidden,
            max_parents=self._options.max_parents,
            previous=self._tables,
        )
        while not self._tables.step(_SLICE, self._jobs):
            yield True

    def _sampling(self, warm_up: int, thin: int, draws: int) -> SamplingRun:
        assert self._tables is not None
        return SamplingRun(
            self._tables,
            self._space,
            self._starts,
            self._rng,
            levels=self._options.temperatures,
            warm_up=warm_up,
            thin=thin,
            draws=draws,
        )

    def best(self) -> Draws:
        details = ChainDetails(
            candidates=self._candidates.count,
            exchanged=self._exchanged,
            families=0 if self._tables is None else self._tables.families,
            warm_up=self._warm_up,
            thin=self._thin,
            left_out=self._left_out,
        )
        if self._run is None:
            d = self._kernel.size
            graphs = np.zeros((self._chains, 0, d, -(-d // 64)), np.uint64)
            scores = np.zeros((self._chains, 0))
            edges = None
        else:
            graphs, scores = self._run.draws()
            edges = self._run.edges() if scores.size > 0 else None
        return Draws.from_sequence(graphs, scores, details=details, chain_edges=edges)

    def describe(self) -> tuple[str, float, float | None]:
        done = None if self._run is None else self._run.progress
        return self._text, self._best, done

    def conclusion(self) -> str:
        draws = counted(self._draws, "draw")
        each = "" if self._chains == 1 else " each"
        return f"{counted(self._chains, 'chain')} made {draws}{each}."
