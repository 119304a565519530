"""K2 score: the marginal likelihood under a uniform prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from isthmus.kernels.scoring import DiscreteForm
from isthmus.objectives import LocalScore
from isthmus.scores.base import Score
from isthmus.scores.score_bounds import dirichlet_bound
from isthmus.scores.tables import bind_counts, log_dirichlet
from isthmus.statistics import Counts, Kind
from isthmus.types import Integers


@final
@dataclass(frozen=True)
class K2(Score[Counts, LocalScore]):
    """K2 score: a log marginal likelihood with a pseudo-count of one in every cell.

    For discrete variables; higher is better (Cooper and Herskovits 1992). It is not
    score-equivalent: it can prefer one direction of an edge without evidence. Configurations of the
    parents that do not occur contribute exactly 0.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> order = ist.KnownOrder(data.dag.nodes, max_parents=2)
    >>> ist.learn(data, score=ist.K2(), search=order).dag.parents("lung")
    ('smoke',)
    """

    needs: ClassVar[type[Counts]] = Counts
    kind: ClassVar[Kind] = Kind.DISCRETE

    def bind(self, statistics: Counts) -> LocalScore:
        """Bind the score to counts."""

        def table_score(table: Integers) -> float:
            return log_dirichlet(table, 1.0)

        return bind_counts(
            statistics,
            DiscreteForm.K2,
            0.0,
            table_score,
            equivalent=False,
            ceiling=lambda: dirichlet_bound(statistics),
        )
