"""Upper bounds on the scores of supersets of a parent set; see ``isthmus.objectives.local``.

They follow from two facts: a likelihood does not decrease when parents are added, and it is at most
the likelihood with all other variables as parents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Work
from isthmus.kernels.scoring import DiscreteForm, discrete_score
from isthmus.objectives import LocalScore
from isthmus.objectives.local import BoundWork, ScoreBound
from isthmus.statistics import Counts

if TYPE_CHECKING:
    from isthmus.statistics.coded import CodedRows


_AT_ONCE = 1 << 20
"""Number of codes that are compared at once."""
_BLOCK = 128
"""Columns of a matrix that are inverted at once."""
_MAX_PAIRS = 100
"""Maximum number of variables for entropies given two others: a million numbers."""


def likelihood_bound(counts: Counts, each: float) -> BoundWork:
    """Compute the bound for a log-likelihood minus ``each`` per free parameter.

    The penalty of a superset is at least that of the set, the likelihood is at most that with all
    parents, and a parent adds at most its own conditional entropy.
    """
    cards = counts.schema.cardinalities.astype(np.float64)
    d = len(cards)
    highest = np.zeros(d)
    gain = np.empty((0, 0, 0))
    if counts.joint is not None:
        highest = yield from _likelihood_given_all(counts.joint)
        gain = yield from _entropies(counts)
    return ScoreBound(
        top=np.repeat(highest[:, None], d + 1, axis=1),
        weight=np.zeros((1, d)),
        scale=each * (cards - 1.0),
        levels=cards,
        factor=np.zeros(d),
        gain=gain,
    )


def dirichlet_bound(counts: Counts) -> BoundWork:
    """Compute the bound for BDeu and K2.

    Both are products of predictive probabilities, row by row. The first time that a level of the
    child appears with a configuration of the parents, its probability is at most 1 / r for r
    levels. Each combination in the data therefore costs at least log r, and supersets have more
    combinations.
    """
    yield
    cards = counts.schema.cardinalities.astype(np.float64)
    d = len(cards)
    if counts.joint is None:
        return ScoreBound.none(d)
    support = _count_score(counts, counts.joint, DiscreteForm.SUPPORT)
    return ScoreBound(
        top=np.zeros((d, d + 1)),
        weight=np.zeros((1, d)),
        scale=np.zeros(d),
        levels=cards,
        factor=np.log(cards),
        support=support,
    )


def gaussian_bound(
    correlation: Floats, log_scale: Floats, tables: tuple[Floats, Floats, Floats], tolerance: float
) -> BoundWork:
    """Compute the bound for ``a[k] - b[k] log v(child | parents) - c[k] log det R[parents]``.

    A variance given some variables is at least that given all others, and a determinant is at least
    the product of the variances given all others.
    """
    a, b, c = tables
    d = len(log_scale)
    if np.ptp(c) > 0:
        return ScoreBound.none(d)
    precision = yield from _inverse(correlation, 1e3 * tolerance)
    lowest = np.full(d, np.log(tolerance))
    if precision is not None:
        # A lower bound also if the matrix is ill-conditioned.
        lowest = np.maximum(lowest, -np.log(np.diagonal(precision)) - 1e-6)
    lowest += log_scale
    weight = c[0] * lowest
    # A set of size k has supersets of each size from k on: take the maximum over sizes.
    values = a[None, :] - b[None, :] * lowest[:, None] - np.arange(d + 1) * weight.min()
    top = np.maximum.accumulate(values[:, ::-1], axis=1)[:, ::-1] + np.arange(d + 1) * weight.min()
    return ScoreBound(
        top=top,
        weight=weight[None, :],
        scale=np.zeros(d),
        levels=np.ones(d),
        factor=np.zeros(d),
    )


def block_bound(
    correlation: Floats,
    starts: NDArray[np.int64],
    base: Floats,
    half_n: float,
    penalty: float,
    tolerance: float,
) -> BoundWork:
    """Compute the bound for scores of blocks of columns."""
    sizes = np.diff(starts).astype(np.float64)
    d = len(sizes)
    lowest = sizes * np.log(tolerance)
    precision = yield from _inverse(correlation, 1e3 * tolerance)
    if precision is not None:
        for v in range(d):
            yield
            part = precision[starts[v] : starts[v + 1], starts[v] : starts[v + 1]]
            lowest[v] = max(lowest[v], -np.linalg.slogdet(part)[1] - 1e-6)
    return ScoreBound(
        top=np.repeat((base - half_n * lowest)[:, None], d + 1, axis=1),
        weight=penalty * sizes[:, None] * sizes[None, :],
        scale=np.zeros(d),
        levels=np.ones(d),
        factor=np.zeros(d),
    )


def _inverse(matrix: Floats, least: float) -> Work[Floats | None]:
    """Invert a positive definite matrix; None if an eigenvalue may be below ``least``.

    By blocks of columns, since one call of LAPACK on a few thousand columns takes seconds.
    """
    d = len(matrix)
    factor = np.array(matrix)  # becomes the lower Cholesky factor
    inverse = np.zeros_like(factor)  # of that factor
    for first in range(0, d, _BLOCK):
        here, rest = slice(first, min(first + _BLOCK, d)), slice(first + _BLOCK, d)
        try:
            corner = np.linalg.cholesky(factor[here, here])
        except np.linalg.LinAlgError:
            return None
        own = np.linalg.inv(corner)
        below = factor[rest, here] @ own.T
        for start in range(rest.start, d, _BLOCK):
            rows = slice(start, min(start + _BLOCK, d))
            part = below[start - rest.start : rows.stop - rest.start]
            factor[rows, rest.start : rows.stop] -= part @ below[: rows.stop - rest.start].T
            yield
        factor[here, here], factor[rest, here] = corner, below
        inverse[here, here] = own
        inverse[here, :first] = -own @ (factor[here, :first] @ inverse[:first, :first])
        yield
    product = np.empty_like(inverse)
    for first in range(0, d, _BLOCK):
        columns = slice(first, first + _BLOCK)
        product[:, columns] = inverse[first:].T @ inverse[first:, columns]
        yield
    # The smallest eigenvalue is at least one divided by the trace of the inverse.
    return product if np.trace(product) * least < 1.0 else None


def _likelihood_given_all(rows: CodedRows) -> Work[Floats]:
    """Compute the maximised log-likelihood of each column given all others."""
    codes, weights = rows.codes, rows.filled().astype(np.float64)
    d, m = codes.shape
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**63, (d, int(codes.max(initial=0)) + 1), dtype=np.uint64)
    hashes = np.stack([words[v][codes[v]] for v in range(d)]) if d else np.empty((0, m), np.uint64)
    row_hashes = np.bitwise_xor.reduce(hashes, axis=0)
    joint = _sum_n_log_n(codes, None, row_hashes, weights)
    likelihoods = np.empty(d)
    for v in range(d):
        yield
        given = _sum_n_log_n(codes, v, row_hashes ^ hashes[v], weights)
        # Zero is always a valid bound; it is used if two different rows have the same hash.
        likelihoods[v] = 0.0 if given is None or joint is None else min(0.0, joint - given + 1e-9)
    return likelihoods


def _sum_n_log_n(
    codes: NDArray[np.unsignedinteger], left_out: int | None, keys: NDArray[np.uint64], w: Floats
) -> float | None:
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    new = np.ones(len(keys), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    same = np.flatnonzero(~new)
    at, before = order[same], order[same - 1]
    several = max(1, _AT_ONCE // max(len(same), 1))
    for v in range(0, len(codes) if len(same) else 0, several):
        block = codes[v : v + several]
        differ = block[:, at] != block[:, before]
        if left_out is not None and v <= left_out < v + several:
            differ[left_out - v] = False
        if differ.any():
            return None
    totals = np.bincount(np.cumsum(new) - 1, weights=w[order])
    totals = totals[totals > 0]
    return float((totals * np.log(totals)).sum())


def _entropies(counts: Counts) -> Work[Floats]:
    """Compute the entropy times n of each column given one and given two other columns."""
    assert counts.joint is not None
    local = _count_score(counts, counts.joint, DiscreteForm.LIKELIHOOD)
    d = len(local.nodes)
    pairs = d <= _MAX_PAIRS
    entropies = np.zeros((d, d if pairs else 1, d))
    for j in range(d):
        others = [p for p in range(d) if p != j]
        values = -local.extensions(j, (), others)
        yield
        entropies[j, j if pairs else 0, j] = values[0]
        for i, p in enumerate(others):
            if pairs:
                given = -local.extensions(j, [p], others[:i])
                entropies[others[:i], p, j] = entropies[p, others[:i], j] = given[1:]
                entropies[p, p, j] = given[0]
                if i % 8 == 7:
                    yield
            else:
                entropies[p, 0, j] = values[1 + i]
    return np.maximum(entropies, 0.0)


def _count_score(counts: Counts, rows: CodedRows, form: DiscreteForm) -> LocalScore:
    kernel = discrete_score(rows.codes, rows.weights, counts.schema.cardinalities, form)
    return LocalScore(counts.schema.names, kernel, equivalent=True)
