"""DuckDB: batches of Arrow stream past in this process; nothing is kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from isthmus.sources.tables.engines.arrow import moments_of_batches
from isthmus.sources.tables.engines.base import Computed, Engine, batch_rows, distinct_by_narwhals
from isthmus.statistics import Kind, Schema


@final
@dataclass(frozen=True)
class DuckDBEngine(Engine):
    """A DuckDB relation."""

    relation: Any

    @property
    def site(self) -> str:
        """Name of the engine."""
        return "DuckDB"

    def distinct(self, names: Sequence[str], rows: int) -> list[int]:
        """Number of distinct values of these columns in the first rows."""
        return distinct_by_narwhals(self.relation, names, rows)

    def moments(self, schema: Schema) -> Computed:
        """Stream the columns and add up their products: quicker than SQL from ten columns on."""
        chosen = []
        for v in schema.variables:
            name = '"' + v.name.replace('"', '""') + '"'
            chosen.append(
                f"CAST({name} AS DOUBLE) AS {name}" if v.kind is Kind.CONTINUOUS else name
            )
        selected = self.relation.project(", ".join(chosen))
        rows = batch_rows(len(schema))
        # Older versions call the same thing by another name.
        open_reader = getattr(selected, "to_arrow_reader", None) or selected.fetch_record_batch
        return Computed.there(moments_of_batches(schema, open_reader(rows)))
