"""Samplers by Markov chains over orders (`OrderMCMC`) and partitions (`PartitionMCMC`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import ArgumentError, DataError, MismatchError, counted
from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.kernels.mcmc import FamilyTables, SamplingRun, Space
from isthmus.kernels.orders import BossRun
from isthmus.objectives import LOCAL_SCORES, Capability, LocalScore, Objective
from isthmus.options import require_integer, require_jobs, require_number
from isthmus.results.details import ChainDetails, ExactPosteriorDetails, SamplerDetails
from isthmus.results.ensemble import unpack
from isthmus.results.features import check_numbers, check_positions, descendants
from isthmus.samplers.candidates import Candidates, Pairs
from isthmus.watch import Watch

# --- Base class of samplers, and what they return -----------------------------------------------
#
# A sampler is a frozen dataclass with the options; its method ``sample`` returns `Draws`. Time
# limits, progress and Ctrl-C are the business of `isthmus.watch.Watch`.

ObjectiveT_contra = TypeVar("ObjectiveT_contra", bound=Objective, contravariant=True)
Accepts: TypeAlias = tuple[Capability[Any], ...]
_WORD = 64


@final
@dataclass(frozen=True, eq=False)
class Draws:
    """Graphs drawn by a sampler: distinct graphs, and which of them each draw is.

    Attributes
    ----------
    parents
        Distinct graphs, of shape (graphs, nodes, words). Bit ``p`` of row ``v``, counted through
        its words of 64 bits, says whether node ``p`` is a parent of node ``v``.
    log_scores
        Logarithm of score times prior of each distinct graph, up to a constant.
    chains
        Position of the graph of each draw among the distinct graphs, of shape (chains, draws).
    log_weights
        Logarithm of the importance weight of each distinct graph, up to a constant; None if all
        draws count the same.
    edge_probabilities, path_probabilities
        Probabilities ``[from, to]`` of edges and of directed paths, if the sampler knows them
        better than its draws show them; otherwise None.
    chain_edges
        Edge probabilities by each chain, of shape (chains, nodes, nodes), if they are averages over
        more states than are kept as draws; otherwise None.
    independent
        Whether the draws are independent, not steps of a Markov chain.
    details
        Other results of the sampler: a record of `isthmus.results`.
    converged
        Whether the sampler did all the work it was asked for.
    conclusion
        Why the sampler came to its end, in one sentence.
    gap
        Always None: samplers prove no bound.
    """

    parents: NDArray[np.uint64]
    log_scores: NDArray[np.float64]
    chains: NDArray[np.int64]
    log_weights: NDArray[np.float64] | None = None
    edge_probabilities: NDArray[np.float64] | None = None
    path_probabilities: NDArray[np.float64] | None = None
    chain_edges: NDArray[np.float64] | None = None
    independent: bool = False
    details: Any = field(default_factory=SamplerDetails)
    converged: bool = True
    conclusion: str = ""
    gap: ClassVar[None] = None

    def __post_init__(self) -> None:
        if self.parents.ndim != 3 or self.parents.dtype != np.uint64:
            raise ArgumentError(
                "parents must be an array of unsigned 64-bit words of shape (graphs, nodes, "
                f"words); an array of {self.parents.dtype} of shape {self.parents.shape} was given."
            )
        graphs, nodes, words = self.parents.shape
        if words != -(-nodes // _WORD):
            raise ArgumentError(
                f"Parents of {nodes} nodes need {-(-nodes // _WORD)} words per node; {words} were "
                "given."
            )
        check_positions(self.chains, graphs)
        check_numbers({"log_scores": self.log_scores, "log_weights": self.log_weights}, (graphs,))
        check_numbers({"chain_edges": self.chain_edges}, (len(self.chains), nodes, nodes))

    @classmethod
    def from_sequence(
        cls,
        graphs: NDArray[np.uint64],
        log_scores: NDArray[np.float64],
        *,
        details: Any = None,
        **reported: Any,
    ) -> Draws:
        """Collect the distinct graphs of draws that are given one by one.

        Parameters
        ----------
        graphs
            Every draw, of shape (chains, draws, nodes, words), in the form of `parents`.
        log_scores
            Logarithm of score times prior of each draw, of shape (chains, draws).
        details
            Other results of the sampler.
        **reported
            Other attributes of `Draws`, such as ``edge_probabilities``.
        """
        chains, draws, nodes, words = graphs.shape
        rows = np.ascontiguousarray(graphs).reshape(chains * draws, nodes * words)
        # One string of bytes per graph: these are sorted much faster than rows of numbers.
        items = rows.astype(">u8").view(np.dtype((np.void, 8 * nodes * words)))
        _, first, inverse = np.unique(items.ravel(), return_index=True, return_inverse=True)
        return cls(
            rows[first].reshape(len(first), nodes, words),
            np.asarray(log_scores, np.float64).ravel()[first],
            inverse.reshape(chains, draws).astype(np.int64),
            details=SamplerDetails() if details is None else details,
            **reported,
        )


class Sampler(ABC, Generic[ObjectiveT_contra]):
    """Options of a sampler; implementations are frozen dataclasses.

    Attributes
    ----------
    accepts
        The capabilities of an objective that the sampler can work with; one of them is enough.
    bias
        A sentence for the notes of a posterior, if the draws do not follow it.
    chains
        Number of chains by default.
    """

    accepts: ClassVar[Accepts]
    bias: ClassVar[str] = ""
    chains: ClassVar[int] = 4

    @abstractmethod
    def sample(
        self,
        objective: ObjectiveT_contra,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
        *,
        draws: int,
        chains: int,
    ) -> Draws:
        """Return the draws made until the end, or until it is time to stop.

        Parameters
        ----------
        objective
            The logarithm of score times prior, as a sum over families.
        knowledge
            Required and forbidden edges: every graph drawn agrees with them.
        rng
            The only source of randomness.
        watch
            Says when to stop, and hears of progress.
        draws
            Number of graphs to keep from each chain, after burn-in and thinning.
        chains
            Number of independent chains.
        """


# --- Samplers by Markov chains over orders and over partitions -----------------------------------

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


# --- The exact posterior over graphs of up to about twenty variables ----------------------------

_MAX_NODES = 25


@final
@dataclass(frozen=True)
class ExactPosterior(Sampler[LocalScore]):
    """Exact probabilities of all edges and paths, and independent draws of graphs.

    The sum over all graphs is computed by dynamic programming over sets of variables, under a prior
    that is a product over families (a uniform prior over graphs, not over orders). It takes time on
    the order of 3^d and memory on the order of d 2^d: seconds for 18 variables, half a minute and
    0.4 GB for 20. The probabilities have no Monte Carlo error, and the draws are independent.

    Parameters
    ----------
    max_parents
        Maximum number of parents; None for no limit.
    max_memory
        Refuse problems that need more bytes of memory than this.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> posterior = ist.sample(numbers, sampler=ist.ExactPosterior(max_parents=3), draws=100)
    >>> posterior.edge_probabilities().shape
    (5, 5)
    """

    max_parents: int | None = None
    max_memory: float = 4e9
    accepts: ClassVar[Accepts] = (LOCAL_SCORES,)
    chains: ClassVar[int] = 1  # independent draws need no comparison

    def __post_init__(self) -> None:
        require_integer(self, "max_parents", least=0, optional=True)
        require_number(self, "max_memory", above=0)

    @staticmethod
    def memory(variables: int) -> float:
        """Return roughly how many bytes a problem with this number of variables needs."""
        return 2.0**variables * (10 * variables + 68)

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
        d = len(objective.nodes)
        if d > _MAX_NODES:
            raise MismatchError(
                f"ExactPosterior takes at most {_MAX_NODES} variables; there are "
                f"{d}. Leave out the sampler to get one that fits."
            )
        if self.memory(d) > self.max_memory:
            raise MismatchError(
                f"The exact posterior of {d} variables needs about {self.memory(d) / 1e9:.2g} GB "
                f"of memory, and max_memory allows {self.max_memory / 1e9:.2g} GB. Raise "
                "max_memory, or leave out the sampler to get one that fits."
            )
        seed = int(rng.integers(2**63))
        posterior = _native.ExactPosterior(
            objective.kernel,
            required=knowledge.required,
            forbidden=knowledge.forbidden,
            max_parents=self.max_parents,
        )
        sampler: _native.ExactSampler | None = None
        with watch.until_stopped():
            watch.run(
                lambda: posterior.step(_SLICE),
                lambda: ("summing over all graphs", -np.inf, posterior.progress),
            )
            watch.poll()
            if not np.isfinite(posterior.log_total):
                raise DataError(
                    "No graph has a finite score, or scores differ by more than 4e8, so there is "
                    "no posterior. Check the score, max_parents and the required edges."
                )
            drawing = sampler = _native.ExactSampler(posterior, seed)
            total = float(posterior.log_total)
            watch.run(
                lambda: drawing.step(draws * chains, _SLICE),
                lambda: (f"{drawing.draws} draws", total, None),
            )
        if sampler is None:
            return Draws.from_sequence(
                np.zeros((chains, 0, d, 1), np.uint64), np.zeros((chains, 0))
            )
        # An interrupted run keeps as many draws in each chain.
        kept = sampler.draws // chains
        count = kept * chains
        return Draws.from_sequence(
            sampler.parents()[:count].reshape(chains, kept, d, 1),
            sampler.scores()[:count].reshape(chains, kept),
            details=ExactPosteriorDetails(posterior.log_total, posterior.error, posterior.sets),
            edge_probabilities=posterior.edges(),
            path_probabilities=posterior.ancestors(),
            independent=True,
            conclusion="the probabilities are exact and the draws are independent.",
        )
