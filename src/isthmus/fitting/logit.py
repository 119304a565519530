"""Multinomial logistic regression of a discrete node on its parents.

All levels of the node, and all levels of a discrete parent, are penalised alike: the effects of
the levels sum to zero, in an orthonormal basis. The fit does not depend on which level is first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.networks import Level, MultinomialLogit
from isthmus.networks.conditionals import spectrum

_ITERATIONS = 100
"""Maximum number of Newton steps; separated levels without a prior need about 40."""
_NEARLY = 1e-6
"""Expected gain of a Newton step, in nats, below which it is the last one."""
_PARAMETERS, _MORE_PARAMETERS, _MOST_PARAMETERS = 100, 400, 1500
"""Largest numbers of parameters for Newton's method, whose cost per step grows with the square, on
all rows and on those of the first stage; and for the Hessian after the first stage."""
_PRODUCTS = 5e8
"""Products of squared parameters and distinct rows below which Newton's method is used anyway."""
_START, _STEEP = 1e-4, 1e-6
"""Slopes per row at which L-BFGS stops in the first stage and at the end, where the curvature is
about one: the second is a thousandth of a standard error at a million rows."""
_FIRST_ROWS = 4096
"""Rows of the first stage, in which most steps are taken."""
_OF_EACH = 50
"""Least number of rows of a level in the first stage, if it has them."""
_FLAT = 1e-8
"""Curvature per row below which a direction is not stretched further."""
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
    weights = optimum(np.concatenate(features), own, len(levels), pseudo_count)
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


def optimum(
    x: Floats,
    own: NDArray[np.intp],
    levels: int,
    pseudo_count: float,
    repeated: Floats | None = None,
) -> Floats:
    """Return the weights (features, levels) of the highest posterior density; they sum to zero.

    The search starts on some of the rows, each of which counts for several, and goes on with more
    of them: most steps are taken where they cost little.

    Parameters
    ----------
    x, own
        Features, of shape (features, rows), of which the first is one, and the code of each row.
    pseudo_count
        Weight of the prior, in rows.
    repeated
        How often each row occurs; None for once.
    """
    features, n = x.shape
    weights = np.zeros((features, levels))
    if levels == 1:
        return weights
    times = np.ones(n) if repeated is None else repeated
    mean = np.average(x, axis=1, weights=times)
    size = features * (levels - 1)
    rows = some = _Rows.of(x, own, times, levels, mean, pseudo_count)
    if n >= 2 * _FIRST_ROWS:
        some = _Rows.of(*_first_stage(x, own, times, levels), levels, mean, pseudo_count)
    if size > _MORE_PARAMETERS:
        steep = _STEEP if some is rows else _START
        weights = _quasi_newton(some, weights, some.scale(), steep)
    else:
        weights = _newton(some, weights)
    if some is rows:
        return weights
    if size <= _PARAMETERS or size**2 * len(rows.each) <= _PRODUCTS:
        return _newton(rows, weights)
    turn = some.roots(weights) if size <= _MOST_PARAMETERS else rows.scale()
    return _quasi_newton(rows, weights, turn, _STEEP)


def _first_stage(
    x: Floats, own: NDArray[np.intp], times: Floats, levels: int
) -> tuple[Floats, NDArray[np.intp], Floats]:
    """Return some of the rows of each level, all if it is rare, which count for the others."""
    counts = np.bincount(own, minlength=levels)
    every = np.clip(counts // _OF_EACH, 1, len(own) // _FIRST_ROWS)
    order = np.argsort(own, kind="stable")
    rank = np.arange(len(order)) - (np.cumsum(counts) - counts)[own[order]]
    chosen = order[rank % every[own[order]] == 0]
    before = np.bincount(own, times, levels)
    after = np.bincount(own[chosen], times[chosen], levels)
    share = np.divide(before, after, out=np.ones(levels), where=after > 0)
    return x[:, chosen], own[chosen], times[chosen] * share[own[chosen]]


@final
class _Rows(NamedTuple):
    """Distinct rows of features, of shape (features, rows), and how often each level has them.

    The prior of the penalised likelihood is a row at the mean of the features, whose weight is
    spread over the levels, and a normal distribution of all weights but the intercepts.
    """

    x: Floats
    seen: Floats
    each: Floats
    mean: Floats
    pseudo_count: float

    @classmethod
    def of(
        cls,
        x: Floats,
        own: NDArray[np.intp],
        times: Floats,
        levels: int,
        mean: Floats,
        pseudo_count: float,
    ) -> _Rows:
        """Put equal rows together."""
        # Equal rows have the same product with any vector; that others do not is checked.
        marks = np.random.default_rng(0).standard_normal(len(x)) @ x
        _, first, place = np.unique(marks, return_index=True, return_inverse=True)
        if len(first) == x.shape[1] or not np.array_equal(x[:, first][:, place], x):
            first = place = np.arange(x.shape[1], dtype=np.intp)
        cells = own * len(first) + place
        size = levels * len(first)
        seen = np.bincount(cells, times, size).astype(np.float64).reshape(levels, len(first))
        distinct = np.ascontiguousarray(x[:, first])
        return cls(distinct, seen, seen.sum(axis=0), mean, pseudo_count)

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the negative logarithm of the posterior density, and its gradient."""
        total, gradient = self._prior(weights), self._prior_gradient(weights)
        for x, seen, each in self._blocks():
            logits = weights.T @ x
            sums = _log_sums(logits)
            total += float(each @ sums - np.vdot(seen, logits))
            logits -= sums
            np.exp(logits, out=logits)
            logits *= each
            logits -= seen
            gradient += x @ logits.T
        return total, gradient

    def curvature(self, weights: Floats) -> Floats:
        """Return the Hessian, of shape (levels, features, levels, features)."""
        features, levels = weights.shape
        hessian = np.zeros((levels, features, levels, features))
        diagonal = np.zeros((levels, features, features))
        for x, _, each in self._blocks():
            logits = weights.T @ x
            shares = np.exp(logits - _log_sums(logits))
            weighted = (shares[:, None] * x).reshape(levels * features, -1)
            hessian -= (each * weighted @ weighted.T).reshape(hessian.shape)
            diagonal += (each * weighted @ x.T).reshape(levels, features, features)
        for a in range(levels):
            hessian[a, :, a] += diagonal[a]
        logits = weights.T @ self.mean
        shares = np.exp(logits - _log_sums(logits))
        inner = self.pseudo_count * (np.diag(shares) - np.outer(shares, shares))
        hessian += inner[:, None, :, None] * np.outer(self.mean, self.mean)[:, None, :]
        inside = np.arange(1, features)
        for a in range(levels):
            hessian[a, inside, a, inside] += self.pseudo_count
        return hessian

    def roots(self, weights: Floats) -> Floats:
        """Return a square root of the inverse of the Hessian, of shape (levels x features, ·)."""
        features, levels = weights.shape
        basis, size = contrasts(levels), features * (levels - 1)
        hessian = self.reduced(weights).reshape(size, size) / float(self.each.sum())
        values, vectors = np.linalg.eigh(hessian)
        directions = (vectors / np.sqrt(np.maximum(values, _FLAT))).reshape(
            levels - 1, features, -1
        )
        root: Floats = np.einsum("lj,jfd->lfd", basis, directions).reshape(levels * features, size)
        return root

    def scale(self) -> Floats:
        """Return the square root of the inverse that the Hessian has if no feature has an effect.

        Covariances between levels are left out.
        """
        n, features, levels = float(self.each.sum()), len(self.x), len(self.seen)
        shares = (self.seen.sum(axis=1) + 1.0) / (n + levels)
        squares = (self.each * self.x) @ self.x.T / n
        ridge = np.append(0.0, np.full(features - 1, self.pseudo_count / n))
        values, vectors = np.linalg.eigh(
            (shares * (1 - shares))[:, None, None] * squares + np.diag(ridge)
        )
        root = np.zeros((levels, features, levels, features))
        for a in range(levels):
            root[a, :, a] = vectors[a] / np.sqrt(np.maximum(values[a], _FLAT))
        return root.reshape(levels * features, -1)

    def reduced(self, weights: Floats) -> Floats:
        """Return the Hessian among weights that sum to zero over the levels."""
        basis = contrasts(weights.shape[1])
        reduced: Floats = np.einsum(
            "afbg,aj,bk->jfkg", self.curvature(weights), basis, basis, optimize=True
        )
        return reduced

    def _blocks(self) -> Iterator[tuple[Floats, Floats, Floats]]:
        for start in range(0, len(self.each), _BLOCK):
            here = slice(start, start + _BLOCK)
            yield self.x[:, here], self.seen[:, here], self.each[here]

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


def _newton(rows: _Rows, weights: Floats) -> Floats:
    """Minimise by Newton's method with halved steps, among weights that sum to zero."""
    features, levels = weights.shape
    basis, size = contrasts(levels), features * (levels - 1)
    value, gradient = rows.gradient(weights)
    for _ in range(_ITERATIONS):
        parts = spectrum(rows.reduced(weights).reshape(size, size))
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


def _quasi_newton(rows: _Rows, weights: Floats, turn: Floats, steep: float) -> Floats:
    """Minimise by L-BFGS among moves ``turn @ direction``, in which the curvature is about one."""
    from scipy.optimize import minimize

    shape, n = weights.shape, float(rows.each.sum())

    def moved(flat: Floats) -> Floats:
        result: Floats = weights + (turn @ flat).reshape(shape[::-1]).T
        return result

    def loss(flat: Floats) -> tuple[float, Floats]:
        value, gradient = rows.gradient(moved(flat))
        return value / n, turn.T @ gradient.T.ravel() / n

    options: Any = {"maxiter": 1000, "gtol": steep, "ftol": 1e-14}
    start = np.zeros(turn.shape[1])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    result = moved(found.x)
    result -= result.mean(axis=1, keepdims=True)
    return result
