"""Information criteria for discrete variables: AIC, BIC and EBIC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.options import require_number
from isthmus.scores.criterion import Criterion
from isthmus.scores.extended import size_penalties
from isthmus.types import Floats


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
