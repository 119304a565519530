"""Samplers by Markov chains over orders (`OrderMCMC`) and partitions (`PartitionMCMC`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.kernels.mcmc import Space
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.options import require_integer, require_jobs
from isthmus.samplers.base import Accepts, Draws, Run, Sampler
from isthmus.samplers.chain_run import ChainRun


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

    def begin(
        self,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        *,
        draws: int,
        chains: int,
    ) -> Run[Draws]:
        return ChainRun(self, self.space, objective, knowledge, rng, draws=draws, chains=chains)


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
