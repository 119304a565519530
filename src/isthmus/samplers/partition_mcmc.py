"""Partition MCMC: Markov chains over ordered partitions of the variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from isthmus.kernels.mcmc import Space
from isthmus.samplers.chain_sampler import ChainSampler


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
