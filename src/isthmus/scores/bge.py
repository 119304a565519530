"""Bayesian Gaussian equivalent (BGe) score."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.objectives import LocalScore
from isthmus.options import require_choice, require_number
from isthmus.scores.base import Score
from isthmus.scores.family_rows import at_own_rows
from isthmus.scores.gaussian import bind_matrix, bind_shifted
from isthmus.statistics import Kind, Moments
from isthmus.types import Floats

_FAR = 1e3
"""Squared distance of the means, in units of the scatter, from which the two are kept apart.

Their sum then loses three digits more than the scatter has (`tests/repro/test_w22_bge_offset.py`).
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
