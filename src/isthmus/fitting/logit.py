"""Multinomial logistic regression of a discrete node on its parents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.models import Level, MultinomialLogit
from isthmus.types import Floats

_ITERATIONS = 1000
_GRADIENT = 1e-6
"""Largest entry of the gradient per row at which the optimisation ends."""


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
    spread[spread == 0] = 1.0
    features, n = [np.ones((len(own), 1)), (numbers - centre) / spread], len(own)
    for column, size in zip(codes, sizes, strict=True):
        features.append((column[:, None] == np.arange(1, size)).astype(np.float64))
    x = np.concatenate(features, axis=1)
    # The prior: rows at the mean of the parents, spread over the levels.
    x = np.concatenate([x, x.mean(axis=0, keepdims=True)])
    y = np.zeros((n + 1, len(levels)))
    y[np.arange(n), own] = 1.0
    y[-1] = pseudo_count / len(levels)
    weights = _optimum(x, y, pseudo_count)
    k = len(continuous)
    slopes = weights[1 : 1 + k] / spread[:, None]
    effects, first = [], 1 + k
    for size in sizes:
        effects.append(
            np.concatenate([np.zeros((1, len(levels))), weights[first : first + size - 1]])
        )
        first += size - 1
    intercepts = weights[0] - centre @ slopes
    return MultinomialLogit(levels, discrete, continuous, intercepts, tuple(effects), slopes)


def _optimum(x: Floats, y: Floats, precision: float) -> Floats:
    """Return the penalised maximum-likelihood weights (features, levels); the first level has 0."""
    from scipy.optimize import minimize

    features, levels = x.shape[1], y.shape[1]
    total = y.sum(axis=1, keepdims=True)
    ridge = np.full((features, 1), precision)
    ridge[0] = 0.0

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = np.zeros((features, levels))
        weights[:, 1:] = flat.reshape(features, levels - 1)
        logits = x @ weights
        logits -= logits.max(axis=1, keepdims=True)
        exponentials = np.exp(logits)
        sums = exponentials.sum(axis=1, keepdims=True)
        value = float((total * np.log(sums)).sum() - (y * logits).sum())
        gradient = x.T @ (total * exponentials / sums - y) + ridge * weights
        value += 0.5 * float((ridge * weights**2).sum())
        return value / len(x), gradient[:, 1:].ravel() / len(x)

    weights = np.zeros((features, levels))
    if levels == 1:
        return weights
    options: Any = {"maxiter": _ITERATIONS, "gtol": _GRADIENT, "ftol": 1e-14}
    start = np.zeros(features * (levels - 1))
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    weights[:, 1:] = found.x.reshape(features, levels - 1)
    return weights
