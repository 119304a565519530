"""What organisations publish of a result that they computed together: no more digits than it needs.

A network with exact parameters gives back the exact sums behind it. Files of joint results are
written from these statistics instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NoReturn, final

from isthmus.errors import MismatchError
from isthmus.graphs import DAG, Knowledge
from isthmus.models import GPNetwork, Level, Network
from isthmus.models.rounding import (
    rounded_network,
    rounded_rows,
    rounded_text,
    rounded_values,
    significant,
)
from isthmus.results.directions import Directions, Edges

if TYPE_CHECKING:
    from isthmus.results.solution import Solution, StatisticsKept

SCORE_DIGITS = 4


@final
@dataclass(frozen=True)
class RoundedStatistics:
    """The statistics of a solution, as far as they are published."""

    kept: StatisticsKept

    @property
    def rows(self) -> int:
        """Number of rows, with two digits."""
        return rounded_rows(self.kept.rows)

    @property
    def fit_caveat(self) -> str | None:
        """How the network of `fit` differs from the learned model; None if it does not."""
        return self.kept.fit_caveat

    @property
    def tested(self) -> bool:
        """Whether tests have decided on directions, and no score."""
        return self.kept.tested

    def fit(
        self, dag: DAG, data: object | None, pseudo_count: float, *, curves: bool = True
    ) -> Network:
        """Return the network with rounded parameters and without counts."""
        exact = self.kept.fit(dag, data, pseudo_count, curves=curves)
        network: Network = rounded_network(exact)
        return network

    def strengths(self, dag: DAG) -> dict[tuple[str, str], float]:
        """Return for each edge how much the score falls without it, with three digits."""
        return {edge: significant(value) for edge, value in self.kept.strengths(dag).items()}

    def margins(
        self, dag: DAG, edges: Edges, knowledge: Knowledge, *, patient: bool = False
    ) -> dict[tuple[str, str], float] | None:
        """Return nothing: the margins of a published solution were measured before."""
        return None

    def to_bytes(self, dag: DAG | None) -> bytes:
        """Return nothing: statistics are not published."""
        return b""

    def fit_gp(self, dag: DAG) -> GPNetwork:
        """Refuse: curves are not published."""
        _refuse()

    def adjusted_effects(
        self,
        cause: str,
        effect: str,
        change: Sequence[Level] | None,
        outcome: Level | None,
        clusters: str | Sequence[object] | None = None,
    ) -> NoReturn:
        """Refuse: effects are estimated from exact statistics."""
        _refuse()

    def standardised(self) -> Solution:
        """Refuse: a refit needs exact statistics."""
        _refuse()


def _refuse() -> NoReturn:
    raise MismatchError(
        "This is the published form of a result of several organisations, which has rounded "
        "parameters and no statistics. Ask the solution that it was made from."
    )


def published(solution: Solution) -> Solution:
    """Return a solution as it may be published; see `Solution.published`."""
    if not solution.disclosure.has_exact_sums:
        return solution
    kept, own = solution.statistics_kept, solution.parameters_kept
    details = solution.details
    changed = {f.name: rounded_values(getattr(details, f.name)) for f in fields(details)}
    return replace(
        solution,
        score=significant(solution.score, SCORE_DIGITS),
        choice=rounded_text(solution.choice),
        notes=tuple(map(rounded_text, solution.notes)),
        details=replace(details, **changed),
        statistics_kept=None if kept is None else RoundedStatistics(kept),
        parameters_kept=None if own is None else rounded_network(own),
        directions_kept=_rounded_directions(solution.directions),
    )


def _rounded_directions(directions: Directions) -> Directions:
    margins: Any = rounded_values(dict(directions.margins))
    return replace(directions, margins=margins)
