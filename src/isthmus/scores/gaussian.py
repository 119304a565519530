"""Compiled scores of linear Gaussian networks, shared by all Gaussian scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import ClassVar, final

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import MismatchError
from isthmus.kernels.scoring import LocalScore as LocalScoreKernel
from isthmus.kernels.scoring import (
    gaussian_block_score,
    gaussian_score,
    gaussian_score_of_part,
    python_score,
)
from isthmus.networks.conditionals import spectrum
from isthmus.objectives import LOCAL_SCORES, Capabilities, LocalScore, PythonLocalScore
from isthmus.objectives.correlations import (
    CORRELATIONS,
    ColumnCorrelations,
    Correlations,
    CorrelationScore,
    MatrixCorrelations,
)
from isthmus.objectives.local import BoundWork
from isthmus.options import require_boolean, require_choice, require_number
from isthmus.scores.base import Score, extended, size_penalties, small_sample_prices
from isthmus.scores.criterion import at_own_rows, block_cost, gaussian_cost
from isthmus.scores.score_bounds import block_bound, gaussian_bound
from isthmus.statistics import Kind, Moments
from isthmus.statistics.moments import correlate
from isthmus.statistics.regimes import Remainder
from isthmus.statistics.relations import covariance_without_rare
from isthmus.statistics.within import StandardisedColumns

TOLERANCE = 1e-12
"""Fraction of a column's variance below which it counts as determined by other columns.

Rounding leaves about 1e-14 of a column that others determine. In dense graphs 1e-11 can be left of
one that they do not determine."""


def bind_likelihood(
    statistics: Moments | StandardisedColumns | Remainder, prices: Callable[[int], Floats]
) -> LocalScore:
    """Bind the maximised Gaussian log-likelihood minus a penalty.

    Parameters
    ----------
    statistics
        The statistics.
    prices
        Returns the penalties of 0, 1, … d parents for a number of rows.
    """
    n, d = statistics.n, len(statistics.schema)
    penalties = prices(n)
    constant = np.full(d + 1, -0.5 * n * (np.log(2.0 * np.pi) + 1.0)) - penalties
    if isinstance(statistics, Remainder):
        kernel = gaussian_score_of_part(
            statistics.whole.correlation,
            statistics.removed,
            np.sqrt(1.0 - statistics.squares),
            np.log(statistics.variance),
            constant=constant,
            log_variance=np.full(d + 1, 0.5 * n),
            log_determinant=np.zeros(d + 1),
            tolerance=TOLERANCE,
        )
        return LocalScore(statistics.schema.names, kernel, equivalent=True, cost=gaussian_cost)
    bound: Callable[[], BoundWork] | None = None
    correlations: Correlations
    if isinstance(statistics, StandardisedColumns):
        scale = np.where(statistics.deviation > 0.0, statistics.deviation, 1.0) ** 2
        correlations = ColumnCorrelations(statistics.values)
        kernel = _on_demand(correlations, np.log(scale), constant, 0.5 * n)
    else:
        correlation, scale = correlate(statistics.covariance())
        correlations = MatrixCorrelations(correlation)
        tables = (constant, np.full(d + 1, 0.5 * n), np.zeros(d + 1))
        kernel = _kernel(correlation, np.log(scale), tables)
        bound = partial(gaussian_bound, correlation, np.log(scale), tables, TOLERANCE)
    score = CorrelationScore(
        statistics.schema.names,
        kernel,
        correlations,
        constant=constant,
        factor=0.5 * n,
        log_variances=np.log(scale),
        tolerance=TOLERANCE,
        score_bound=bound,
        cost=gaussian_cost,
    )
    if isinstance(statistics, StandardisedColumns):
        return score
    return at_own_rows(score, statistics, prices)


def _kernel(
    correlation: Floats, log_scale: Floats, tables: tuple[Floats, Floats, Floats]
) -> LocalScoreKernel:
    constant, log_variance, log_determinant = tables
    return gaussian_score(
        correlation,
        log_scale,
        constant=constant,
        log_variance=log_variance,
        log_determinant=log_determinant,
        tolerance=TOLERANCE,
    )


def _on_demand(
    correlations: Correlations, log_scale: Floats, constant: Floats, factor: float
) -> LocalScoreKernel:
    """Score each family by the correlations of its own columns."""

    def local(child: int, parents: tuple[int, ...]) -> float:
        family, k = np.array([*parents, child], dtype=np.int64), len(parents)
        tables = (constant[: k + 2], np.full(k + 2, factor), np.zeros(k + 2))
        kernel = _kernel(correlations.among(family), log_scale[family], tables)
        own = np.arange(k, dtype=np.int64)
        return float(kernel.extensions(k, own, np.empty(0, np.int64))[0])

    return python_score(len(correlations), local)


def bind_matrix(
    names: Sequence[str], matrix: Floats, tables: tuple[Floats, Floats, Floats]
) -> LocalScore:
    """Bind ``a[k] - b[k] log v(child | parents) - c[k] log det R[parents]`` for ``R = matrix``."""
    correlation, scale = correlate(matrix)
    return LocalScore(
        names,
        _kernel(correlation, np.log(scale), tables),
        equivalent=True,
        score_bound=lambda: gaussian_bound(correlation, np.log(scale), tables, TOLERANCE),
        cost=gaussian_cost,
    )


def bind_shifted(
    names: Sequence[str], matrix: Floats, shift: Floats, tables: tuple[Floats, Floats, Floats]
) -> LocalScore:
    """Bind the same score for ``R = matrix + outer(shift, shift)``, however long the shift is.

    The determinant of each block is ``det(matrix) (1 + shift' matrix^-1 shift)``. The first factor
    is that of `bind_matrix`. The matrix is never added up, so it is not lost next to the shift.
    """
    centred = bind_matrix(names, matrix, tables)
    _, log_variance, log_determinant = tables

    def log_factor(within: list[int]) -> float:
        parts = spectrum(matrix[np.ix_(within, within)])
        scaled = (shift[within] / parts.spread)[:, None]
        return float(np.log1p((scaled * parts.solve(scaled)).sum()))

    def local(child: int, parents: tuple[int, ...]) -> float:
        k, own = len(parents), list(parents)
        before, after = log_factor(own), log_factor([*own, child])
        value = centred.local(child, own) - float(log_variance[k]) * (after - before)
        return value - float(log_determinant[k]) * before

    return PythonLocalScore(names, local, equivalent=True)


# --- Information criteria for continuous variables: GaussianBIC and GaussianEBIC ----------------


@final
@dataclass(frozen=True)
class GaussianBIC(Score[Moments | StandardisedColumns | Remainder, LocalScore]):
    """BIC of linear Gaussian networks: log-likelihood minus a penalty per parameter.

    For continuous variables; higher is better. The penalty is ``penalty_discount * log(n) / 2`` per
    parameter. A node with k parents has k + 2 parameters: coefficients, intercept and variance.

    Parameters
    ----------
    penalty_discount
        Factor of the penalty. 1 is the standard criterion; larger values give sparser graphs. Other
        implementations of order search use 2 by default.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> round(ist.score(numbers, dag, ist.GaussianBIC()), 1)
    -2177.2
    """

    penalty_discount: float = 1.0
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({LOCAL_SCORES, CORRELATIONS})
    of_columns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_number(self, "penalty_discount", least=0)

    def bind(self, statistics: Moments | StandardisedColumns | Remainder) -> LocalScore:
        parameters = np.arange(len(statistics.schema) + 1) + 2

        def prices(n: int) -> Floats:
            penalties: Floats = self.penalty_discount * 0.5 * np.log(n) * parameters
            return penalties

        return bind_likelihood(statistics.numeric(self), prices)


@final
@dataclass(frozen=True)
class GaussianEBIC(Score[Moments | StandardisedColumns | Remainder, LocalScore]):
    """Extended BIC of linear Gaussian networks, which accounts for the number of possible edges.

    For continuous variables; higher is better. It is ``GaussianBIC`` minus ``2 * gamma * log(d)``
    per edge among d variables (Foygel and Drton, NeurIPS 2010, for graphical models), which limits
    the number of false edges among many variables. All edges have the same extra penalty, so the
    score stays score-equivalent.

    Parameters
    ----------
    gamma
        Weight of the extra penalty. 0 is BIC; 0.5 and 1 are common values.
    small_sample
        Whether the penalty is corrected for few rows: each edge must pass a t-test of the same
        level, which is stricter if there are few rows. False is the criterion as published; for
        many rows both agree.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> solution = ist.learn(numbers, score=ist.GaussianEBIC(gamma=1.0))
    >>> ist.shd(solution.cpdag, dag.cpdag())
    0
    """

    gamma: float = 0.5
    small_sample: bool = True
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS
    gives: ClassVar[Capabilities] = frozenset({LOCAL_SCORES, CORRELATIONS})
    of_columns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_number(self, "gamma", least=0)
        require_boolean(self, "small_sample")

    def bind(self, statistics: Moments | StandardisedColumns | Remainder) -> LocalScore:
        d = len(statistics.schema)

        def prices(n: int) -> Floats:
            if self.small_sample:
                edges = small_sample_prices(n, d, self.gamma)
            else:
                edges = 0.5 * np.log(n) * np.arange(d + 1) + size_penalties(d, self.gamma)
            penalties: Floats = np.log(n) + edges
            return penalties

        return bind_likelihood(statistics.numeric(self), prices)


# --- Bayesian Gaussian equivalent (BGe) score ---------------------------------------------------

_FAR = 1e3
"""Squared distance of the means, in units of the scatter, from which the two are kept apart.

Their sum then loses three digits more than the scatter has (see `test_bge_far_from_zero.py`).
Scores are then computed in Python, which takes longer.
"""


class PriorMean(StrEnum):
    """Mean of the prior distribution of the mean."""

    ZERO = "zero"
    SAMPLE = "sample"


class PriorScale(StrEnum):
    """Unit of the prior distribution of the variances."""

    UNIT = "unit"
    SAMPLE = "sample"


@final
@dataclass(frozen=True)
class BGe(Score[Moments, LocalScore]):
    """Bayesian Gaussian equivalent score: a log marginal likelihood under a normal-Wishart prior.

    For continuous variables; higher is better. Geiger and Heckerman 1994, with the corrections of
    Kuipers, Moffa and Heckerman (Annals of Statistics 2014). The scale matrix of the prior is
    ``t I`` with ``t = alpha_mu (alpha_w - d - 1) / (alpha_mu + 1)``, for columns in units of their
    standard deviations.

    Parameters
    ----------
    alpha_mu
        Prior sample size for the mean.
    alpha_w
        Degrees of freedom of the Wishart prior, above d + 1; by default d + 2.
    prior_mean
        Prior mean: zero or the sample mean. With zero the score depends on the location of the
        data; centre them first, or use the sample mean. Scores of columns whose mean is many
        standard deviations from zero take longer.
    prior_scale
        Units in which the prior is stated, and of which the score is the density: those of the
        columns, as published, or the standard deviation of each column. With the former, a change
        of a column's unit changes the result; do this only if the columns have comparable scales.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> posterior = ist.sample(numbers, score=ist.BGe(alpha_mu=0.1), draws=100)
    >>> posterior.median_graph() == posterior.most_probable()
    True
    """

    alpha_mu: float = 1.0
    alpha_w: float | None = None
    prior_mean: PriorMean = PriorMean.SAMPLE
    prior_scale: PriorScale = PriorScale.SAMPLE
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[Kind] = Kind.CONTINUOUS

    def __post_init__(self) -> None:
        require_number(self, "alpha_mu", above=0)
        require_number(self, "alpha_w", above=0, optional=True)
        require_choice(self, "prior_mean", PriorMean)
        require_choice(self, "prior_scale", PriorScale)

    def bind(self, statistics: Moments) -> LocalScore:
        from scipy.special import gammaln

        statistics = statistics.numeric(self)
        n, d = statistics.n, len(statistics.schema)
        units = self._units(statistics)
        scatter, _, shift = self.posterior(statistics)
        scatter = scatter / np.outer(units, units)
        alpha_w, t = self._prior_degrees(d), self._prior_scale(d)
        # Without this correction the score of a constant column would depend on its unit, and edges
        # would be added. With a large variance, a constant column gets no edges.
        constants = list(statistics.schema.indices(statistics.constants()))
        if len(constants) < d:
            scatter[constants, :] = scatter[:, constants] = 0.0
            scatter[constants, constants] = t * (1.0 + n) ** 4
        k = np.arange(d + 1, dtype=np.float64)
        free = alpha_w - d + k + 1.0
        constant = (
            0.5 * np.log(self.alpha_mu / (n + self.alpha_mu))
            - 0.5 * n * np.log(np.pi)
            + gammaln(0.5 * (n + free))
            - gammaln(0.5 * free)
            + 0.5 * (free + k) * np.log(t)
        )
        tables = (constant, 0.5 * (n + free), np.full(d + 1, 0.5))
        names = statistics.schema.names
        if shift is None:
            score = bind_matrix(names, scatter, tables)
        else:
            shift = shift / units
            if len(constants) < d:
                shift[constants] = 0.0
            if (shift**2 <= _FAR * np.diagonal(scatter)).all():
                score = bind_matrix(names, scatter + np.outer(shift, shift), tables)
            else:
                score = bind_shifted(names, scatter, shift, tables)
        # For many rows the marginal likelihood charges each edge half the logarithm of the rows.
        return at_own_rows(score, statistics, lambda n: 0.5 * np.log(n) * np.arange(d + 1))

    def posterior(self, moments: Moments) -> tuple[Floats, float, Floats | None]:
        """Return scatter matrix, degrees of freedom and shift of the posterior distribution.

        The precision matrix of the variables follows a Wishart distribution with the inverse of
        ``scatter + outer(shift, shift)`` as its scale. The shift is None if the mean of the prior
        is that of the sample.
        """
        n, d = moments.n, len(moments.schema)
        units = self._units(moments)
        matrix = moments.scatter() + self._prior_scale(d) * np.diag(units * units)
        shift = None
        if self.prior_mean is PriorMean.ZERO:
            shift = np.sqrt(n * self.alpha_mu / (n + self.alpha_mu)) * moments.mean()
        return matrix, self._prior_degrees(d) + n, shift

    def _units(self, moments: Moments) -> Floats:
        units = np.ones(len(moments.schema))
        if self.prior_scale is PriorScale.SAMPLE:
            deviations = np.sqrt(np.diagonal(moments.covariance()))
            constants = list(moments.schema.indices(moments.constants()))
            units = np.where(deviations > 0.0, deviations, 1.0)
            units[constants] = 1.0
        return units

    def _prior_degrees(self, d: int) -> float:
        alpha_w = d + 2.0 if self.alpha_w is None else self.alpha_w
        if alpha_w <= d + 1 or self.alpha_mu <= 0:
            raise MismatchError(
                f"BGe was given alpha_w={alpha_w} and alpha_mu={self.alpha_mu} for {d} variables. "
                f"It needs alpha_w > {d + 1} and alpha_mu > 0; leave alpha_w out for {d + 2}."
            )
        return alpha_w

    def _prior_scale(self, d: int) -> float:
        return self.alpha_mu * (self._prior_degrees(d) - d - 1.0) / (self.alpha_mu + 1.0)


# --- Degenerate Gaussian score for tables with continuous and discrete columns ------------------


@final
@dataclass(frozen=True)
class DegenerateGaussian(Score[Moments, LocalScore]):
    """Degenerate Gaussian score for continuous and discrete variables; higher is better.

    A discrete variable with r levels is represented by r - 1 indicator columns, and BIC is computed
    as if all columns were jointly Gaussian (Andrews, Ramsey and Cooper 2019). The score is fast,
    needs only moments, is score-equivalent, and equals ``GaussianBIC`` on continuous tables.

    A Gaussian likelihood overrates coincidences of rare levels: two levels that occur once, in the
    same row, look like an exact linear relation. Therefore a level with fewer than ``sqrt(n)`` of n
    rows gets additional independent noise, as if it had that many.

    Parameters
    ----------
    penalty_discount
        Factor of the penalty ``log(n) / 2`` per parameter.
    gamma
        Weight of the extended penalty ``2 * gamma * log(d)`` per edge among d variables, which
        accounts for the number of possible edges. 0 is BIC; `learn` uses 0.5.

    Examples
    --------
    >>> import isthmus as ist
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 300)
    >>> table = {"sex": sex, "height": 165 + 12 * (sex == "m") + 6 * rng.normal(size=300)}
    >>> ist.learn(table, score=ist.DegenerateGaussian()).dag.skeleton().edges
    (('sex', 'height'),)
    """

    penalty_discount: float = 1.0
    gamma: float = 0.0
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[None] = None

    def __post_init__(self) -> None:
        require_number(self, "penalty_discount", least=0)
        require_number(self, "gamma", least=0)

    def bind(self, statistics: Moments) -> LocalScore:
        statistics = statistics.without_features()
        n = statistics.n
        starts = np.array([start for start, _ in statistics.blocks] + [statistics.schema.width])
        sizes = np.diff(starts)
        correlation, scale = correlate(covariance_without_rare(statistics))
        each = self.penalty_discount * 0.5 * np.log(n)
        log_scale = np.concatenate([[0.0], np.cumsum(np.log(scale))])
        base = (
            -0.5 * n * (np.log(2.0 * np.pi) + 1.0) * sizes
            - 0.5 * n * (log_scale[starts[1:]] - log_scale[starts[:-1]])
            - each * (sizes + sizes * (sizes + 1) / 2.0)
        )
        kernel = gaussian_block_score(
            correlation, starts, base, half_n=0.5 * n, penalty=each, tolerance=TOLERANCE
        )
        score = LocalScore(
            statistics.schema.names,
            kernel,
            equivalent=True,
            score_bound=lambda: block_bound(correlation, starts, base, 0.5 * n, each, TOLERANCE),
            cost=block_cost(sizes),
        )
        d = len(statistics.schema)

        def prices(n: int) -> Floats:
            if self.gamma == 0.0:
                return np.zeros(d + 1)
            # The penalty of the parameters is already included, so only the rest is added.
            rest: Floats = small_sample_prices(n, d, self.gamma) - 0.5 * np.log(n) * np.arange(
                d + 1
            )
            return rest

        def coefficient(n: int) -> float:
            return self.penalty_discount * 0.5 * float(np.log(n))

        return at_own_rows(extended(score, prices(n)), statistics, prices, coefficient)
