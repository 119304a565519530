"""Expected counts of incomplete rows, given a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from isthmus.statistics.base import Summary
from isthmus.statistics.coded import CodedRows, histogram
from isthmus.statistics.incomplete import IncompleteCounts
from isthmus.types import Floats, Integers

if TYPE_CHECKING:
    from isthmus.graphs import DAG
    from isthmus.models import DiscreteNetwork


@final
@dataclass(frozen=True, eq=False)
class ExpectedCounts(Summary):
    """Expected counts of incomplete rows: missing values follow their distribution in a network.

    Attributes
    ----------
    incomplete
        The rows with missing values.
    completed
        The rows, each `draws` times, with missing values drawn from their distribution given the
        observed ones.
    draws
        How many times each row was completed.
    families
        Exact expected counts of the families of the network, by node, with one axis per parent
        and a last one for the node.
    """

    incomplete: IncompleteCounts
    completed: CodedRows
    draws: int
    families: Mapping[tuple[str, ...], Floats]
    described: ClassVar[str] = "expected counts of incomplete rows"

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", self.incomplete.schema)
        object.__setattr__(self, "n", self.incomplete.n)

    def table(self, names: Sequence[str]) -> Integers:
        """Count the rows that are complete for these variables."""
        return self.incomplete.table(names)

    def rows_about(self, names: Sequence[str]) -> int:
        return self.incomplete.rows_about(names)

    def expected(self, names: Sequence[str]) -> Floats:
        """Expected number of rows in each cell of the table of these variables."""
        if tuple(names) in self.families:
            return self.families[tuple(names)]
        chosen = self.schema.indices(names)
        sizes = self.schema.cardinalities[list(chosen)]
        table: Floats = histogram(self.completed.take(chosen), sizes).reshape(sizes) / self.draws
        return table

    def fit(self, dag: DAG, pseudo_count: float) -> DiscreteNetwork:
        """Estimate each table from its expected counts."""
        from isthmus.statistics.fitting import fit_families

        return fit_families(self, dag, pseudo_count, self.expected)

    def constants(self) -> tuple[str, ...]:
        return self.incomplete.constants()

    def duplicates(self) -> tuple[tuple[str, ...], ...]:
        return ()

    def cells(self) -> Sequence[Integers]:
        return ()

    def without_rows(self) -> ExpectedCounts:
        return self
