"""Extended BIC of regressions on curves, with as many terms per edge as pay for themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats, Integers
from isthmus.errors import MismatchError
from isthmus.kernels.scoring import curve_score, prior_score
from isthmus.objectives import (
    ADDITIVE_MODEL,
    LOCAL_SCORES,
    AdditiveLoss,
    Capabilities,
    QuadraticAdditiveLoss,
)
from isthmus.objectives.additive import CURVES, CurvedScore
from isthmus.objectives.local import FamilyCost
from isthmus.options import require_boolean, require_instance, require_number
from isthmus.scores.base import Score, small_sample_prices
from isthmus.scores.gaussian import TOLERANCE
from isthmus.statistics import Basis, Chebyshev, Kind, Moments
from isthmus.statistics.accumulator import symmetrise
from isthmus.statistics.moments import correlate
from isthmus.statistics.relations import covariance_without_rare, shares_within

# --- Least squares of additive models, from the moments of basis functions ----------------------

_DEPENDENT = 1e-8


@final
@dataclass(frozen=True)
class AdditiveLeastSquares(Score[Moments, AdditiveLoss]):
    """Squared error ``|x_j - Σ_i f_ij(x_i)|² / 2n`` of an additive model; lower is better.

    Each curve ``f_ij`` is a linear combination of basis functions. Only moments of the basis
    functions are needed, so the data may be in a warehouse or at many sites. The weight of an edge
    is the standard deviation of its curve, in the units of the child.

    Parameters
    ----------
    basis
        The basis functions; `learn` adds them to the table if it has none.
    equal_variances
        Whether to sum the squared errors of the variables, which assumes noise of equal variance.
        If False, their logarithms are summed: the likelihood with a free noise variance for each
        variable, which does not depend on units.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> table = {"x": x, "y": np.sin(2 * x) + 0.3 * rng.normal(size=500)}
    >>> score = ist.AdditiveLeastSquares()
    >>> ist.learn(table, score=score, search=ist.NotearsAdditive()).dag.edges
    (('x', 'y'),)
    """

    basis: Basis = Chebyshev()
    equal_variances: bool = True
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({ADDITIVE_MODEL})

    def __post_init__(self) -> None:
        require_instance(self, "basis", Basis, "Chebyshev()")
        require_boolean(self, "equal_variances")

    def bind(self, statistics: Moments) -> AdditiveLoss:
        schema = statistics.schema
        bare = [v.name for v in schema.variables if v.features is None]
        if bare:
            raise MismatchError(
                f"{self!r} needs basis functions of every variable; {bare[:5]} have none. "
                "Give WithFeatures(table, basis), or the moments of such a table."
            )
        targets = [start for start, _ in schema.blocks]
        # The covariance of all features is large, so only the rows of one node exist at a time.
        scatter, n = statistics.scatter(), statistics.n
        variances = scatter.diagonal()[targets] / n
        scale = np.ones(len(scatter))
        if not self.equal_variances:
            spread = np.sqrt(variances)
            scale[targets] = np.where(spread > 0, spread, 1.0)
            variances = variances / scale[targets] / scale[targets]

        def covariance(features: slice) -> NDArray[np.float64]:
            rows: NDArray[np.float64] = scatter[features] / n
            if not self.equal_variances:
                rows /= scale[features, None]
                rows /= scale
            return rows

        features = [slice(start + 1, stop) for start, stop in schema.blocks]
        maps = [_whitening(scatter[own, own] / n) for own in features]
        owner = np.repeat(np.arange(len(maps)), [m.shape[1] for m in maps])
        whitened = _mapped(covariance, len(scatter), features, maps)
        inner = _mapped(lambda own: whitened[:, own].T, len(whitened), features, maps)
        symmetrise(inner)
        return QuadraticAdditiveLoss(
            schema.names,
            owner,
            inner,
            whitened[:, targets],
            variances,
            profiled=not self.equal_variances,
            sample_size=n,
        )


def _whitening(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a map from the features of a node to uncorrelated ones of variance one.

    In these, the norm of the coefficients is the standard deviation of the curve. Constant
    combinations, for example of a column with few distinct values, are left out.
    """
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _DEPENDENT * max(float(values.max(initial=0.0)), 1e-300)
    mapping: NDArray[np.float64] = vectors[:, kept] / np.sqrt(values[kept])
    return mapping


def _mapped(
    rows: Callable[[slice], NDArray[np.float64]],
    width: int,
    features: list[slice],
    maps: list[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Apply the map of each node to the rows of its features."""
    mapped = np.empty((sum(m.shape[1] for m in maps), width))
    at = 0
    for own, mapping in zip(features, maps, strict=True):
        size = mapping.shape[1]
        np.matmul(mapping.T, rows(own), out=mapped[at : at + size])
        at += size
    return mapped


# --- How much more two variables agree by chance if both vary most where a third one is high ----
#
# The gain of a false edge is half a nat per coefficient if the spread of the noise is constant.
# If the noise of both ends depends on a common cause, the products of residuals have a larger
# variance than the score assumes, and the gain grows in proportion: to more than twice as much
# for two rare levels that become frequent where a cause is high. The ratio is that of a robust
# (sandwich) to the usual variance of a coefficient. It follows from products of functions of the
# columns.

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


# --- Extended BIC of regressions on curves -------------------------------------------------------

_DEGREES = (3, 6)
"""Degrees of the curves that are tried for an edge, besides a line: see
``benchmarks/curves/shapes.py``. With the higher one alone, mild curves pay only in large tables."""


@final
@dataclass(frozen=True)
class AdditiveEBIC(Score[Moments, CurvedScore]):
    """Extended BIC of additive regressions, for curved effects; higher is better.

    Each variable is the sum of a line or curve of each of its parents, and of Gaussian noise. An
    edge gets a curve only if the curve gains more than the penalty of its terms, so a graph of
    straight effects has the score of `GaussianEBIC`, or of `DegenerateGaussian` in mixed tables, if
    the spread of the noise is constant. Where two variables vary most for the same values of a
    third one, their edge has a higher penalty, in proportion to the variance of its coefficient.
    The levels of discrete variables enter as they do there, and a discrete child is the block of
    its indicators. Only moments of functions of the columns are needed.

    Parameters
    ----------
    gamma
        Weight of the extra penalty ``2 * gamma * log(d)`` per edge among d variables.
    curved
        Pairs ``(parent, child)`` that may be curved; by default all. `learn` names those whose
        curves it has found necessary.
    basis
        Functions of the continuous variables.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(size=300)
    >>> table = {"x": x, "y": x**2 + rng.normal(size=300)}
    >>> ist.learn(table, score=ist.AdditiveEBIC()).dag.edges
    (('x', 'y'),)
    """

    gamma: float = 0.5
    curved: Iterable[tuple[str, str]] | None = None
    basis: Chebyshev = Chebyshev(6, 3.0)
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind | None] = None
    gives: ClassVar[Capabilities] = frozenset({LOCAL_SCORES, CURVES})

    def __post_init__(self) -> None:
        require_number(self, "gamma", least=0)
        require_instance(self, "basis", Chebyshev, "Chebyshev(6, 3.0)")
        if self.curved is not None:
            object.__setattr__(self, "curved", tuple(sorted((a, b) for a, b in self.curved)))

    def bind(self, statistics: Moments) -> CurvedScore:
        schema, n = statistics.schema, statistics.n
        d = len(schema)
        keep, own, degrees = _columns(statistics)
        correlation, scale = correlate(covariance_without_rare(statistics)[np.ix_(keep, keep)])
        sizes = np.array([len(k) for k in _split(keep, statistics.blocks)], np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        log_scale = np.log(scale)
        each = 0.5 * np.log(n)
        base = np.array(
            [
                -0.5 * n * (own[v] * (np.log(2.0 * np.pi) + 1.0))
                - 0.5 * n * log_scale[starts[v] : starts[v] + own[v]].sum()
                - each * (own[v] + own[v] * (own[v] + 1) / 2.0)
                for v in range(d)
            ]
        )
        parent_prices = small_sample_prices(n, d, self.gamma)
        curves = curve_score(
            correlation,
            starts,
            own,
            degrees,
            base,
            coefficient_price=float(each),
            parent_prices=parent_prices,
            column_prices=small_sample_prices(n, len(keep), 0.0),
            allowed=self._allowed(statistics),
            half_n=0.5 * n,
            tolerance=TOLERANCE,
        )
        of_edges = parent_prices[min(d, 1)] + each * (np.outer(own, own) - 1.0)
        return CurvedScore(
            schema.names,
            prior_score(curves, (1.0 - spread_ratios(statistics)) * of_edges),
            curves=curves,
            bends=degrees[:, 0] > 0,
            edge_price=2.0 * self.gamma * float(np.log(max(d, 1))),
            cost=_cost(sizes),
        )

    def _allowed(self, statistics: Moments) -> NDArray[np.bool_]:
        d = len(statistics.schema)
        allowed = np.full((d, d), self.curved is None)
        for parent, child in self.curved or ():
            allowed[statistics.schema.index(parent), statistics.schema.index(child)] = True
        return allowed


def _columns(statistics: Moments) -> tuple[Integers, Integers, Integers]:
    """Return the columns to use, the number of own ones, and of functions at each degree.

    The first function of the basis is the variable itself, clipped, so it is left out.
    """
    keep: list[int] = []
    own, degrees = [], []
    for variable, (start, stop) in zip(statistics.schema.variables, statistics.blocks, strict=True):
        if variable.kind is Kind.DISCRETE:
            keep += range(start, stop)
            own.append(stop - start)
            degrees.append([0] * len(_DEGREES))
            continue
        basis = variable.features.basis if variable.features is not None else None
        if not isinstance(basis, Chebyshev):
            raise MismatchError(
                f"AdditiveEBIC needs Chebyshev polynomials of every continuous variable, and "
                f"{variable.name!r} has none. Give the table, or the moments of "
                "WithFeatures(table, Chebyshev(6, 3.0))."
            )
        keep += [start, *range(start + 2, stop)]
        own.append(1)
        possible = [degree - 1 for degree in _DEGREES if degree <= basis.terms]
        degrees.append([*possible, *[0] * (len(_DEGREES) - len(possible))])
    return np.array(keep, np.int64), np.array(own, np.int64), np.array(degrees, np.int64)


def _split(keep: Integers, blocks: Iterable[tuple[int, int]]) -> list[Integers]:
    return [keep[(keep >= start) & (keep < stop)] for start, stop in blocks]


def _cost(sizes: Floats | Integers) -> FamilyCost:
    """Return the cost of a family: its columns are taken out one by one."""
    width = float(np.mean(sizes))

    def seconds(parents: int) -> float:
        columns = width * (parents + 1)
        return 1e-6 + 1e-9 * columns**2 * (1 + parents)

    return seconds
