"""Changes of mechanisms: tests of linear regressions, and exact Shapley values by quadrature.

The Shapley value of one of k mechanisms averages over the 2^(k-1) sets of others that changed
before it. If each other mechanism is drawn from its new version with probability t, the expected
gain is a polynomial of degree k - 1 in t, and its integral from 0 to 1 is the Shapley value (Owen
1972). Gauss-Legendre quadrature with k / 2 points is exact. Means, variances and probabilities of a
network are linear in each mechanism, so the expectation is that of mixtures.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.graphs import DAG
from isthmus.networks.conditionals import regress
from isthmus.networks.inference import Elimination

_RANK = 1e-9
"""Share of the largest eigenvalue below which a direction counts as rounding."""
_ROWS_PER_TERM = 25
"""Least number of rows per knot of the curves that a change is challenged with."""
_MOST_KNOTS = 20
_NOTHING = 1e-10
"""Share of the variance of a node up to which its rest counts as rounding."""

Weights = Mapping[str, float]
"""For each node, the probability that its mechanism is the new one."""


def shapley(
    value: Callable[[Weights], Floats], nodes: Sequence[str], changed: Collection[str]
) -> tuple[dict[str, Floats], Floats]:
    """Return the Shapley values of the changed nodes, and of all other nodes as one player.

    Parameters
    ----------
    value
        The measure if mechanisms are mixtures with these weights.
    changed
        The nodes that are players of their own.
    """
    points, weights = np.polynomial.legendre.leggauss((len(changed) + 2) // 2)
    points, weights = (points + 1.0) / 2.0, weights / 2.0

    def at(t: float, others: float, **own: float) -> Floats:
        return value({v: own.get(v, t if v in changed else others) for v in nodes})

    shares = {v: np.zeros(()) for v in changed}
    rest = np.zeros(())
    for t, weight in zip(points.tolist(), weights.tolist(), strict=True):
        rest = rest + weight * (at(t, 1.0) - at(t, 0.0))
        for v in changed:
            gains = [at(t, others, **{v: 1.0}) - at(t, others, **{v: 0.0}) for others in (0.0, 1.0)]
            shares[v] = shares[v] + weight * ((1.0 - t) * gains[0] + t * gains[1])
    return shares, rest


@final
@dataclass(frozen=True)
class LinearMechanisms:
    """Regressions of each node on its parents, for several draws of the parameters.

    Attributes
    ----------
    intercepts, variances
        Of shape (draws, nodes), in topological order.
    coefficients
        Of shape (draws, nodes, nodes): those of row v are for the parents of v.
    """

    intercepts: Floats
    coefficients: Floats
    variances: Floats


@final
@dataclass(frozen=True)
class MomentSums:
    """Number of rows, means and centred products of all nodes, in topological order."""

    n: float
    mean: Floats
    scatter: Floats

    def __add__(self, other: MomentSums) -> MomentSums:
        n, gap = self.n + other.n, self.mean - other.mean
        between = self.n * other.n / n * np.outer(gap, gap)
        mean = (self.n * self.mean + other.n * other.mean) / n
        return MomentSums(n, mean, self.scatter + other.scatter + between)

    def rest(self, child: int, parents: Sequence[int]) -> float:
        """Return the sum of squares of a child that its parents leave."""
        own = [*parents, child]
        return float(regress(self.scatter[np.ix_(own, own)]).variance)

    def drawn(
        self, parents: Sequence[Sequence[int]], draws: int, rng: np.random.Generator
    ) -> LinearMechanisms:
        """Return regressions: first the estimates, then draws of their sampling errors."""
        d = len(parents)
        intercepts, variances = np.zeros((draws + 1, d)), np.zeros((draws + 1, d))
        coefficients = np.zeros((draws + 1, d, d))
        for v, own in enumerate(parents):
            within = self.scatter[np.ix_(own, own)]
            estimate = regress(self.scatter[np.ix_([*own, v], [*own, v])])
            freedom = max(self.n - 1.0 - len(own), 1.0)
            squares = float(estimate.variance)
            variance = np.full(draws + 1, squares / freedom)
            variance[1:] = squares / rng.chisquare(freedom, draws)
            roots, vectors = np.linalg.eigh(within) if own else (np.zeros(0), np.zeros((0, 0)))
            inverse = np.where(roots > _RANK * roots.max(initial=0.0), roots, np.inf) ** -0.5
            noise = rng.normal(size=(draws + 1, len(own))) * inverse @ vectors.T
            noise[0] = 0.0
            slopes = estimate.coefficients + np.sqrt(variance)[:, None] * noise
            centre = rng.normal(size=draws + 1) * np.sqrt(variance / self.n)
            centre[0] = 0.0
            intercepts[:, v] = self.mean[v] + centre - slopes @ self.mean[list(own)]
            coefficients[:, v, list(own)] = slopes
            variances[:, v] = variance
        return LinearMechanisms(intercepts, coefficients, variances)


def linear_measure(
    old: LinearMechanisms, new: LinearMechanisms, weights: Floats, outcome: int, *, spread: bool
) -> Floats:
    """Return the mean or the variance of a node, averaged over mechanisms, for each draw.

    Parameters
    ----------
    weights
        Probability that the mechanism of a node is the new one, by node.
    spread
        Whether to return its variance instead of its mean.
    """
    draws, d = old.intercepts.shape
    versions = ((old, 1.0 - weights), (new, weights))
    mean, covariance = np.zeros((draws, d)), np.zeros((draws, d, d))
    for v in range(outcome + 1):
        for own, share in versions:
            b = own.coefficients[:, v, :v]
            if not spread:
                fitted = own.intercepts[:, v] + np.einsum("rp,rp->r", b, mean[:, :v])
                mean[:, v] += share[v] * fitted
                continue
            cross = np.einsum("rp,rpq->rq", b, covariance[:, :v, :v])
            covariance[:, v, :v] += share[v] * cross
            explained = np.einsum("rq,rq->r", cross, b)
            covariance[:, v, v] += share[v] * (own.variances[:, v] + explained)
        covariance[:, :v, v] = covariance[:, v, :v]
    return covariance[:, outcome, outcome] if spread else mean[:, outcome]


def table_measure(
    dag: DAG,
    old: Mapping[str, Floats],
    new: Mapping[str, Floats],
    weights: Weights,
    outcome: str,
    level: int,
) -> Floats:
    """Return the probability of a level, averaged over mechanisms, for each draw of the tables."""
    mixed = {v: (1.0 - w) * old[v] + w * new[v] for v, w in weights.items()}
    return Elimination(dag, mixed).joints([dag.index(outcome)], {})[:, level]


def drawn_tables(
    before: Integers, after: Integers, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return the probabilities of two tables of counts: first the estimates, then draws.

    Parents that occur in one of the tables only have the probabilities of that one in both: nothing
    shows that they changed.
    """
    prior = 1.0 / before.size
    found = []
    for counts, other in ((before, after), (after, before)):
        absent = counts.sum(axis=-1, keepdims=True) == 0
        alpha = np.where(absent, other, counts) + prior
        gamma = rng.standard_gamma(np.broadcast_to(alpha, (draws + 1, *alpha.shape)))
        gamma[0] = alpha
        gamma = np.maximum(gamma, np.finfo(np.float64).tiny)
        found.append(gamma / gamma.sum(axis=-1, keepdims=True))
    return found[0], found[1]


def regression_changed(
    before: MomentSums, after: MomentSums, child: int, parents: Sequence[int]
) -> float:
    """Return the p-value that intercept, slopes and variance of a regression are the same.

    A likelihood ratio, divided by its exact mean for normal noise.
    """
    from scipy.special import chdtrc, psi

    k = len(parents) + 1
    if min(before.n, after.n) < k + 2:
        return 1.0
    both = before + after
    r1, r2, r = (s.rest(child, parents) for s in (before, after, both))
    if r <= _NOTHING * both.scatter[child, child]:
        return 1.0  # the same equation without noise
    if min(r1, r2) <= 0.0:
        return 0.0

    def expected(n: float, freedom: float) -> float:
        """Return the mean of n times the logarithm of a mean square."""
        return float(n * (psi(freedom / 2.0) + np.log(2.0 / n)))

    n1, n2, n = before.n, after.n, both.n
    statistic = n * np.log(r / n) - n1 * np.log(r1 / n1) - n2 * np.log(r2 / n2)
    mean = expected(n, n - k) - expected(n1, n1 - k) - expected(n2, n2 - k)
    return float(chdtrc(k + 1, max(statistic, 0.0) * (k + 1) / mean))


def rows_changed(before: Floats, after: Floats) -> float:
    """Return the p-value that a regression is the same, for curves and for noise of any shape.

    Curves of the parents (piecewise lines and products) are fitted to all rows, so that a curve in
    which parents have moved is no change. What is tested is whether the table adds an intercept,
    slopes and squares, or changes the variance: a Wald test with robust errors.

    Parameters
    ----------
    before, after
        Rows, whose last column is the node and whose others are its parents.
    """
    from scipy.special import fdtrc

    both = np.concatenate([before, after])
    n, p = len(both), both.shape[1] - 1
    tested = 2 * p + 1
    if min(len(before), len(after)) <= tested + 2:
        return 1.0
    scale = both.std(axis=0)
    both = (both - both.mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    x, y = both[:, :-1], both[:, -1]
    second = np.zeros((n, 1))
    second[len(before) :] = 1.0
    lines = np.column_stack([np.ones(n), x, x**2 - 1.0])
    curves = _orthonormal(np.column_stack([lines, _bends(x, n // (_ROWS_PER_TERM * max(p, 1)))]))
    block = second * lines
    rest = y - curves @ (curves.T @ y)
    if float(np.mean(rest**2)) <= _NOTHING:
        return 1.0  # the same equation without noise
    gap, influence, rest = _added(curves, block, rest)
    variance = float(np.mean(rest**2))
    if variance <= _NOTHING:
        return 0.0
    squares = rest**2 / variance
    wider, wider_influence, _ = _added(curves, second, squares - curves @ (curves.T @ squares))
    gap = np.append(gap, wider)
    influence = np.column_stack([influence, wider_influence])
    roots, vectors = np.linalg.eigh(influence.T @ influence)
    kept = roots > _RANK * roots[-1]
    wald = float(((vectors[:, kept].T @ gap) ** 2 / roots[kept]).sum())
    freedom = int(kept.sum())
    if not freedom:
        return 1.0  # a curve of the parents explains any change, as their values do not overlap
    return float(fdtrc(freedom, max(n - curves.shape[1] - freedom, 1), wald / freedom))


def _bends(x: Floats, terms: int) -> Floats:
    """Return hinges at quantiles of each column, and products of columns."""
    found = []
    knots = min(terms, _MOST_KNOTS)
    for column in x.T:
        at = np.unique(np.quantile(column, np.linspace(0.0, 1.0, knots + 2)[1:-1]))
        found += [np.maximum(column - knot, 0.0) for knot in at]
    if knots >= x.shape[1]:
        found += [x[:, i] * x[:, j] for i in range(x.shape[1]) for j in range(i)]
    return np.column_stack([np.zeros((len(x), 0)), *found])


def _orthonormal(x: Floats) -> Floats:
    """Return an orthonormal basis of the columns."""
    roots, vectors = np.linalg.eigh(x.T @ x)
    kept = roots > _RANK * roots[-1]
    basis: Floats = x @ (vectors[:, kept] / np.sqrt(roots[kept]))
    return basis


def _added(basis: Floats, columns: Floats, rest: Floats) -> tuple[Floats, Floats, Floats]:
    """Return coefficients of further columns, their influence by row, and what they leave.

    Parameters
    ----------
    basis
        Orthonormal columns that are in the regression.
    rest
        What these leave of the variable.
    """
    own = columns - basis @ (basis.T @ columns)
    roots, vectors = np.linalg.eigh(own.T @ own)
    kept = roots > _RANK * (columns**2).sum()
    inverse = (vectors[:, kept] / roots[kept]) @ vectors[:, kept].T
    coefficients = inverse @ (own.T @ rest)
    rest = rest - own @ coefficients
    leverage = (basis**2).sum(axis=1) + np.einsum("ij,jk,ik->i", own, inverse, own)
    influence = own @ inverse * (rest / np.maximum(1.0 - leverage, _NOTHING))[:, None]
    return coefficients, influence, rest
