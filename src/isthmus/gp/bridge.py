"""Bridge sampling of a marginal likelihood (Meng and Wong 1996), on draws from the posterior."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import expit, gammaln, logsumexp

from isthmus import watch
from isthmus.arrays import Floats, Work, completed
from isthmus.errors import MissingExtraError
from isthmus.gp.density import FLOOR, Density, Design, Mode

# --- Importance sampling of a marginal likelihood, from Student-t distributions at its modes ----

FREEDOM = 5.0
"""Degrees of freedom. The density falls faster than a Student-t, so weights are bounded."""


class IntegralEstimate(NamedTuple):
    """A logarithm of an integral, estimated from random draws.

    Attributes
    ----------
    value
        The logarithm of the estimate.
    error
        Two standard errors, in nats: the truth is closer than this in about 95 of 100 cases.
    effective
        Effective number of draws.
    """

    value: float
    error: float
    effective: float


@final
class Proposal:
    """A mixture of Student-t distributions, one per mode, weighted by their integrals."""

    def __init__(self, modes: Sequence[Mode]) -> None:
        integrals = np.array([mode.log_integral for mode in modes])
        shares = np.exp(integrals - integrals.max())
        chosen = shares > 1e-3 * shares.sum()
        kept = [mode for mode, share in zip(modes, chosen, strict=True) if share]
        self._shares = shares[chosen] / shares[chosen].sum()
        self._centres = [mode.point for mode in kept]
        # curvature = L Lᵀ, so L⁻ᵀ z has the inverse curvature as its covariance
        self._factors = [np.linalg.cholesky(mode.curvature) for mode in kept]

    def draw(self, number: int, rng: np.random.Generator) -> Floats:
        """Draw points, shape (number, size)."""
        size = len(self._centres[0])
        which = rng.choice(len(self._shares), size=number, p=self._shares)
        normal = rng.standard_normal((number, size))
        normal *= np.sqrt(FREEDOM / rng.chisquare(FREEDOM, size=(number, 1)))
        points = np.empty_like(normal)
        for i, (centre, factor) in enumerate(zip(self._centres, self._factors, strict=True)):
            rows = which == i
            points[rows] = centre + np.linalg.solve(factor.T, normal[rows].T).T
        return points

    def log_density(self, points: Floats) -> Floats:
        """Return the log density of each point."""
        size = points.shape[1]
        constant = (
            gammaln(0.5 * (FREEDOM + size))
            - gammaln(0.5 * FREEDOM)
            - 0.5 * size * np.log(FREEDOM * np.pi)
        )
        parts = []
        for share, centre, factor in zip(self._shares, self._centres, self._factors, strict=True):
            squares = (((points - centre) @ factor) ** 2).sum(axis=1)
            scale = float(np.log(factor.diagonal()).sum())
            tail = -0.5 * (FREEDOM + size) * np.log1p(squares / FREEDOM)
            parts.append(np.log(share) + constant + scale + tail)
        return np.asarray(logsumexp(parts, axis=0))


def log_values(density: Density, points: Floats) -> Work[Floats]:
    """Compute the log density of a child and its hyperparameters at each point."""
    values = np.empty(len(points))
    for i, point in enumerate(points):
        values[i] = density.value(point)
        yield
    return values


def importance(
    density: Density, modes: Sequence[Mode], draws: int, rng: np.random.Generator
) -> IntegralEstimate:
    """Estimate the log marginal likelihood by importance sampling."""
    return completed(importance_work(density, modes, draws, rng))


def importance_work(
    density: Density, modes: Sequence[Mode], draws: int, rng: np.random.Generator
) -> Work[IntegralEstimate]:
    """Do what `importance` does, in pieces."""
    proposal = Proposal(modes)
    points = proposal.draw(draws, rng)
    ratios = (yield from log_values(density, points)) - proposal.log_density(points)
    value = float(logsumexp(ratios) - np.log(draws))
    weights = np.exp(ratios - value)
    error = 2.0 * float(np.sqrt(((weights - 1.0) ** 2).sum() / max(draws - 1, 1) / draws))
    return IntegralEstimate(value, error, float(weights.sum() ** 2 / (weights**2).sum()))


# --- Bridge sampling of a marginal likelihood (Meng and Wong 1996) -------------------------------


def sample_posterior(
    design: Design,
    modes: Sequence[Mode],
    *,
    chains: int,
    warmup: int,
    draws: int,
    rng: np.random.Generator,
) -> Floats:
    """Return draws of the unconstrained hyperparameters, shape (chains, draws, size).

    Parameters
    ----------
    design
        The regression.
    modes
        Modes of the posterior. The sampler works in coordinates in which the highest has the
        identity as its curvature; chains start at modes drawn by their integrals.
    chains, warmup, draws
        Number of chains, and of steps per chain that adapt the sampler and that are kept.
    rng
        Source of the seed.
    """
    with watch.held_back():
        try:
            jax = import_module("jax")
            import_module("blackjax")
        except ImportError:
            raise MissingExtraError("blackjax", "gp", "Bridge sampling of GP scores") from None
        jax.numpy.zeros(1)  # the first compilation imports more
    best = modes[0]
    turn = np.linalg.inv(np.linalg.cholesky(best.curvature)).T  # x = centre + turn z
    integrals = np.array([mode.log_integral for mode in modes])
    shares = np.exp(integrals - integrals.max())
    which = rng.choice(len(modes), size=chains, p=shares / shares.sum())
    starts = np.stack([np.linalg.solve(turn, modes[i].point - best.point) for i in which])
    starts += 0.1 * rng.standard_normal(starts.shape)
    mapped = design.maps[:1] != (None,)
    run = _compiled(interactions=design.interactions, mapped=mapped, warmup=warmup, draws=draws)
    data = (
        design.target,
        design.constant,
        design.squares,
        design.maps if mapped else (),
        design.rest,
        design.rest_squares,
        best.point,
        turn,
    )
    with double_precision():
        keys = jax.random.split(jax.random.key(int(rng.integers(2**31))), chains)
        found = np.array(run(data, starts, keys))
    points: Floats = best.point + found @ turn.T
    return points


def double_precision() -> AbstractContextManager[Any]:
    """Switch 64-bit numbers on for a block; the switch moved between versions of JAX."""
    switch: Any = getattr(import_module("jax"), "enable_x64", None)
    if switch is None:
        switch = import_module("jax.experimental").enable_x64
    block: AbstractContextManager[Any] = switch(True)  # noqa: FBT003 - some versions name it
    return block


@lru_cache(maxsize=8)
def _compiled(*, interactions: bool, mapped: bool, warmup: int, draws: int) -> Any:
    import blackjax
    import jax

    def run(data: Any, starts: Any, keys: Any) -> Any:
        centre, turn = data[-2:]

        def log_density(z: Any) -> Any:
            return _log_joint(data, centre + turn @ z, interactions=interactions, mapped=mapped)

        def chain(given: Any) -> Any:
            start, key = given
            adapting, sampling = jax.random.split(key)
            adapt = blackjax.window_adaptation(blackjax.nuts, log_density)
            (state, parameters), _ = adapt.run(adapting, start, num_steps=warmup)
            step = blackjax.nuts(log_density, **parameters).step

            def once(state: Any, key: Any) -> Any:
                state, _ = step(key, state)
                return state, state.position

            _, positions = jax.lax.scan(once, state, jax.random.split(sampling, draws))
            return positions

        return jax.lax.map(chain, (starts, keys))

    return jax.jit(run)


def _log_joint(data: Any, point: Any, *, interactions: bool, mapped: bool) -> Any:
    """Return what `Density.value` computes, written in JAX."""
    import jax.numpy as jnp
    from jax.scipy.linalg import cho_solve

    target, constant, squares, maps, rest, rest_squares, *_ = data
    p = len(squares)
    parts = [jnp.exp(-0.5 * jnp.exp(-2.0 * point[j]) * squares[j]) for j in range(p)]
    if mapped:
        parts = [b @ k @ b.T for b, k in zip(maps, parts, strict=True)]
    kernel = sum(parts) if parts else 0.0
    if interactions and parts:
        pairs = 0.5 * (kernel**2 - sum(k**2 for k in parts))
        kernel = jnp.exp(point[p]) * kernel
        if p > 1:
            kernel = kernel + jnp.exp(point[p + 1]) * pairs
    noise = jnp.exp(2.0 * point[-1]) + FLOOR
    covariance = jnp.outer(constant, constant) + kernel + noise * jnp.eye(len(target))
    factor = jnp.linalg.cholesky(covariance)
    quadratic = target @ cho_solve((factor, True), target)
    n = len(target) + rest
    value = -0.5 * (
        n * jnp.log(2.0 * jnp.pi) + quadratic + rest * jnp.log(noise) + rest_squares / noise
    )
    value -= jnp.log(jnp.diagonal(factor)).sum()
    inverses = jnp.exp(-point)
    scales = p * 2.0 * jnp.log(2.0) - 2.0 * point[:p].sum() - 2.0 * inverses[:p].sum()
    value += scales - point[p:].sum() - inverses[p:].sum()
    return jnp.where(jnp.isfinite(value), value, -jnp.inf)


CHAINS = 4
_ITERATIONS = 1000


def bridge_work(
    density: Density,
    modes: Sequence[Mode],
    rng: np.random.Generator,
    *,
    chains: int = CHAINS,
    warmup: int = 200,
    draws: int = 200,
) -> Work[IntegralEstimate]:
    """Estimate the log marginal likelihood by bridge sampling, in pieces.

    The bridge leads from Student-t distributions at the modes to the posterior, of which the
    no-U-turn sampler draws in one piece. The error takes the autocorrelation of the draws into
    account (Frühwirth-Schnatter 2004).

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
    return IntegralEstimate(value, 2.0 * float(np.sqrt(variance)), effective)


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
