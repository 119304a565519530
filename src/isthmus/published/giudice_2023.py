"""Posteriors of Gaussian-process networks (Giudice, Kuipers and Moffa 2023)."""

from __future__ import annotations

from isthmus.results import Posterior
from isthmus.samplers import OrderMCMC, PartitionMCMC
from isthmus.scores import ExactGP, GPIntegral
from isthmus.verbs.sample import reweight, sample


def gp_posterior(
    data: object,
    *,
    draws: int = 1000,
    sampler: PartitionMCMC | OrderMCMC | None = None,
    interactions: bool = False,
    integral: GPIntegral | str = GPIntegral.IMPORTANCE,
    particles: int = 300,
    seed: int = 0,
) -> Posterior:
    """Draw from the posterior of Gaussian-process networks, as published.

    Algorithm 1: draw graphs under the Laplace approximation of the score (equation 13), compute
    the scores of the drawn families by Monte Carlo (equation 12), and weight the draws by the ratio
    (equation 14). Kernels and priors are those of section 4.1. We recommend
    ``sample(data, score=GP())`` for more than some hundred rows: the time of `ExactGP`, which this
    function uses, grows with the cube of the rows.

    Parameters
    ----------
    data
        A table of numbers in memory; columns are standardised.
    draws
        M, the number of graphs drawn.
    sampler
        `PartitionMCMC` (the default) or `OrderMCMC`, which keeps its bias.
    interactions
        Whether the kernel has the products of all pairs of parents (equation 18, "GP²").
    integral
        How equation 12 is estimated: ``"importance"`` (equation 12 with bridge function 1/g) or
        ``"bridge"``, as in the paper, with draws of the no-U-turn sampler. Bridge sampling takes
        seconds per family and needs the extra ``gp``.
    particles
        N₁ = N₂, the number of particles of equation 12.
    seed
        Random seed.

    Returns
    -------
    Posterior
        The weighted draws; ``probability(feature)`` is equation 14.

    References
    ----------
    E. Giudice, J. Kuipers and G. Moffa. A Bayesian Take on Gaussian Process Networks. NeurIPS 2023.
    arXiv:2306.11380.

    Examples
    --------
    >>> import numpy as np
    >>> import isthmus as ist
    >>> from isthmus import published
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=60)
    >>> table = {"x": x, "y": np.sin(2 * x) + 0.3 * rng.normal(size=60)}
    >>> posterior = published.gp_posterior(table, draws=200, seed=1)
    >>> print(posterior.probability(ist.edge("x", "y")) > 0.9)
    True
    """
    drawn = sample(
        data,
        score=ExactGP(interactions=interactions),
        sampler=PartitionMCMC() if sampler is None else sampler,
        draws=draws,
        seed=seed,
    )
    return reweight(
        drawn,
        data,
        ExactGP(
            interactions=interactions,
            integral=GPIntegral(integral),
            integration_draws=particles,
        ),
    )
