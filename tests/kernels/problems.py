"""Random problems for searches, and Gaussian scores to search with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels.orders import BossRun, Parents
from isthmus.kernels.scoring import LocalScore, gaussian_score

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

TOLERANCE = 1e-10
NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Problem:
    """Moments of simulated data with random demands on the graph."""

    n: int
    covariance: Floats
    required: Flags
    forbidden: Flags
    max_parents: int | None

    @property
    def d(self) -> int:
        return len(self.covariance)


def problem(
    d: int, seed: int, *, n: int = 1000, demands: bool = False, max_parents: int | None = None
) -> Problem:
    """Draw linear Gaussian data with two edges per node."""
    rng = np.random.default_rng([d, seed])
    order = rng.permutation(d)
    x = rng.normal(size=(n, d))
    for place in range(1, d):
        count = min(place, int(rng.poisson(2.0)))
        for parent in rng.choice(order[:place], count, replace=False):
            weight = rng.uniform(0.5, 2.0) * rng.choice([-1.0, 1.0])
            x[:, order[place]] += weight * x[:, parent]
    required = np.zeros((d, d), np.bool_)
    forbidden = np.eye(d, dtype=np.bool_)
    if demands:
        rank = rng.permutation(d)
        forward = rank[:, None] < rank[None, :]
        required = forward & (rng.random((d, d)) < 1.0 / d)
        forbidden |= (rng.random((d, d)) < 0.3) & ~required
    covariance = np.cov(x, rowvar=False, bias=True).reshape(d, d)
    return Problem(n, covariance, required, forbidden, max_parents)


def correlate(matrix: Floats) -> tuple[Floats, Floats]:
    """Split a covariance into correlations and variances; a constant gets the variance 1."""
    variance = np.diagonal(matrix).copy()
    constant = variance <= 0.0
    variance[constant] = 1.0
    spread = np.sqrt(variance)
    correlation = np.clip(matrix / spread[:, None] / spread[None, :], -1.0, 1.0)
    correlation[constant, :] = correlation[:, constant] = 0.0
    np.fill_diagonal(correlation, 1.0)
    return correlation, variance


def matrix_score(matrix: Floats, tables: tuple[Floats, Floats, Floats]) -> LocalScore:
    """Score by a covariance and weights that depend on the number of parents."""
    correlation, variance = correlate(matrix)
    constant, log_variance, log_determinant = tables
    return gaussian_score(
        correlation,
        np.log(variance),
        constant=constant,
        log_variance=log_variance,
        log_determinant=log_determinant,
        tolerance=TOLERANCE,
    )


def likelihood_tables(n: int, d: int, *, gamma: float = 0.0) -> tuple[Floats, Floats, Floats]:
    """Return the weights of BIC, or with ``gamma`` of EBIC."""
    parents = np.arange(d + 1)
    penalties = 0.5 * np.log(n) * (parents + 2) + 2.0 * gamma * np.log(max(d, 1)) * parents
    constant = np.full(d + 1, -0.5 * n * (np.log(2.0 * np.pi) + 1.0)) - penalties
    return constant, np.full(d + 1, 0.5 * n), np.zeros(d + 1)


def bic(problem: Problem) -> LocalScore:
    return matrix_score(problem.covariance, likelihood_tables(problem.n, problem.d))


def boss(
    problem: Problem,
    score: LocalScore,
    *,
    seed: int,
    starts: int = 2,
    seconds: float = 0.01,
) -> tuple[Parents, float]:
    """Run best order score search to its end."""
    run = BossRun(
        score,
        np.random.default_rng(seed),
        starts=starts,
        required=problem.required,
        forbidden=problem.forbidden,
        max_parents=problem.max_parents,
    )
    while not run.step(seconds):
        pass
    return run.best()
