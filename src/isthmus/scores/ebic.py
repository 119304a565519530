"""Extended Bayesian information criterion for discrete variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from isthmus.objectives import LocalScore
from isthmus.options import require_number
from isthmus.scores.base import Score
from isthmus.scores.bic import BIC
from isthmus.scores.extended import edge_prices, extended
from isthmus.statistics import Counts, Kind


@final
@dataclass(frozen=True)
class EBIC(Score[Counts, LocalScore]):
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
    needs: ClassVar[type[Counts]] = Counts
    kind: ClassVar[Kind] = Kind.DISCRETE

    def __post_init__(self) -> None:
        require_number(self, "gamma", least=0)

    def bind(self, statistics: Counts) -> LocalScore:
        """Bind the score to counts."""
        prices = edge_prices(len(statistics.schema), self.gamma)
        return extended(BIC().bind(statistics), prices)
