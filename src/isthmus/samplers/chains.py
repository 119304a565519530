"""Samplers by Markov chains over orders (`OrderMCMC`) and partitions (`PartitionMCMC`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.kernels.mcmc import FamilyTables, SamplingRun, Space
from isthmus.kernels.orders import BossRun
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.options import require_integer, require_jobs
from isthmus.plurals import counted
from isthmus.results.details import ChainDetails
from isthmus.results.ensemble import unpack
from isthmus.results.features import descendants
from isthmus.samplers.base import Accepts, Draws, Sampler, Watch
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


@dataclass(frozen=True)
class ChainSampler(Sampler[LocalScore]):
    """Base of `PartitionMCMC` and `OrderMCMC`, with the options of both.

    The weights of all parent sets among the candidates of a node, and of those with one more
    parent, are computed before the first draw. Edge probabilities are averages over all rounds
    after the warm-up of the exact probabilities given the state of the chain.

    Parameters
    ----------
    candidates
        Number of candidate parents per node, at most 20. By default all other variables if there
        are at most 20 variables; else tables grow where pilot chains show that weight is missing,
        until it is below 1% or the tables hold six million parent sets. A node may
        have any candidates and one other node as its parents. If all other variables are
        candidates, nothing is approximated; else parent sets with two or more other members are
        left out, which matters where the posterior is spread over many large parent sets.
    max_parents
        Maximum number of parents of a node; None for no limit. A limit makes the computation of
        slow scores much shorter.
    temperatures
        Number of temperatures (parallel tempering): chains at higher temperatures exchange states
        with the chain that is sampled from. 1 for none. Takes as many times longer.
    warm_up
        Number of rounds before the first draw; by default a quarter as many as for all draws, at
        most 200 per variable, and at least 100.
    thin
        Number of rounds per draw; by default two per variable, at least 4 and at most 25.
    jobs
        Number of threads among which chains are divided; -1 for one per core. Draws do not depend
        on it.
    """

    candidates: int | None = None
    max_parents: int | None = None
    temperatures: int = 1
    warm_up: int | None = None
    thin: int | None = None
    jobs: int = -1
    accepts: ClassVar[Accepts] = (LOCAL_SCORES,)
    space: ClassVar[Space]

    def __post_init__(self) -> None:
        require_integer(self, "candidates", least=0, optional=True)
        require_integer(self, "max_parents", least=0, optional=True)
        require_integer(self, "temperatures", least=1)
        require_integer(self, "warm_up", least=0, optional=True)
        require_integer(self, "thin", least=1, optional=True)
        require_jobs(self, "jobs")

    def sample(
        self,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
        *,
        draws: int,
        chains: int,
    ) -> Draws:
        run = _Chains(self, objective, knowledge, rng, watch, draws=draws, chains=chains)
        with watch.until_stopped():
            run.run()
        return run.draws()


@final
@dataclass(frozen=True)
class OrderMCMC(ChainSampler):
    """Draw graphs by Markov chains over orders of the variables; the draws are biased.

    The method is that of Friedman and Koller (Machine Learning 2003). A graph counts once for each
    order that it agrees with, so graphs that agree with many orders, above all those with few
    edges, get more weight than under a uniform prior over graphs. `PartitionMCMC` does not have
    this bias, but chains over orders mix faster. To correct the bias, weight each graph by one over
    the number of its orders.

    The options are those of `ChainSampler`.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> posterior = ist.sample(numbers, sampler=ist.OrderMCMC(), draws=100, chains=2, seed=1)
    >>> posterior.edge_probabilities().shape
    (5, 5)
    """

    space: ClassVar[Space] = Space.ORDERS
    bias: ClassVar[str] = (
        "Draws of OrderMCMC favour graphs that agree with many orders, above all those with few "
        "edges: most edges are less probable than under a uniform prior, also if the chains agree. "
        "PartitionMCMC does not have this bias."
    )


@final
@dataclass(frozen=True)
class PartitionMCMC(ChainSampler):
    """Draw graphs from the posterior by Markov chains over ordered partitions.

    The method is that of Kuipers and Moffa (Journal of the American Statistical Association 2017).
    Every graph belongs to exactly one partition, so draws follow the posterior under a uniform
    prior over graphs, unlike those of `OrderMCMC`. A round moves nodes to places drawn from all
    their possible places, swaps nodes, splits and merges elements, reverses edges (Grzegorczyk and
    Husmeier 2008), and draws new parents of six nodes at once from their exact distribution given
    the rest of the graph.

    The options are those of `ChainSampler`.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> posterior = ist.sample(numbers, sampler=ist.PartitionMCMC(), draws=100, chains=2, seed=1)
    >>> posterior.edge_probabilities().shape
    (5, 5)
    """

    space: ClassVar[Space] = Space.PARTITIONS


def default_thin(variables: int) -> int:
    """Return the number of rounds per draw.

    It keeps errors of edge probabilities below 0.02 for 14 variables with the default number of
    draws and chains; see ``benchmarks/posterior/accuracy.py``.
    """
    return max(4, min(2 * variables, 25))


@final
class _Chains:
    """What chains need: a graph to start from for each, candidate parents, tables, then moves.

    Parameters
    ----------
    options
        Options of the sampler.
    objective, knowledge, rng, watch, draws, chains
        As for ``Sampler.sample``.
    """

    def __init__(
        self,
        options: ChainSampler,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
        *,
        draws: int,
        chains: int,
    ) -> None:
        self._options = options
        self._jobs = max(options.jobs, 0)
        self._kernel = objective.kernel
        self._knowledge = knowledge
        self._rng, self._watch = rng, watch
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

    def run(self) -> None:
        """Find starts and candidates, and draw."""
        self._find_starts()
        for pilot in range(_PILOTS + 1):
            self._build_tables()
            if self._candidates.complete or pilot == _PILOTS:
                break
            run = self._sampling(max(50, 2 * len(self._starts[0])), 2, _PILOT_DRAWS)
            self._work(run.step, "pilot chains")
            edges = run.edges().mean(axis=0)
            exchanged = self._candidates.exchange(edges, _LEAST_GAIN)
            self._exchanged += exchanged
            self._weigh_missing(run)
            if exchanged + self._candidates.grow(self._missing) == 0:
                break
        chains = self._run = self._sampling(self._warm_up, self._thin, self._draws)
        self._watch.run(
            lambda: chains.step(_SLICE, self._jobs),
            lambda: ("chains", self._best, chains.progress),
        )
        if not self._candidates.complete:
            self._weigh_missing(self._run)
            self._left_out = sum(
                float(weights.sum()) for own in self._missing.values() for _, _, weights in own
            )

    def _work(self, step: Callable[[float, int], bool], text: str) -> None:
        self._watch.run(lambda: step(_SLICE, self._jobs), lambda: (text, self._best, None))

    def _weigh_missing(self, run: SamplingRun) -> None:
        """Estimate the weight of graphs in which one node has two parents that are no candidates.

        Each arises by adding either of them to a graph that can be drawn, so the weight relative to
        that of all these graphs is the expectation of half the ratios of weights.
        """
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
            self._watch.poll("weight of left-out parent sets", self._best)

    def _find_starts(self) -> None:
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
                self._watch.poll("starts", self._best)
            graph, score = search.best()
            self._starts.append(graph)
            self._best = max(self._best, score)
            self._watch.poll("starts", self._best)
        for child in range(self._kernel.size):
            self._candidates.rank(child, self._starts)
            self._watch.poll("candidate parents", self._best)

    def _build_tables(self) -> None:
        self._tables = FamilyTables(
            self._kernel,
            self._candidates.matrix(),
            required=self._knowledge.required,
            forbidden=self._knowledge.forbidden,
            max_parents=self._options.max_parents,
            previous=self._tables,
        )
        self._work(self._tables.step, "scores of parent sets")

    def _sampling(self, warm_up: int, thin: int, draws: int) -> SamplingRun:
        assert self._tables is not None
        return SamplingRun(
            self._tables,
            self._options.space,
            self._starts,
            self._rng,
            levels=self._options.temperatures,
            warm_up=warm_up,
            thin=thin,
            draws=draws,
        )

    def draws(self) -> Draws:
        """Return the draws so far."""
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
        each = "" if self._chains == 1 else " each"
        return Draws.from_sequence(
            graphs,
            scores,
            details=details,
            chain_edges=edges,
            conclusion=(
                f"{counted(self._chains, 'chain')} made {counted(self._draws, 'draw')}{each}."
            ),
        )
