"""Multinomial logistic regression of a discrete node on its parents.

All levels of the node, and all levels of a discrete parent, are penalised alike: the effects of
the levels sum to zero, in an orthonormal basis. The fit does not depend on which level is first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.models import Level, MultinomialLogit
from isthmus.models.least_squares import spectrum
from isthmus.types import Floats

_ITERATIONS = 100
"""Maximum number of Newton steps; separated levels without a prior need about 40."""
_NEARLY = 1e-6
"""Expected gain of a Newton step, in nats, below which it is the last one."""
_PARAMETERS = 100
"""Largest number of parameters for Newton's method: its cost per step grows with the square."""
_FIRST_ROWS = 4096
"""Rows of the first stage; each further stage has `_GROWTH` times as many."""
_GROWTH = 8
_BLOCK = 4096
"""Rows whose probabilities are in memory at a time."""


def fit_logit(
    levels: tuple[Level, ...],
    own: NDArray[np.intp],
    discrete: tuple[str, ...],
    codes: Sequence[NDArray[np.intp]],
    sizes: tuple[int, ...],
    continuous: tuple[str, ...],
    numbers: Floats,
    pseudo_count: float,
) -> MultinomialLogit:
    """Fit a multinomial logistic regression; see `isthmus.fitting.fit_mixed`.

    Parameters
    ----------
    levels, own
        Levels of the node, and the code of each row.
    discrete, codes, sizes
        Names of the discrete parents, their codes, and how many levels they have.
    continuous, numbers
        Names of the continuous parents, and their values, one column each.
    pseudo_count
        Weight of the prior, in rows.
    """
    centre, spread = numbers.mean(axis=0), numbers.std(axis=0)
    still = numbers.max(axis=0) == numbers.min(axis=0)
    centre = np.where(still, numbers[0], centre)
    spread = np.where(still | (spread == 0.0), 1.0, spread)
    bases = [contrasts(size) for size in sizes]
    features = [np.ones((1, len(own))), ((numbers - centre) / spread).T]
    features += [basis.T[:, column] for basis, column in zip(bases, codes, strict=True)]
    weights = _optimum(np.concatenate(features), own, len(levels), pseudo_count)
    k = len(continuous)
    slopes = weights[1 : 1 + k] / spread[:, None]
    intercepts = weights[0] - centre @ slopes
    effects, first = [], 1 + k
    for basis in bases:
        added = basis @ weights[first : first + basis.shape[1]]
        # Reported, not penalised, as differences from the first level.
        intercepts, added = intercepts + added[0], added - added[0]
        effects.append(added - added[:, :1])
        first += basis.shape[1]
    return MultinomialLogit(
        levels,
        discrete,
        continuous,
        intercepts - intercepts[0],
        tuple(effects),
        slopes - slopes[:, :1],
    )


def contrasts(size: int) -> Floats:
    """Return an orthonormal basis of the effects of some levels that sum to zero, as columns."""
    basis = np.zeros((size, size - 1))
    for j in range(1, size):
        basis[:j, j - 1], basis[j, j - 1] = -1.0, j
        basis[:, j - 1] /= np.sqrt(j * (j + 1.0))
    return basis


def _optimum(x: Floats, own: NDArray[np.intp], levels: int, pseudo_count: float) -> Floats:
    """Return the weights (features, levels) of the highest posterior density; they sum to zero.

    The search starts on some of the rows, each of which counts for several, and goes on with more
    of them: most steps are taken where they cost little.
    """
    features, n = x.shape
    weights = np.zeros((features, levels))
    if levels == 1:
        return weights
    mean = x.mean(axis=1)
    minimise = _newton if features * (levels - 1) <= _PARAMETERS else _quasi_newton
    size = _FIRST_ROWS
    while True:
        step = max(n // size, 1)
        rows = _Rows(np.ascontiguousarray(x[:, ::step]), own[::step], step, mean, pseudo_count)
        weights = minimise(rows, weights)
        if step == 1:
            return weights
        size *= _GROWTH


@final
class _Rows(NamedTuple):
    """Rows of features, of shape (features, rows), and the penalised likelihood of weights.

    The prior is a row at the mean of the features, whose weight is spread over the levels, and a
    normal distribution of all weights but the intercepts.
    """

    x: Floats
    own: NDArray[np.intp]
    each: int
    mean: Floats
    pseudo_count: float

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the negative logarithm of the posterior density, and its gradient."""
        total, gradient = self._prior(weights), self._prior_gradient(weights)
        for x, own in self._blocks():
            logits = weights.T @ x
            sums, chosen = _log_sums(logits), logits[own, _positions(own)].sum()
            total += self.each * float(sums.sum() - chosen)
            shares = np.exp(logits - sums)
            shares[own, _positions(own)] -= 1.0
            gradient += self.each * (x @ shares.T)
        return total, gradient

    def curvature(self, weights: Floats) -> Floats:
        """Return the Hessian, of shape (levels, features, levels, features)."""
        features, levels = weights.shape
        hessian = np.zeros((levels, features, levels, features))
        diagonal = np.zeros((levels, features, features))
        for x, _ in self._blocks():
            logits = weights.T @ x
            shares = np.exp(logits - _log_sums(logits))
            weighted = (shares[:, None] * x).reshape(levels * features, -1)
            hessian -= (weighted @ weighted.T).reshape(hessian.shape)
            diagonal += (weighted @ x.T).reshape(levels, features, features)
        for a in range(levels):
            hessian[a, :, a] += diagonal[a]
        hessian *= self.each
        logits = weights.T @ self.mean
        shares = np.exp(logits - _log_sums(logits))
        inner = self.pseudo_count * (np.diag(shares) - np.outer(shares, shares))
        hessian += inner[:, None, :, None] * np.outer(self.mean, self.mean)[:, None, :]
        inside = np.arange(1, features)
        for a in range(levels):
            hessian[a, inside, a, inside] += self.pseudo_count
        return hessian

    def _blocks(self) -> Iterator[tuple[Floats, NDArray[np.intp]]]:
        for start in range(0, len(self.own), _BLOCK):
            yield self.x[:, start : start + _BLOCK], self.own[start : start + _BLOCK]

    def _prior(self, weights: Floats) -> float:
        logits = weights.T @ self.mean
        squares = float((weights[1:] ** 2).sum())
        return self.pseudo_count * (float(_log_sums(logits) - logits.mean()) + 0.5 * squares)

    def _prior_gradient(self, weights: Floats) -> Floats:
        logits = weights.T @ self.mean
        shares = np.exp(logits - _log_sums(logits)) - 1.0 / len(logits)
        gradient = np.outer(self.mean, shares)
        gradient[1:] += weights[1:]
        return self.pseudo_count * gradient


def _log_sums(logits: Floats) -> Floats:
    highest = logits.max(axis=0)
    sums: Floats = highest + np.log(np.exp(logits - highest).sum(axis=0))
    return sums


def _positions(own: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.arange(len(own))


def _newton(rows: _Rows, weights: Floats) -> Floats:
    """Minimise by Newton's method with halved steps, among weights that sum to zero."""
    features, levels = weights.shape
    basis, size = contrasts(levels), features * (levels - 1)
    value, gradient = rows.gradient(weights)
    for _ in range(_ITERATIONS):
        curvature = rows.curvature(weights)
        hessian = np.einsum("afbg,aj,bk->jfkg", curvature, basis, basis, optimize=True)
        parts = spectrum(hessian.reshape(size, size))
        slope = (gradient @ basis).T.reshape(size, 1) / parts.spread[:, None]
        move = parts.solve(slope) / parts.spread[:, None]
        direction = (basis @ move.reshape(levels - 1, features)).T
        gain, length = float((gradient * direction).sum()), 1.0
        limit = value + 1e-12 * abs(value)
        value, gradient = rows.gradient(weights - direction)
        while length > 1e-8 and value > limit - 0.25 * length * gain:
            length *= 0.5
            value, gradient = rows.gradient(weights - length * direction)
        weights = weights - length * direction
        if gain < _NEARLY:
            break
    return weights


def _quasi_newton(rows: _Rows, weights: Floats) -> Floats:
    """Minimise by L-BFGS, for many parameters."""
    from scipy.optimize import minimize

    shape, n = weights.shape, rows.each * len(rows.own)

    def loss(flat: Floats) -> tuple[float, Floats]:
        value, gradient = rows.gradient(flat.reshape(shape))
        return value / n, gradient.ravel() / n

    options: Any = {"maxiter": 1000, "gtol": 1e-7, "ftol": 1e-14}
    found = minimize(loss, weights.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x.reshape(shape), dtype=np.float64)
