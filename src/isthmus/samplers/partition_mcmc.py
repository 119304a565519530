"""Partition MCMC: Markov chains over ordered partitions of the variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.graphs import BoundKnowledge
from isthmus.kernels.mcmc import Space
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.samplers.base import Accepts, Draws, Run, Sampler
from isthmus.samplers.chain_run import ChainRun, check_options


@final
@dataclass(frozen=True)
class PartitionMCMC(Sampler[LocalScore]):
    """Draw graphs from the posterior by Markov chains over ordered partitions.

    Kuipers and Moffa (Journal of the American Statistical Association 2017). Every graph belongs
    to one partition, so draws follow the posterior under a uniform prior over graphs, unlike those
    of `OrderMCMC`. A round moves nodes to places drawn from all their places, swaps nodes, splits
    and merges elements, and reverses edges (Grzegorczyk and Husmeier 2008).

    The weights of all parent sets among the candidates of a node, and of those with one more
    parent, are computed before the first draw.

    Parameters
    ----------
    candidates
        Number of candidate parents per node, at most 20; by default all other variables if there
        are at most 20 variables, and else as many as fit a table of six million parent sets. A
        node may have any candidates and one other node as its parents. If all other variables are
        candidates, nothing is approximated; else parent sets with two or more other members are
        left out, which matters where the posterior is spread over many large parent sets.
    max_parents
        Maximum number of parents of a node; None for no limit. A limit makes the computation of
        slow scores much shorter.
    levels
        Number of temperatures (parallel tempering): chains at higher temperatures exchange states
        with the chain that is sampled from. 1 for none. Takes as many times longer.
    warm_up
        Number of rounds before the first draw; by default half as many as for all draws,
        and at most 200 per variable.
    thin
        Number of rounds per draw; by default a fifth of the number of variables, and
        at least 4.
    jobs
        Number of threads among which chains are divided; -1 for one per core. Draws do not depend
        on it.
    """

    candidates: int | None = None
    max_parents: int | None = None
    levels: int = 2
    warm_up: int | None = None
    thin: int | None = None
    jobs: int = -1
    accepts: ClassVar[Accepts] = (LOCAL_SCORES,)

    def __post_init__(self) -> None:
        check_options(self)

    def begin(
        self,
        objective: LocalScore,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        *,
        draws: int,
        chains: int,
    ) -> Run[Draws]:
        return ChainRun(
            self, Space.PARTITIONS, objective, knowledge, rng, draws=draws, chains=chains
        )
