"""ADMM over a federation, for linear models (Ng and Zhang 2022).

The coordinator's step is taken from secure sums, so it never sees the weights of a site. That does
not make ADMM harmless: sums over many rounds, together with what the coordinator sent, determine
``Σ_k (S_k + ρ I)⁻¹`` for every ρ of the schedule, from which few sites can be told apart. Where
moments add up, one secure sum of moments tells less and learns better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.graphs import DAG
from isthmus.numerics.acyclicity import exponential
from isthmus.results.disclosure import Disclosure
from isthmus.sources.horizontal.requests import AskConsensus, AskTotals
from isthmus.statistics import Kind

if TYPE_CHECKING:
    from isthmus.sources.federation import Federation

Floats: TypeAlias = NDArray[np.float64]
Ask: TypeAlias = Callable[[int, Floats, float], Floats]
"""From step, common weights and penalty to the sum over sites of ``B + β/ρ``."""


class Centring(StrEnum):
    """About which centre a site takes its second moments."""

    POOLED = "pooled"
    LOCAL = "local"


@final
@dataclass(frozen=True)
class LinearADMM:
    """The schedule of ADMM; the defaults are the paper's.

    Parameters
    ----------
    penalty
        Weight of the ℓ1 norm.
    rho1, rho2
        First penalties on cycles and on disagreement.
    growth1, growth2
        Factors by which they grow every round.
    rounds
        The most rounds.
    tolerance
        Ends early when, five rounds in a row, the weights moved less than this, the measure of
        cycles is below a hundredth of it, and the weights are within a hundred times it of what
        the sites want on average; zero never ends early.
    threshold
        Weights below are dropped; then the weakest until no cycle is left.
    centring
        About the pooled means, which costs one more sum, or about each site's own, as in the
        paper, which costs a degree of freedom for each site.
    """

    penalty: float = 0.01
    rho1: float = 1e-3
    rho2: float = 1e-3
    growth1: float = 1.75
    growth2: float = 1.25
    rounds: int = 200
    tolerance: float = 1e-6
    threshold: float = 0.3
    centring: Centring = Centring.POOLED


@final
@dataclass(frozen=True, eq=False)
class Agreed:
    """What ADMM found.

    Attributes
    ----------
    dag
        The graph of the weights above the threshold.
    weights
        The common weights ``[from, to]``, before the threshold.
    rounds
        How many rounds it took.
    cycles
        The measure of cycles of the weights at the end.
    disclosure
        What left which site.
    """

    dag: DAG
    weights: Floats
    rounds: int
    cycles: float
    disclosure: Disclosure


def learn_admm(federation: Federation, options: LinearADMM = LinearADMM()) -> Agreed:
    """Learn the weights of a linear network by ADMM, every round a secure sum.

    Raises
    ------
    AbortedError
        A site is gone. ADMM needs all sites in every round: open the study again when it is back.
    """
    schema = federation.schema()
    schema.require(Kind.CONTINUOUS, "ADMM for linear models")
    n, means = federation.totals(AskTotals(schema.names))
    centre = tuple(means.tolist()) if options.centring is Centring.POOLED else None

    def ask(step: int, weights: Floats, rho: float) -> Floats:
        rows = tuple(map(tuple, weights.tolist()))
        return federation.consensus(AskConsensus(schema.names, step, n, rho, rows, centre))

    weights, rounds = iterate(ask, len(schema), len(federation.study.members), options)
    return Agreed(
        DAG.from_adjacency(schema.names, acyclic(weights, options.threshold)),
        weights,
        rounds,
        exponential(weights)[0],
        federation.disclosure(),
    )


def iterate(ask: Ask, d: int, sites: int, options: LinearADMM) -> tuple[Floats, int]:
    """Give the common weights and the number of rounds."""
    weights = np.zeros((d, d))
    alpha, rho1, rho2 = 0.0, options.rho1, options.rho2
    quiet = 0
    for step in range(1, options.rounds + 1):
        target = ask(step, weights, rho2) / sites
        new = joint_step(target, weights, sites * rho2, alpha, rho1, options.penalty)
        h = exponential(new)[0]
        alpha += rho1 * h
        moved = float(np.abs(new - weights).max())
        apart = float(np.abs(new - target).max())
        weights = new
        # In the first rounds the penalty holds all weights at zero, far from what sites want.
        still = max(moved, 100 * h, 0.01 * apart) < options.tolerance
        quiet = quiet + 1 if still else 0
        if quiet == 5:
            return weights, step
        rho1 = min(rho1 * options.growth1, 1e16)
        rho2 = min(rho2 * options.growth2, 1e16)
    return weights, options.rounds


def joint_step(
    target: Floats, start: Floats, weight: float, alpha: float, rho1: float, penalty: float
) -> Floats:
    """Minimise ``weight/2 |W - target|² + penalty |W|₁ + alpha h(W) + rho1/2 h(W)²``.

    The positive and the negative part of W are variables of their own, so that the ℓ1 norm is
    smooth; a subgradient would stop at points that rounding chooses. The diagonal is held at
    zero, where h would drive it.
    """
    from scipy.optimize import minimize

    d = len(target)

    def objective(parts: Floats) -> tuple[float, Floats]:
        w = (parts[: d * d] - parts[d * d :]).reshape(d, d)
        h, slope = exponential(w)
        away = w - target
        value = 0.5 * float((away * away).sum())
        value += (penalty * float(parts.sum()) + alpha * h + 0.5 * rho1 * h * h) / weight
        gradient = (away + (alpha + rho1 * h) / weight * slope).ravel()
        lasso = penalty / weight
        return value, np.concatenate([gradient + lasso, -gradient + lasso])

    free = (~np.eye(d, dtype=bool)).ravel()
    limits = [(0.0, None if f else 0.0) for f in free] * 2
    first = np.concatenate([np.maximum(start, 0.0).ravel(), np.maximum(-start, 0.0).ravel()])
    found = minimize(
        objective,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=limits,
        options={"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-10},
    )
    parts: Floats = found.x
    weights: Floats = (parts[: d * d] - parts[d * d :]).reshape(d, d)
    return weights


def acyclic(weights: Floats, threshold: float) -> NDArray[np.bool_]:
    """The edges above a threshold, which rises until there is no cycle."""
    size = np.abs(weights)
    for least in [threshold, *np.sort(size[size > threshold]).tolist()]:
        edges: NDArray[np.bool_] = size > least
        if not _cyclic(edges):
            return edges
    return np.zeros_like(size, dtype=bool)


def _cyclic(edges: NDArray[np.bool_]) -> bool:
    left = np.ones(len(edges), dtype=bool)
    while left.any():
        roots = left & ~(edges[left].any(axis=0))
        if not roots.any():
            return True
        left &= ~roots
    return False
