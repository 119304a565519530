"""What an engine must do that narwhals does not: moments in one pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from isthmus.errors import SchemaError
from isthmus.statistics import Level, Moments, Schema


@final
@dataclass(frozen=True)
class Computed:
    """Moments, and what came over from the engine to make them."""

    moments: Moments
    what: str
    size: int

    @classmethod
    def there(cls, moments: Moments) -> Computed:
        """Made by the engine, or beside it in one process: only the moments came over."""
        p = len(moments.columns)
        what = f"n, sums and products of {p} columns of {len(moments.schema)} variables"
        return cls(moments, what, 1 + p + p * (p + 1) // 2)


class Engine(ABC):
    """What is done in a way of its own by one engine."""

    @property
    @abstractmethod
    def site(self) -> str:
        """Name of the engine, for the disclosure."""

    @abstractmethod
    def distinct(self, names: Sequence[str], rows: int) -> list[int]:
        """Number of distinct values of these columns in the first `rows` rows."""

    @abstractmethod
    def moments(self, schema: Schema) -> Computed:
        """Moments of the variables of `schema`, refusing missing and infinite cells."""


def distinct_by_narwhals(table: Any, names: Sequence[str], rows: int) -> list[int]:
    """Number of distinct values, in one query that narwhals writes."""
    import narwhals as nw

    # Names of our own: an engine may fold those of the table, or they may clash.
    wanted = [nw.col(n).n_unique().alias(f"c{i}") for i, n in enumerate(names)]
    found = nw.from_native(table).head(rows).select(*wanted).collect()
    return [int(found.get_column(f"c{i}").to_list()[0] or 0) for i in range(len(names))]


def batch_rows(columns: int) -> int:
    """How many rows to take at once: about 64 MB of floats."""
    return min(max(2**23 // max(columns, 1), 2**11), 2**20)


def unknown_level(name: str, levels: Sequence[Level]) -> SchemaError:
    """The error for a value that is no level."""
    return SchemaError(
        f"Column {name!r} has values that are not among its levels {tuple(levels)[:20]!r}. "
        "Add them to the schema, drop the rows, or read the table again if it has changed."
    )
