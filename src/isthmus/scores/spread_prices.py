"""How much more two variables agree by chance if both vary most where a third one is high.

The gain of a false edge is half a nat per coefficient if the spread of the noise is constant. If
the noise of both ends depends on a common cause, the products of residuals have a larger variance
than the score assumes, and the gain grows in proportion: to more than twice as much for two rare
levels that become frequent where a cause is high. The ratio is that of a robust (sandwich) to the
usual variance of a coefficient. It follows from products of functions of the columns.
"""

from __future__ import annotations

import numpy as np

from isthmus.statistics import Kind, Moments
from isthmus.statistics.relations import shares_within
from isthmus.types import Floats, Integers

_TOLERANCE = 1e-6
"""Share of the largest eigenvalue up to which a polynomial counts as a combination of others."""


def spread_ratios(moments: Moments) -> Floats:
    """Return by what factor chance gains between two variables exceed those of constant spread.

    It is the largest factor over all third variables, and at least one. With ``v(k)`` the variance
    of a variable at level k of the third one, relative to its mean over levels, the factor is the
    mean of the product of both. A continuous variable has the nodes of a Gauss quadrature as
    levels, and a discrete one as many variances as it has levels, which are averaged.

    Parameters
    ----------
    moments
        Moments with Chebyshev polynomials of each continuous variable.

    Returns
    -------
    ratios
        Shape (d, d), symmetric.
    """
    d = len(moments.schema)
    ratios = np.ones((d, d))
    if d < 3:
        return ratios
    products, functions = _products(moments)
    discrete = [variable.kind is Kind.DISCRETE for variable in moments.schema.variables]
    own = [f if levels else f[1:2] for f, levels in zip(functions, discrete, strict=True)]
    squares = [f if levels else f[2:3] for f, levels in zip(functions, discrete, strict=True)]
    if any(map(len, own)) != any(map(len, squares)):
        return ratios
    sizes = np.array([len(f) for f in own])
    first, second = np.concatenate(own), np.concatenate(squares)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    halved = np.repeat(np.where(discrete, 1.0, 0.5), sizes)[:, None]  # u² = (T_2 + 1) / 2
    mean = halved[:, 0] * products[0, second]
    of_squares = halved[:, 0] ** 2 * products[second, second] - mean**2
    fewest = np.sqrt(moments.n)
    for third in range(d):
        weights, shares = (_levels if discrete[third] else _nodes)(products, functions[third])
        common = moments.n * shares >= fewest
        if np.count_nonzero(common) < 2:
            continue
        shares = shares[common] / shares[common].sum()
        means = products[:, functions[third]] @ weights[:, common]
        square = halved * means[second] + (1.0 - halved)
        variances = np.maximum(square - means[first] ** 2, 0.0)
        average = variances @ shares
        safe = np.where(average > 0.0, average, np.inf)
        unequal = (variances - average[:, None]) / safe[:, None]
        # Of what chance makes of equal variances, nothing must be left (James and Stein).
        noise = len(shares) * of_squares / (moments.n * safe**2)
        size = unequal**2 @ shares
        unequal *= np.maximum(1.0 - noise / np.where(size > 0.0, size, np.inf), 0.0)[:, None]
        of_variables = np.add.reduceat(unequal, starts) / sizes[:, None]
        found = 1.0 + (of_variables * shares) @ of_variables.T
        found[third] = found[:, third] = 1.0
        np.maximum(ratios, found, out=ratios)
    np.fill_diagonal(ratios, 1.0)
    return ratios


def _products(moments: Moments) -> tuple[Floats, list[Integers]]:
    """Return means of products of functions, and which of them belong to each variable.

    A continuous variable has the constant and its polynomials, a discrete one all its indicators.
    """
    mean = _means(moments)
    p = len(mean)
    base = np.empty((p + 1, p + 1))
    base[0, 0], base[0, 1:], base[1:, 0] = 1.0, mean, mean
    base[1:, 1:] = moments.covariance() + np.outer(mean, mean)
    functions: list[Integers] = []
    first_levels: list[Floats] = []
    for variable, (start, stop) in zip(moments.schema.variables, moments.blocks, strict=True):
        own = np.arange(start + 1, stop + 1)
        if variable.kind is Kind.DISCRETE:
            level = np.zeros(p + 1)
            level[0], level[own] = 1.0, -1.0
            functions.append(np.append(own, p + 1 + len(first_levels)))
            first_levels.append(level)
        else:
            functions.append(np.append([0], own[1:]))
    levels = np.array(first_levels).reshape(-1, p + 1)
    added = levels @ base
    return np.block([[base, added.T], [added, added @ levels.T]]), functions


def _means(moments: Moments) -> Floats:
    """Return the mean of each column.

    Within groups, a variable has the mean zero, from which those of its polynomials follow.
    """
    if moments.groups is None:
        return moments.mean()
    mean, covariance = shares_within(moments), moments.covariance()
    for variable, (start, stop) in zip(moments.schema.variables, moments.blocks, strict=True):
        if variable.kind is Kind.DISCRETE:
            continue
        before, last = 1.0, 0.0  # of T_0 and T_1
        for k, column in enumerate(range(start + 2, stop)):
            # T_1 T_k = (T_k+1 + T_k-1) / 2
            before, last = last, 2.0 * covariance[start + 1, start + 1 + k] - before
            mean[column] = last
    return mean


def _levels(products: Floats, functions: Integers) -> tuple[Floats, Floats]:
    """Return what indicators are multiplied by to have means given each level, and shares."""
    shares = products[functions, functions]
    return np.diag(1.0 / np.where(shares > 0.0, shares, 1.0)), shares


def _nodes(products: Floats, functions: Integers) -> tuple[Floats, Floats]:
    """Return the same of polynomials and the nodes of the Gauss quadrature that they have.

    The nodes are the eigenvalues of multiplication by the variable, among polynomials.
    """
    known = len(functions) - 1
    row = np.arange(known)
    gram = products[np.ix_(functions[:-1], functions[:-1])]
    above = products[np.ix_(functions[1:], functions[:-1])]
    below = products[np.ix_(functions[np.abs(row - 1)], functions[:-1])]
    roots, vectors = np.linalg.eigh(gram)
    kept = roots > _TOLERANCE * roots[-1]
    basis = vectors[:, kept] / np.sqrt(roots[kept])
    times = basis.T @ (above + below) @ basis
    _, turned = np.linalg.eigh(0.5 * (times + times.T))
    weights = np.zeros((known + 1, turned.shape[1]))
    weights[:-1] = basis @ turned
    means = gram[0] @ weights[:-1]
    safe = np.where(means == 0.0, 1.0, means)
    return weights / safe, means**2
