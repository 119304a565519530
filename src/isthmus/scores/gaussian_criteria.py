"""Information criteria for continuous variables: GaussianBIC and GaussianEBIC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.objectives import CORRELATIONS, LOCAL_SCORES, Capabilities, LocalScore
from isthmus.options import require_boolean, require_number
from isthmus.scores.base import Score
from isthmus.scores.extended import size_penalties, small_sample_prices
from isthmus.scores.gaussian import bind_likelihood
from isthmus.statistics import Kind, Moments, StandardisedColumns
from isthmus.types import Floats


@final
@dataclass(frozen=True)
class GaussianBIC(Score[Moments | StandardisedColumns, LocalScore]):
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

    def bind(self, statistics: Moments | StandardisedColumns) -> LocalScore:
        parameters = np.arange(len(statistics.schema) + 1) + 2

        def prices(n: int) -> Floats:
            penalties: Floats = self.penalty_discount * 0.5 * np.log(n) * parameters
            return penalties

        return bind_likelihood(statistics.numeric(self), prices)


@final
@dataclass(frozen=True)
class GaussianEBIC(Score[Moments | StandardisedColumns, LocalScore]):
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

    def bind(self, statistics: Moments | StandardisedColumns) -> LocalScore:
        d = len(statistics.schema)

        def prices(n: int) -> Floats:
            if self.small_sample:
                edges = small_sample_prices(n, d, self.gamma)
            else:
                edges = 0.5 * np.log(n) * np.arange(d + 1) + size_penalties(d, self.gamma)
            penalties: Floats = np.log(n) + edges
            return penalties

        return bind_likelihood(statistics.numeric(self), prices)
