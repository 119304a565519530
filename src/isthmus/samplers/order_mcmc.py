"""Order MCMC: Markov chains over orders of the variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from isthmus.kernels.mcmc import Space
from isthmus.samplers.chain_sampler import ChainSampler


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
