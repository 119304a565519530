"""Multinomial logistic regression of a discrete node on its parents.

All levels of the node, and all levels of a discrete parent, are penalised alike: the effects of
the levels sum to zero, in an orthonormal basis. The fit does not depend on which level is first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.networks import Level, MultinomialLogit
from isthmus.networks.conditionals import spectrum

_ITERATIONS = 100
"""Maximum number of Newton steps; separated levels without a prior need about 40."""
_NEARLY, _NEARER = 1e-6, 1e-16
"""Expected gain of a Newton step, in nats, below which it is the last one, with the Hessian of its
point and with that of an earlier one."""
_TRIAL = 1e-3
"""The same for a regression of which only the likelihood is asked for."""
_SLOWER = 0.1
"""The Hessian, which costs as much as ten gradients or more, is computed again once the expected
gain of a step exceeds this share of the last one's."""
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
_LEAST_CURVED = 1e-9
"""Least eigenvalue of a correlation matrix for which equations are solved by its Cholesky factor,
which takes a tenth of the time of its eigenvectors: less might be rounding."""
_SMALLEST = float(np.finfo(np.float64).tiny)
_SINGLE = 1e5
"""Rows for each of the prior up to which Hessians are computed in single precision."""
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
    first, place = distinct([*codes, *numbers.T], len(own))
    given = discrete, [column[first] for column in codes], sizes, continuous, numbers[first]
    return fit_counts(levels, tally(own, place, len(levels)), *given, pseudo_count).model


def distinct(columns: Sequence[NDArray[Any]], n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return one row of each combination of values, and the combination of each row."""
    # Equal rows have the same sum with any weights; that others do not is checked.
    marks, weights = np.zeros(n), np.random.default_rng(0).uniform(0.5, 1.0, len(columns))
    for column, weight in zip(columns, weights.tolist(), strict=True):
        marks += column * (weight / (float(column.std()) or 1.0))
    _, first, place = np.unique(marks, return_index=True, return_inverse=True)
    if len(first) < n and all(np.array_equal(column[first][place], column) for column in columns):
        return first, place
    every = np.arange(n, dtype=np.intp)
    return every, every


def tally(own: NDArray[np.intp], place: NDArray[np.intp], levels: int) -> Floats:
    """Return how often each level occurs in each combination, of shape (levels, combinations)."""
    count = int(place.max(initial=-1)) + 1
    cells = np.bincount(own * count + place, minlength=levels * count)
    return cells.reshape(levels, count).astype(np.float64)


class LogitFit(NamedTuple):
    """A fitted regression.

    Attributes
    ----------
    model
        The distribution.
    score
        Its log-likelihood.
    chances
        Probabilities of the levels in each combination, of shape (levels, combinations).
    """

    model: MultinomialLogit
    score: float
    chances: Floats


def fit_counts(
    levels: tuple[Level, ...],
    seen: Floats,
    discrete: tuple[str, ...],
    codes: Sequence[NDArray[np.intp]],
    sizes: tuple[int, ...],
    continuous: tuple[str, ...],
    numbers: Floats,
    pseudo_count: float,
    start: MultinomialLogit | None = None,
    *,
    trial: bool = False,
) -> LogitFit:
    """Fit a multinomial logistic regression to the counts of levels in combinations of parents.

    Parameters
    ----------
    levels, seen
        Levels of the node, and how often each occurs in each combination.
    discrete, codes, sizes, continuous, numbers, pseudo_count
        As for `fit_logit`, of the combinations instead of the rows.
    start
        A regression of the same parents close to that which is looked for.
    trial
        Whether the likelihood is only compared with others: it may be too low by 0.001 nats.
    """
    each = seen.sum(axis=0)
    n = float(each.sum())
    centre = each @ numbers / n
    spread = np.sqrt(each @ (numbers - centre) ** 2 / n)
    still = numbers.max(axis=0) == numbers.min(axis=0)
    centre = np.where(still, numbers[0], centre)
    spread = np.where(still | (spread == 0.0), 1.0, spread)
    bases = [contrasts(size) for size in sizes]
    features = [np.ones((1, len(each))), ((numbers - centre) / spread).T]
    features += [basis.T[:, column] for basis, column in zip(bases, codes, strict=True)]
    x, k = np.concatenate(features), len(continuous)
    near = None
    if start is not None:
        terms = [start.slopes * spread[:, None]]
        terms += [basis.T @ own for basis, own in zip(bases, start.effects, strict=True)]
        level = start.intercepts + centre @ start.slopes
        level = level + sum(own.mean(axis=0) for own in start.effects)
        near = np.concatenate([level[None], *terms])
        near -= near.mean(axis=1, keepdims=True)
    weights = optimum(x, seen, pseudo_count, near, trial=trial)
    logits = weights.T @ x
    logits -= _log_sums(logits)
    slopes = weights[1 : 1 + k] / spread[:, None]
    intercepts = weights[0] - centre @ slopes
    effects, first = [], 1 + k
    for basis in bases:
        added = basis @ weights[first : first + basis.shape[1]]
        # Reported, not penalised, as differences from the first level.
        intercepts, added = intercepts + added[0], added - added[0]
        effects.append(added - added[:, :1])
        first += basis.shape[1]
    model = MultinomialLogit(
        levels,
        discrete,
        continuous,
        intercepts - intercepts[0],
        tuple(effects),
        slopes - slopes[:, :1],
    )
    return LogitFit(model, float(np.vdot(seen, logits)), np.exp(logits))


def contrasts(size: int) -> Floats:
    """Return an orthonormal basis of the effects of some levels that sum to zero, as columns."""
    basis = np.zeros((size, size - 1))
    for j in range(1, size):
        basis[:j, j - 1], basis[j, j - 1] = -1.0, j
        basis[:, j - 1] /= np.sqrt(j * (j + 1.0))
    return basis


def optimum(
    x: Floats,
    seen: Floats,
    pseudo_count: float,
    start: Floats | None = None,
    *,
    trial: bool = False,
) -> Floats:
    """Return the weights (features, levels) of the highest posterior density; they sum to zero.

    The search starts on some of the rows, each of which counts for several, and goes on with more
    of them: most steps are taken where they cost little.

    Parameters
    ----------
    x, seen
        Distinct rows of features, of shape (features, rows), of which the first is one, and how
        often each level has them, of shape (levels, rows).
    pseudo_count
        Weight of the prior, in rows.
    start
        Weights close to those that are looked for.
    trial
        Whether an expected gain of 0.001 nats from a step is small enough to be the last.
    """
    levels, features = len(seen), len(x)
    weights = np.zeros((features, levels)) if start is None else start
    if levels == 1:
        return np.zeros((features, 1))
    each = seen.sum(axis=0)
    rows = some = _Rows(x, seen, each, x @ each / each.sum(), pseudo_count)
    size = features * (levels - 1)
    if start is not None and size <= _MORE_PARAMETERS:
        return _newton(rows, weights, (_TRIAL, _TRIAL) if trial else (_NEARLY, _NEARER))
    if np.count_nonzero(seen) >= 2 * _FIRST_ROWS:
        some = rows.part()
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

    def part(self) -> _Rows:
        """Return some of the rows of each level, all if it is rare, which count for the others."""
        own, place = np.nonzero(self.seen)
        times = self.seen[own, place]
        counts = np.bincount(own, minlength=len(self.seen))
        every = np.clip(counts // _OF_EACH, 1, len(own) // _FIRST_ROWS)
        rank = np.arange(len(own)) - (np.cumsum(counts) - counts)[own]
        chosen = rank % every[own] == 0
        before, after = self.seen.sum(axis=1), np.bincount(own[chosen], times[chosen], len(counts))
        share = np.divide(before, after, out=np.ones(len(counts)), where=after > 0)
        kept, inside = np.unique(place[chosen], return_inverse=True)
        seen = np.zeros((len(counts), len(kept)))
        seen[own[chosen], inside] = times[chosen] * share[own[chosen]]
        x = np.ascontiguousarray(self.x[:, kept])
        return _Rows(x, seen, seen.sum(axis=0), self.mean, self.pseudo_count)

    def gradient(self, weights: Floats) -> tuple[float, Floats]:
        """Return the negative logarithm of the posterior density, and its gradient."""
        total, gradient = self._prior(weights), self._prior_gradient(weights)
        for x, seen, each in self._blocks():
            logits = weights.T @ x
            logits -= logits.max(axis=0)
            total -= float(np.vdot(seen, logits))
            np.exp(logits, out=logits)
            sums = logits.sum(axis=0)
            total += float(each @ np.log(sums))
            logits *= each / sums
            logits -= seen
            gradient += x @ logits.T
        return total, gradient

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
        """Return the Hessian among weights that sum to zero over the levels.

        It has the shape (levels - 1, features, levels - 1, features).
        """
        features, levels = weights.shape
        free = range(levels - 1)
        # The Hessian of differences from the first level. Single precision is enough for steps if
        # the prior is large enough for the least eigenvalues: the gradient decides where they end.
        single = float(self.each.sum()) <= _SINGLE * self.pseudo_count
        precision: Any = np.float32 if single else np.float64
        own = np.zeros((levels - 1, features, levels - 1, features))
        diagonal = np.zeros((levels - 1, features, features))
        for x, _, each in self._blocks():
            chances = weights.T @ x
            chances -= chances.max(axis=0)
            np.exp(chances, out=chances)
            chances = chances[1:] / chances.sum(axis=0)
            some = x.astype(precision, copy=False)
            roots = np.sqrt(each).astype(precision)
            if levels > 2:  # all pairs of levels at once
                wide = (chances.astype(precision) * roots)[:, None] * some
                wide = wide.reshape(-1, len(each))
                own -= (wide @ wide.T).reshape(own.shape)
            spread = np.sqrt(chances * np.maximum(1.0 - chances, 0.0)).astype(precision)
            for j in free:
                wide = some * (roots * spread[j])
                diagonal[j] += wide @ wide.T
        for j in free:
            own[j, :, j] = diagonal[j]
        basis = contrasts(levels)
        turn = basis[1:] - basis[0]
        reduced: Floats = np.einsum("jfkg,ja,kb->afbg", own, turn, turn, optimize=True)
        logits = weights.T @ self.mean
        shares = np.exp(logits - _log_sums(logits))
        inner = basis.T @ (np.diag(shares) - np.outer(shares, shares)) @ basis
        inner *= self.pseudo_count
        reduced += inner[:, None, :, None] * np.outer(self.mean, self.mean)[:, None, :]
        inside = np.arange(1, features)
        for j in free:
            reduced[j, inside, j, inside] += self.pseudo_count
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


def _newton(
    rows: _Rows, weights: Floats, enough: tuple[float, float] = (_NEARLY, _NEARER)
) -> Floats:
    """Minimise by Newton's method with halved steps, among weights that sum to zero.

    A Hessian serves as long as steps gain much less each time. The last step is one whose expected
    gain is below the first number of `enough`, or with the Hessian of an earlier point below the
    second.
    """
    features, levels = weights.shape
    basis, size = contrasts(levels), features * (levels - 1)
    value, gradient = rows.gradient(weights)
    solve, gain = None, np.inf
    for _ in range(_ITERATIONS):
        slope, last, fresh = (gradient @ basis).T.reshape(size, 1), gain, False
        if solve is not None:
            move = solve(slope)
            gain = float((slope * move).sum())
        if solve is None or gain > _SLOWER * last:
            solve, fresh = _solver(rows.reduced(weights).reshape(size, size)), True
            move = solve(slope)
            gain = float((slope * move).sum())
        direction, length = (basis @ move.reshape(levels - 1, features)).T, 1.0
        limit = value + 1e-12 * abs(value)
        value, gradient = rows.gradient(weights - direction)
        while length > 1e-8 and value > limit - 0.25 * length * gain:
            length *= 0.5
            value, gradient = rows.gradient(weights - length * direction)
        weights = weights - length * direction
        if gain < enough[0 if fresh else 1]:
            break
        if length < 1.0:
            solve = None
    return weights


def _solver(hessian: Floats) -> Callable[[Floats], Floats]:
    """Return a function that solves linear equations with a positive semidefinite matrix."""
    spread = np.sqrt(np.maximum(hessian.diagonal(), _SMALLEST))
    try:
        root = np.linalg.inv(np.linalg.cholesky(hessian / np.outer(spread, spread)))
    except np.linalg.LinAlgError:
        pass
    else:
        if np.vdot(root, root) * _LEAST_CURVED < 1.0:
            return lambda right: (root.T @ (root @ (right / spread[:, None]))) / spread[:, None]
    parts = spectrum(hessian)
    return lambda right: parts.solve(right / parts.spread[:, None]) / parts.spread[:, None]


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
