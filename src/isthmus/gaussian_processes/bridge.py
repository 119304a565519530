"""Bridge sampling of a marginal likelihood (Meng and Wong 1996), on draws from the posterior."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import numpy as np
from scipy.special import expit, logsumexp

from isthmus.gaussian_processes.density import Density
from isthmus.gaussian_processes.importance import Estimate, Proposal, log_values
from isthmus.gaussian_processes.laplace import Mode
from isthmus.gaussian_processes.nuts import double_precision, sample_posterior
from isthmus.types import Floats, Work, completed

CHAINS = 4
_ITERATIONS = 1000


def bridge(
    density: Density,
    modes: Sequence[Mode],
    rng: np.random.Generator,
    *,
    chains: int = CHAINS,
    warmup: int = 200,
    draws: int = 200,
) -> Estimate:
    """Estimate the log marginal likelihood by bridge sampling.

    The bridge leads from Student-t distributions at the modes to the posterior, of which the
    no-U-turn sampler draws. The error takes the autocorrelation of the draws into account
    (Frühwirth-Schnatter 2004).

    Parameters
    ----------
    density
        The regression.
    modes
        Its modes.
    rng
        Random numbers.
    chains, warmup, draws
        Number of chains, and of steps per chain that adapt the sampler and that are kept.
    """
    return completed(bridge_work(density, modes, rng, chains=chains, warmup=warmup, draws=draws))


def bridge_work(
    density: Density,
    modes: Sequence[Mode],
    rng: np.random.Generator,
    *,
    chains: int = CHAINS,
    warmup: int = 200,
    draws: int = 200,
) -> Work[Estimate]:
    """Do what `bridge` does, in pieces; the draws from the posterior are one of them."""
    points = sample_posterior(
        density.design, modes, chains=chains, warmup=warmup, draws=draws, rng=rng
    )
    yield
    proposal = Proposal(modes)
    flat = points.reshape(-1, points.shape[-1])
    fresh = proposal.draw(len(flat), rng)
    there = (yield from log_values(density, flat)) - proposal.log_density(flat)
    here = (yield from log_values(density, fresh)) - proposal.log_density(fresh)
    effective = float(_effective(points).min())
    value = _solve(there, here, effective)
    # Terms of the optimal bridge, with the share of each sample by its effective size.
    offset = np.log(effective / len(fresh))
    of_posterior = expit(-(there - value + offset)).reshape(points.shape[:2])
    of_proposal = expit(here - value + offset)
    variance = of_proposal.var(ddof=1) / of_proposal.mean() ** 2 / len(fresh)
    terms = float(_effective(of_posterior[:, :, None])[0])
    variance += of_posterior.var(ddof=1) / of_posterior.mean() ** 2 / min(terms, effective)
    return Estimate(value, 2.0 * float(np.sqrt(variance)), effective)


def _solve(there: Floats, here: Floats, effective: float) -> float:
    """Iterate to the fixed point of the optimal bridge."""
    offset = np.log(effective / len(here))
    value = float(np.median(there))
    for _ in range(_ITERATIONS):
        over = logsumexp(here - np.logaddexp(here - value + offset, 0.0)) - np.log(len(here))
        under = logsumexp(-np.logaddexp(there - value + offset, 0.0)) - np.log(len(there))
        before, value = value, float(over - under)
        if abs(value - before) < 1e-10:
            break
    return value


def _effective(points: Floats) -> Floats:
    """Effective number of draws of each quantity, at most the number of draws."""
    diagnostics = import_module("blackjax.diagnostics")
    chains, draws, _ = points.shape
    with double_precision():
        sizes = np.atleast_1d(np.array(diagnostics.effective_sample_size(points)))
    sizes = np.where(np.isfinite(sizes), sizes, chains * draws)
    bounded: Floats = np.clip(sizes, 1.0, chains * draws)
    return bounded
