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
from isthmus.scores.unequal_spread import spread_ratios
from isthmus.statistics import Basis, Chebyshev, Kind, Moments
from isthmus.statistics.accumulator import symmetrise
from isthmus.statistics.moments import correlate
from isthmus.statistics.relations import covariance_without_rare

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
