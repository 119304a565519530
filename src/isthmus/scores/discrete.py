"""Marginal likelihoods of discrete variables under Dirichlet priors: BDeu and K2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.kernels.scoring import DiscreteForm
from isthmus.objectives import LocalScore
from isthmus.options import require_number
from isthmus.scores.base import Score, extended, size_penalties
from isthmus.scores.criterion import Criterion, bind_counts, log_dirichlet
from isthmus.scores.score_bounds import dirichlet_bound
from isthmus.statistics import Counts, Kind


@final
@dataclass(frozen=True)
class BDeu(Score[Counts, LocalScore]):
    """Bayesian Dirichlet equivalent uniform score: a log marginal likelihood.

    For discrete variables; higher is better. The equivalent sample size of the prior is divided
    equally among the cells of each table.

    Parameters
    ----------
    ess
        Equivalent sample size of the prior, above 0. Larger values give denser graphs. The result
        can strongly depend on it, so compare several values.
    gamma
        Weight of an additional penalty ``2 * gamma * log(d)`` per edge among d variables, which
        accounts for the number of possible edges as in `EBIC`. It is a prior that favours sparse
        graphs. 0 is the marginal likelihood; `learn` uses 0.75.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> solution = ist.learn(data, score=ist.BDeu(ess=10))
    >>> solution.dag.markov_blanket("either")
    ('asia', 'tub', 'lung', 'xray')
    """

    ess: float = 1.0
    gamma: float = 0.0
    needs: ClassVar[type[Counts]] = Counts
    kind: ClassVar[Kind] = Kind.DISCRETE

    def __post_init__(self) -> None:
        require_number(self, "ess", above=0)
        require_number(self, "gamma", least=0)

    def bind(self, statistics: Counts) -> LocalScore:
        def table_score(table: Integers | Floats) -> Floats:
            return log_dirichlet(table, self.ess / math.prod(table.shape[-2:]))

        score = bind_counts(
            statistics,
            DiscreteForm.BDEU,
            self.ess,
            table_score,
            equivalent=True,
            score_bound=lambda: dirichlet_bound(statistics),
        )
        return extended(score, size_penalties(len(statistics.schema), self.gamma))


@final
@dataclass(frozen=True)
class K2(Score[Counts, LocalScore]):
    """K2 score: a log marginal likelihood with the same pseudo-count in every cell.

    For discrete variables; higher is better (Cooper and Herskovits 1992). It is not
    score-equivalent: it can prefer one direction of an edge without evidence. Configurations of the
    parents that do not occur contribute exactly 0.

    Parameters
    ----------
    pseudo_count
        Parameter of the Dirichlet prior of each row of a table, above 0. 1 is the published score,
        and 0.5 is Jeffreys' prior, the default of `sample`: its probabilities of edges are the best
        calibrated, and a smaller count prefers directions less.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> order = ist.KnownOrder(data.dag.nodes, max_parents=2)
    >>> ist.learn(data, score=ist.K2(), search=order).dag.parents("lung")
    ('smoke',)
    """

    pseudo_count: float = 1.0
    needs: ClassVar[type[Counts]] = Counts
    kind: ClassVar[Kind] = Kind.DISCRETE

    def __post_init__(self) -> None:
        require_number(self, "pseudo_count", above=0)

    def bind(self, statistics: Counts) -> LocalScore:
        def table_score(table: Integers | Floats) -> Floats:
            return log_dirichlet(table, self.pseudo_count)

        return bind_counts(
            statistics,
            DiscreteForm.K2,
            self.pseudo_count,
            table_score,
            equivalent=False,
            score_bound=lambda: dirichlet_bound(statistics),
        )


# --- Information criteria for discrete variables: AIC, BIC and EBIC -----------------------------


@final
@dataclass(frozen=True)
class AIC(Criterion):
    """Akaike information criterion: log-likelihood minus the number of free parameters.

    For discrete variables; higher is better.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> ist.learn(data, score=ist.AIC()).dag.parents("either")
    ('tub', 'lung')
    """

    def parameter_price(self, n: int) -> float:
        del n
        return 1.0


@final
@dataclass(frozen=True)
class BIC(Criterion):
    """Bayesian information criterion: log-likelihood minus a penalty per free parameter.

    For discrete variables; higher is better. The penalty is ``penalty_discount * log(n) / 2`` per
    parameter. All configurations of the parents have parameters, including those that do not occur.

    Parameters
    ----------
    penalty_discount
        Factor of the penalty. 1 is the standard criterion; larger values give sparser graphs.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> round(ist.score(data, data.dag, ist.BIC()), 1)
    -2258.4
    """

    penalty_discount: float = 1.0

    def __post_init__(self) -> None:
        require_number(self, "penalty_discount", least=0)

    def parameter_price(self, n: int) -> float:
        return self.penalty_discount * 0.5 * float(np.log(n))


@final
@dataclass(frozen=True)
class EBIC(Criterion):
    """Extended BIC, which accounts for the number of possible edges.

    For discrete variables; higher is better. It is ``BIC`` minus ``2 * gamma * log(d)`` per edge
    among d variables (Chen and Chen 2008; Foygel and Drton 2010). BIC alone tests each edge
    separately: among 100 variables there are 4,950 pairs, and hundreds of them pass by chance. The
    extra penalty depends only on the number of edges, so the score stays score-equivalent.

    Parameters
    ----------
    gamma
        Weight of the extra penalty. 0 is BIC; 0.5 and 1 are common values.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> ist.learn(data, score=ist.EBIC(gamma=1.0)).dag.parents("either")
    ('tub', 'lung')
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        require_number(self, "gamma", least=0)

    def parameter_price(self, n: int) -> float:
        return 0.5 * float(np.log(n))

    def size_penalties(self, d: int) -> Floats:
        return size_penalties(d, self.gamma)
