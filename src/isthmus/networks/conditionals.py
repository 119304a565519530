"""Distributions of one node given its parents, for networks of mixed variables.

Columns are arrays by name: codes of levels for discrete nodes, numbers for continuous ones.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools, Floats, Integers
from isthmus.errors import DataError, SchemaError
from isthmus.graphs.names import listed
from isthmus.networks.columns import Level, check_levels, check_probabilities, code_type

Columns: TypeAlias = Mapping[str, NDArray[Any]]


class Conditional(ABC):
    """The distribution of a node given its parents.

    Attributes
    ----------
    levels
        The values of a discrete node, in the order of their codes; empty for a continuous one.
    """

    levels: tuple[Level, ...]

    @property
    @abstractmethod
    def parents(self) -> tuple[str, ...]:
        """Names of the parents."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """Number of free parameters."""

    @abstractmethod
    def draw(self, columns: Columns, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw a value for each row of the parents: codes or numbers."""

    @abstractmethod
    def log_density(self, own: NDArray[Any], columns: Columns) -> Floats:
        """Return the log-probability or log-density of each row."""


class DiscreteConditional(Conditional):
    """The distribution of a discrete node."""

    @abstractmethod
    def log_probabilities(self, columns: Columns, n: int) -> Floats:
        """Return the logarithms of the probabilities of all levels, of shape (n, levels)."""

    @final
    def draw(self, columns: Columns, n: int, rng: np.random.Generator) -> NDArray[Any]:
        cumulative = np.cumsum(np.exp(self.log_probabilities(columns, n)), axis=1)
        cumulative /= cumulative[:, -1:]
        drawn = (rng.random((n, 1)) >= cumulative[:, :-1]).sum(axis=1)
        codes: NDArray[Any] = drawn.astype(code_type(len(self.levels)))
        return codes

    @final
    def log_density(self, own: NDArray[Any], columns: Columns) -> Floats:
        logs = self.log_probabilities(columns, len(own))
        return logs[np.arange(len(own)), own.astype(np.intp)]


class NormalConditional(Conditional):
    """The distribution of a continuous node: normal, given its parents."""

    @abstractmethod
    def mean(self, columns: Columns, n: int) -> Floats:
        """Return the expected value of each row."""

    @abstractmethod
    def variance(self, columns: Columns, n: int) -> Floats:
        """Return the residual variance of each row."""

    @final
    def draw(self, columns: Columns, n: int, rng: np.random.Generator) -> Floats:
        spread = np.sqrt(self.variance(columns, n))
        drawn: Floats = self.mean(columns, n) + spread * rng.standard_normal(n)
        return drawn

    @final
    def log_density(self, own: NDArray[Any], columns: Columns) -> Floats:
        variance = self.variance(columns, len(own))
        if (variance == 0).any():
            raise DataError(
                "A node has variance zero for some values of its parents, so the network has no "
                "density and no log-likelihood. Fit it with a larger pseudo_count."
            )
        residual = own - self.mean(columns, len(own))
        logs: Floats = -0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
        return logs


@final
@dataclass(frozen=True, eq=False)
class ProbabilityTable(DiscreteConditional):
    """A discrete node with discrete parents.

    Attributes
    ----------
    levels
        The values of the node.
    given
        Names of its parents.
    probabilities
        One axis per parent, and a last one for the node, over which it sums to one.
    counts
        The number of rows in each cell; None if not known. A parent configuration with no rows
        has probabilities that come from the prior alone.
    """

    levels: tuple[Level, ...]
    given: tuple[str, ...]
    probabilities: Floats
    counts: Integers | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", check_levels("the node", self.levels))
        shape = self.probabilities.shape
        if len(shape) != len(self.given) + 1 or shape[-1] != len(self.levels):
            raise _misshapen("probabilities", shape, len(self.given), "the levels")
        check_probabilities("the node", self.probabilities)
        _check_counts(self.counts, shape)

    @property
    def parents(self) -> tuple[str, ...]:
        return self.given

    @property
    def parameters(self) -> int:
        size = self.probabilities.size
        return size - size // len(self.levels)

    def log_probabilities(self, columns: Columns, n: int) -> Floats:
        place = configuration(columns, self.given, self.probabilities.shape[:-1], n)
        with np.errstate(divide="ignore"):
            logs = np.log(self.probabilities.reshape(-1, len(self.levels)))
        rows: Floats = logs[place]
        return rows


@final
@dataclass(frozen=True, eq=False)
class ConditionalGaussian(NormalConditional):
    """A continuous node: one linear regression for each configuration of its discrete parents.

    Attributes
    ----------
    discrete, continuous
        Names of the parents of each kind.
    intercepts, variances
        One axis per discrete parent.
    coefficients
        One axis per discrete parent, and a last one for the continuous parents.
    counts
        The number of rows of each configuration; None if not known. A configuration with no rows
        has the slopes that are common to all configurations.
    covariances
        One axis per discrete parent, and two last ones: the covariance matrix of the sampling
        errors of the intercept and the coefficients, for noise of any variance. Zeros for a
        configuration with few rows; None if not known.
    """

    discrete: tuple[str, ...]
    continuous: tuple[str, ...]
    intercepts: Floats
    coefficients: Floats
    variances: Floats
    counts: Integers | None = None
    levels: tuple[Level, ...] = ()
    covariances: Floats | None = None

    def __post_init__(self) -> None:
        shape, size = self.intercepts.shape, 1 + len(self.continuous)
        if self.covariances is not None and self.covariances.shape != (*shape, size, size):
            raise _misshapen("covariances", self.covariances.shape, len(shape), "two matrices")
        slopes = (*shape, len(self.continuous))
        if len(shape) != len(self.discrete) or self.variances.shape != shape:
            raise _misshapen("intercepts and variances", shape, len(self.discrete))
        if self.coefficients.shape != slopes:
            raise _misshapen("coefficients", self.coefficients.shape, len(self.discrete), "slopes")
        _check_finite(self.intercepts, self.coefficients, self.variances)
        if (self.variances < 0).any():
            raise DataError("A variance is negative.")
        _check_counts(self.counts, shape)

    @property
    def parents(self) -> tuple[str, ...]:
        return self.discrete + self.continuous

    @property
    def parameters(self) -> int:
        return int(self.intercepts.size + self.coefficients.size + self.variances.size)

    def mean(self, columns: Columns, n: int) -> Floats:
        place = configuration(columns, self.discrete, self.intercepts.shape, n)
        total: Floats = self.intercepts.ravel()[place]
        slopes = self.coefficients.reshape(self.intercepts.size, len(self.continuous))
        for j, name in enumerate(self.continuous):
            total = total + slopes[place, j] * columns[name]
        return total

    def variance(self, columns: Columns, n: int) -> Floats:
        place = configuration(columns, self.discrete, self.intercepts.shape, n)
        variances: Floats = self.variances.ravel()[place]
        return variances


@final
@dataclass(frozen=True, eq=False)
class MultinomialLogit(DiscreteConditional):
    """A discrete node with continuous parents: a multinomial logistic regression.

    Attributes
    ----------
    levels
        The values of the node.
    discrete, continuous
        Names of the parents of each kind.
    intercepts
        Log-odds of each level against the first where all effects are zero, of shape (levels,).
    effects
        For each discrete parent, what is added for each of its levels, of shape (levels of the
        parent, levels).
    slopes
        Coefficients of the continuous parents, of shape (parents, levels).
    """

    levels: tuple[Level, ...]
    discrete: tuple[str, ...]
    continuous: tuple[str, ...]
    intercepts: Floats
    effects: tuple[Floats, ...]
    slopes: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", check_levels("the node", self.levels))
        size = len(self.levels)
        if self.intercepts.shape != (size,) or self.slopes.shape != (len(self.continuous), size):
            raise _misshapen("slopes", self.slopes.shape, len(self.continuous), "the levels")
        if len(self.effects) != len(self.discrete) or any(
            effect.ndim != 2 or effect.shape[1] != size for effect in self.effects
        ):
            raise SchemaError("Each discrete parent needs effects of shape (its levels, levels).")
        _check_finite(self.intercepts, self.slopes, *self.effects)

    @property
    def parents(self) -> tuple[str, ...]:
        return self.discrete + self.continuous

    @property
    def parameters(self) -> int:
        features = 1 + len(self.continuous) + sum(len(e) - 1 for e in self.effects)
        return features * (len(self.levels) - 1)

    def log_probabilities(self, columns: Columns, n: int) -> Floats:
        # Levels first: reductions over a short last axis take several times as long.
        logits = np.repeat(self.intercepts[:, None], n, axis=1)
        for name, effect in zip(self.discrete, self.effects, strict=True):
            logits += effect.T[:, columns[name].astype(np.intp)]
        for j, name in enumerate(self.continuous):
            logits += np.outer(self.slopes[j], columns[name])
        logits -= logits.max(axis=0)
        logits -= np.log(np.exp(logits).sum(axis=0))
        logs: Floats = np.ascontiguousarray(logits.T)
        return logs


@final
@dataclass(frozen=True, eq=False)
class Hurdle(Conditional):
    """A continuous node that often has exactly one value, such as zero, and varies otherwise.

    Its density is the probability of that value there, and a density of numbers elsewhere: sums of
    its logarithm are comparable between networks only if they have the same nodes of this kind.

    Attributes
    ----------
    at
        The value.
    elsewhere
        Whether the node has another value: a distribution with the levels False and True. Its
        parents are those of the node.
    rest
        The distribution of the other values, given some of these parents.
    side
        What `rest` describes: 0 for the values as they are; 1 or -1 for the logarithm of their
        distance from `at`, of values that are all above or all below it.
    """

    at: float
    elsewhere: DiscreteConditional
    rest: NormalConditional
    side: int = 0
    levels: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        if self.elsewhere.levels != (False, True):
            raise SchemaError(
                f"The levels of elsewhere are {self.elsewhere.levels!r}, and not False and True."
            )
        others = set(self.rest.parents) - set(self.elsewhere.parents)
        if others:
            raise SchemaError(f"`rest` has the parents {sorted(others)}, which `elsewhere` lacks.")
        if self.side not in (-1, 0, 1):
            raise SchemaError(f"side is {self.side!r}; it must be -1, 0 or 1.")
        _check_finite(np.array(self.at))

    @property
    def parents(self) -> tuple[str, ...]:
        return self.elsewhere.parents

    @property
    def parameters(self) -> int:
        return 1 + self.elsewhere.parameters + self.rest.parameters

    def values(self, inner: Floats) -> Floats:
        """Return the values that `rest` describes by these numbers."""
        return inner if not self.side else self.at + self.side * np.exp(inner)

    def draw(self, columns: Columns, n: int, rng: np.random.Generator) -> Floats:
        away = self.elsewhere.draw(columns, n, rng) == 1
        drawn: Floats = np.where(away, self.values(self.rest.draw(columns, n, rng)), self.at)
        return drawn

    def log_density(self, own: NDArray[Any], columns: Columns) -> Floats:
        away = np.asarray(own != self.at)
        logs = self.elsewhere.log_density(away, columns)
        some = np.flatnonzero(away)
        given = {v: columns[v][some] for v in self.rest.parents}
        inner, stretch = np.asarray(own, np.float64)[some], np.zeros(len(some))
        if self.side:
            distance = self.side * (inner - self.at)
            with np.errstate(divide="ignore", invalid="ignore"):
                inner = np.log(np.maximum(distance, 0.0))
            stretch = inner
        possible = np.isfinite(inner)
        if not possible.all():  # on the other side of `at`
            logs[some[~possible]] = -np.inf
            some, stretch = some[possible], stretch[possible]
            given = {v: column[possible] for v, column in given.items()}
            inner = inner[possible]
        logs[some] += self.rest.log_density(inner, given) - stretch
        return logs


def _misshapen(what: str, shape: tuple[int, ...], parents: int, last: str = "") -> SchemaError:
    axes = f"one axis for each of {parents} parents" + (
        f", and a last one for {last}" if last else ""
    )
    return SchemaError(f"The shape of {what} is {shape}; {axes} is needed.")


def _check_finite(*arrays: Floats) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise DataError("The parameters of a node must be finite numbers.")


def _check_counts(counts: Integers | None, shape: tuple[int, ...]) -> None:
    if counts is None:
        return
    if counts.shape != shape or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise DataError(f"Counts must be whole numbers in the shape {shape}.")


def configuration(
    columns: Columns, names: tuple[str, ...], sizes: tuple[int, ...], n: int
) -> NDArray[np.intp]:
    """Return for each row the position of its configuration in a flattened table."""
    place = np.zeros(n, dtype=np.intp)
    for name, size in zip(names, sizes, strict=True):
        place *= size
        place += columns[name].astype(np.intp)
    assert not n or int(place.max()) < max(prod(sizes), 1)
    return place


# --- Distributions of nodes whose parents have curved or interacting effects --------------------
#
# A curved distribution is a regression on terms: functions of the parents, which take the place
# of its columns. Everything that is known of regressions holds for it given these columns.


@final
@dataclass(frozen=True)
class Factor:
    """A function of one parent: a Chebyshev polynomial, or the indicator of a level.

    Attributes
    ----------
    parent
        Name of the parent.
    degree
        Degree of the polynomial; of a discrete parent, the code of the level.
    window
        The values of the parent that correspond to -1 and 1. Beyond them, polynomials of degree 2
        and more are constant. None for a discrete parent.
    """

    parent: str
    degree: int
    window: tuple[float, float] | None

    def at(self, columns: Columns) -> Floats:
        """Evaluate the function in each row."""
        return next(_evaluated((self,), columns))[1]


Term = tuple[Factor, ...]
"""A product of functions of parents, each of another parent."""


def described_term(term: Term, levels: Mapping[str, Sequence[Level]]) -> str:
    """Return the text of a term, for a table of coefficients."""
    parts = []
    for own in term:
        if own.window is None:
            known = levels.get(own.parent)
            parts.append(f"[{own.parent} = {known[own.degree] if known else own.degree}]")
        else:
            parts.append(own.parent if own.degree == 1 else f"T{own.degree}({own.parent})")
    return " · ".join(parts)


def _evaluated(factors: Iterable[Factor], columns: Columns) -> Iterator[tuple[Factor, Floats]]:
    """Evaluate functions in each row. The angles of a parent serve for all of its polynomials."""
    angles: dict[Factor, Floats] = {}
    for own in factors:
        values = np.asarray(columns[own.parent])
        if own.window is None:
            yield own, (values == own.degree).astype(np.float64)
            continue
        low, high = own.window
        if own.degree == 1:
            yield own, (2.0 * values - low - high) / (high - low)
            continue
        line = replace(own, degree=1)
        if line not in angles:
            u = (2.0 * values - low - high) / (high - low)
            angles[line] = np.arccos(np.clip(u, -1.0, 1.0))
        yield own, np.cos(own.degree * angles[line])


def term_columns(terms: tuple[Term, ...], columns: Columns) -> dict[str, Floats]:
    """Evaluate terms in each row; their names are their numbers."""
    known = dict(_evaluated({factor for term in terms for factor in term}, columns))
    values = {}
    for i, (first, *others) in enumerate(terms):
        product = known[first]
        for own in others:
            product = product * known[own]
        values[str(i)] = product
    return values


@dataclass(frozen=True, eq=False)
class _OnTerms(Conditional):
    """A distribution that is a regression on functions of the parents."""

    discrete: tuple[str, ...]
    continuous: tuple[str, ...]
    terms: tuple[Term, ...]
    regression: ConditionalGaussian | MultinomialLogit

    def __post_init__(self) -> None:
        names = tuple(map(str, range(len(self.terms))))
        own = self.regression
        if own.continuous != names or not set(own.discrete) <= set(self.discrete):
            raise SchemaError(
                f"The regression on {len(names)} terms has the parents {listed(own.parents)}."
            )
        used = {each.parent: each.window is None for term in self.terms for each in term}
        allowed = {True: self.discrete, False: self.continuous}
        wrong = [v for v, level in used.items() if v not in allowed[level]]
        if wrong or not all(self.terms):
            raise SchemaError(
                f"Terms are of {listed(wrong)}, which are not such parents of the node."
            )

    @property
    def parents(self) -> tuple[str, ...]:
        return self.discrete + self.continuous

    @property
    def parameters(self) -> int:
        return self.regression.parameters

    def with_regression(self, regression: Conditional) -> Self:
        """Return the same distribution with other parameters."""
        assert isinstance(regression, type(self.regression))
        return replace(self, regression=regression)

    def columns(self, columns: Columns) -> dict[str, NDArray[Any]]:
        """Return the columns of the regression."""
        return {v: columns[v] for v in self.discrete} | term_columns(self.terms, columns)


@final
@dataclass(frozen=True, eq=False)
class CurvedGaussian(_OnTerms, NormalConditional):
    """A continuous node with curved or interacting effects of its parents.

    Attributes
    ----------
    discrete, continuous
        Names of the parents of each kind.
    terms
        Functions of the parents.
    regression
        The regression on the terms, whose continuous parents are their numbers: ``"0"``, ``"1"``
        and so on. Its discrete parents are none or all of those of the node.
    """

    regression: ConditionalGaussian
    levels: tuple[Level, ...] = ()

    def mean(self, columns: Columns, n: int) -> Floats:
        return self.regression.mean(self.columns(columns), n)

    def variance(self, columns: Columns, n: int) -> Floats:
        return self.regression.variance({v: columns[v] for v in self.discrete}, n)


@final
@dataclass(frozen=True, eq=False)
class CurvedLogit(_OnTerms, DiscreteConditional):
    """A discrete node with curved or interacting effects of its parents on the log-odds.

    Attributes
    ----------
    discrete, continuous, terms
        As for `CurvedGaussian`.
    regression
        The multinomial logistic regression on the discrete parents and the terms.
    """

    regression: MultinomialLogit

    @property
    def levels(self) -> tuple[Level, ...]:  # type: ignore[override]
        return self.regression.levels

    def log_probabilities(self, columns: Columns, n: int) -> Floats:
        return self.regression.log_probabilities(self.columns(columns), n)


# --- Least squares of correlation matrices, by their eigenvalues ---------------------------------
#
# Linear least squares from covariance matrices; every regression of the library is solved here.
#
# Covariances are first divided by the standard deviations, so that units of measurement change
# coefficients by their ratio and nothing else. Whether regressors are collinear is decided by the
# eigenvalues of their correlation matrix, in one place.

RANK = 1e-12
"""Share of the largest eigenvalue of a correlation matrix below which one counts as zero.

Rounding leaves about 1e-15 (`tests/networks/test_least_squares.py`); eigenvalues above the limit
give coefficients with at least three correct digits.
"""
DETERMINED = 1e-14
"""Share of its variance below which a variable counts as determined by its regressors.

Sums of squares of a million rows are off by up to 1e-15 of themselves (same test).
"""


class Spectrum(NamedTuple):
    """Eigenvalues and eigenvectors of correlation matrices; leading axes are a batch.

    Attributes
    ----------
    spread
        Standard deviations, of shape (..., k); one where it is zero.
    values
        Eigenvalues in ascending order; one where they count as zero.
    vectors
        Eigenvectors, as columns.
    free
        Whether an eigenvalue counts as positive.
    """

    spread: Floats
    values: Floats
    vectors: Floats
    free: Bools

    def solve(self, right: Floats) -> Floats:
        """Return the solution of minimum norm for the correlation matrix; shape (..., k, m)."""
        turned = np.swapaxes(self.vectors, -1, -2) @ right
        turned *= (self.free / self.values)[..., None]
        solution: Floats = self.vectors @ turned
        return solution


class Regression(NamedTuple):
    """Linear regressions; leading axes are a batch.

    Attributes
    ----------
    coefficients
        Of shape (..., regressors).
    variance
        Variance of the residuals; zero if the regressors determine the target.
    rank
        Number of linearly independent regressors.
    """

    coefficients: Floats
    variance: Floats
    rank: Integers


def spectrum(covariance: Floats) -> Spectrum:
    """Decompose the correlations of covariance matrices of shape (..., k, k)."""
    spread, correlation = standardise(covariance)
    values, vectors = np.linalg.eigh(correlation)
    free = values > RANK * np.maximum(values.max(axis=-1, initial=0.0, keepdims=True), 1.0)
    return Spectrum(spread, np.where(free, values, 1.0), vectors, free)


def standardise(covariance: Floats) -> tuple[Floats, Floats]:
    """Return standard deviations and correlations; a constant has one and zeros."""
    variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    moves = variance > 0.0
    spread = np.sqrt(np.where(moves, variance, 1.0))
    correlation = covariance / spread[..., :, None] / spread[..., None, :]
    correlation = np.where(moves[..., :, None] & moves[..., None, :], correlation, 0.0)
    diagonal = np.arange(covariance.shape[-1])
    correlation[..., diagonal, diagonal] = moves
    return spread, correlation


def regress(covariance: Floats, otherwise: Floats | None = None) -> Regression:
    """Regress the last variable on all others, given their covariance matrix.

    Parameters
    ----------
    covariance
        Covariance matrices, of shape (..., k + 1, k + 1), in any units.
    otherwise
        Coefficients, of shape (k,), for what collinear or constant regressors leave open; zero by
        default. Among the solutions of least squares, the one is returned that is closest to them
        in units of the standard deviations.
    """
    k = covariance.shape[-1] - 1
    spread, correlation = standardise(covariance)
    within, cross = correlation[..., :k, :k], correlation[..., :k, k:]
    parts = spectrum(within)
    unit = spread[..., k:] / spread[..., :k]
    start = np.zeros_like(cross)
    if otherwise is not None:
        # A constant has no unit of its own, and is not part of the equations.
        moves = correlation[..., np.arange(k), np.arange(k)] > 0.0
        start = np.where(moves, otherwise / unit, 0.0)[..., None]
    weights = start + parts.solve(cross - within @ start)
    fitted = within @ weights
    explained = (weights * (2.0 * cross - fitted)).sum(axis=(-2, -1))
    share = np.clip(correlation[..., k, k] - explained, 0.0, 1.0)
    share = np.where(share <= DETERMINED, 0.0, share)
    coefficients = weights[..., 0] * unit
    if otherwise is not None:
        coefficients = np.where(moves, coefficients, otherwise)
    return Regression(coefficients, share * spread[..., k] ** 2, parts.free.sum(axis=-1))
