"""The exact posterior over graphs of up to about twenty variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.errors import DataError, MismatchError
from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.options import require_integer, require_number
from isthmus.results.details import ExactPosteriorDetails
from isthmus.samplers.base import Accepts, Draws, Sampler, Watch

_SLICE = 0.02

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
