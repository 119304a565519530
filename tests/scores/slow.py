"""Slow scores, written from their definitions and sharing no code with the library."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def gaussian_log_likelihood(x: NDArray[np.float64], child: int, parents: Sequence[int]) -> float:
    """Log density of the child's rows under the fitted regression, row by row."""
    design = np.column_stack([np.ones(len(x)), x[:, list(parents)]])
    fitted = design @ np.linalg.lstsq(design, x[:, child], rcond=None)[0]
    residual = x[:, child] - fitted
    variance = float(np.mean(residual**2))
    terms = -0.5 * math.log(2 * math.pi * variance) - residual**2 / (2 * variance)
    return math.fsum(terms)


def gaussian_bic(
    x: NDArray[np.float64], child: int, parents: Sequence[int], penalty: float = 1.0
) -> float:
    parameters = len(parents) + 2
    fit = gaussian_log_likelihood(x, child, parents)
    return fit - penalty * parameters * math.log(len(x)) / 2


def bge_set(
    x: NDArray[np.float64],
    subset: Sequence[int],
    alpha_mu: float,
    alpha_w: float,
    prior_mean: NDArray[np.float64],
) -> float:
    """Log marginal likelihood of some columns: a multivariate t by its gamma functions."""
    from scipy.special import multigammaln

    n, d = x.shape
    size = len(subset)
    if size == 0:
        return 0.0
    columns = list(subset)
    t = alpha_mu * (alpha_w - d - 1) / (alpha_mu + 1)
    prior = t * np.eye(size)
    y = x[:, columns]
    mean = y.mean(axis=0)
    away = (mean - prior_mean[columns])[:, None]
    posterior = prior + (y - mean).T @ (y - mean) + n * alpha_mu / (n + alpha_mu) * away @ away.T
    free = alpha_w - d + size
    return float(
        -0.5 * n * size * math.log(math.pi)
        + 0.5 * size * math.log(alpha_mu / (n + alpha_mu))
        + multigammaln((n + free) / 2, size)
        - multigammaln(free / 2, size)
        + free / 2 * np.linalg.slogdet(prior)[1]
        - (n + free) / 2 * np.linalg.slogdet(posterior)[1]
    )


def bge(
    x: NDArray[np.float64],
    child: int,
    parents: Sequence[int],
    alpha_mu: float,
    alpha_w: float,
    prior_mean: NDArray[np.float64],
) -> float:
    both = bge_set(x, [*parents, child], alpha_mu, alpha_w, prior_mean)
    return both - bge_set(x, parents, alpha_mu, alpha_w, prior_mean)


def degenerate_gaussian(
    blocks: Sequence[NDArray[np.float64]], child: int, parents: Sequence[int]
) -> float:
    """BIC of a multivariate regression of the child's columns on the parents' columns.

    A discrete variable has more than one column. Each of its rare levels gets one artificial row,
    in which only this variable varies: its common levels make up for it, each by its share.
    """
    n = len(blocks[0])
    widths = [block.shape[1] for block in blocks]
    rows = [np.column_stack([block - block.mean(axis=0) for block in blocks])]
    for v, block in enumerate(blocks):
        if widths[v] == 1:
            continue
        levels = np.column_stack([1.0 - block.sum(axis=1), block]).sum(axis=0)
        for level, count in enumerate(levels):
            if count < math.sqrt(n):
                common = np.where(levels >= math.sqrt(n), levels, 0.0)
                common = common if common.any() else levels
                columns = -math.sqrt(math.sqrt(n) - count) * common / common.sum()
                columns[level] += math.sqrt(math.sqrt(n) - count)
                row = np.zeros(sum(widths))
                row[sum(widths[:v]) : sum(widths[: v + 1])] = columns[1:]
                rows.append(row[None, :])
    parts = np.split(np.vstack(rows), np.cumsum(widths)[:-1], axis=1)
    y, size = parts[child], widths[child]
    design = np.column_stack([np.zeros(len(y)), *(parts[p] for p in parents)])
    residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    log_det = np.linalg.slogdet(residual.T @ residual / n)[1]
    fit = -0.5 * n * (size * math.log(2 * math.pi) + log_det + size)
    parameters = design.shape[1] * size + size * (size + 1) / 2
    return float(fit - parameters * math.log(n) / 2)


def _families(
    codes: NDArray[np.integer], child: int, parents: Sequence[int]
) -> tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]]:
    cells: Counter[tuple[int, ...]] = Counter()
    configurations: Counter[tuple[int, ...]] = Counter()
    for row in codes.tolist():
        configuration = tuple(row[p] for p in parents)
        configurations[configuration] += 1
        cells[(*configuration, row[child])] += 1
    return cells, configurations


def discrete_log_likelihood(
    codes: NDArray[np.integer], child: int, parents: Sequence[int]
) -> float:
    cells, configurations = _families(codes, child, parents)
    return sum(c * math.log(c / configurations[key[:-1]]) for key, c in cells.items())


def discrete_parameters(sizes: Sequence[int], child: int, parents: Sequence[int]) -> int:
    return (sizes[child] - 1) * math.prod(sizes[p] for p in parents)


def bic(
    codes: NDArray[np.integer], sizes: Sequence[int], child: int, parents: Sequence[int]
) -> float:
    fit = discrete_log_likelihood(codes, child, parents)
    return fit - discrete_parameters(sizes, child, parents) * math.log(len(codes)) / 2


def aic(
    codes: NDArray[np.integer], sizes: Sequence[int], child: int, parents: Sequence[int]
) -> float:
    fit = discrete_log_likelihood(codes, child, parents)
    return fit - discrete_parameters(sizes, child, parents)


def dirichlet(
    codes: NDArray[np.integer],
    sizes: Sequence[int],
    child: int,
    parents: Sequence[int],
    per_cell: float,
) -> float:
    """Marginal likelihood over all configurations, seen or not."""
    cells, configurations = _families(codes, child, parents)
    r = sizes[child]
    total = 0.0
    for configuration in itertools.product(*(range(sizes[p]) for p in parents)):
        n_j = configurations.get(configuration, 0)
        total += math.lgamma(r * per_cell) - math.lgamma(r * per_cell + n_j)
        for level in range(r):
            n_jk = cells.get((*configuration, level), 0)
            total += math.lgamma(per_cell + n_jk) - math.lgamma(per_cell)
    return total


def bdeu(
    codes: NDArray[np.integer],
    sizes: Sequence[int],
    child: int,
    parents: Sequence[int],
    ess: float,
) -> float:
    cells = sizes[child] * math.prod(sizes[p] for p in parents)
    return dirichlet(codes, sizes, child, parents, ess / cells)


def k2(
    codes: NDArray[np.integer], sizes: Sequence[int], child: int, parents: Sequence[int]
) -> float:
    return dirichlet(codes, sizes, child, parents, 1.0)
