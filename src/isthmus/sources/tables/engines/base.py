"""The interface of an engine: what narwhals cannot do, above all moments in one pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

from isthmus.errors import SchemaError
from isthmus.statistics import Level, Moments, Schema


@final
@dataclass(frozen=True)
class Computed:
    """Moments, and what the engine sent to compute them."""

    moments: Moments
    what: str
    size: int

    @classmethod
    def there(cls, moments: Moments) -> Computed:
        """Computed by the engine, or next to it in this process: it sent the moments only."""
        p = moments.schema.width
        what = f"n, sums and products of {p} columns of {len(moments.schema)} variables"
        return cls(moments, what, 1 + p + p * (p + 1) // 2)


class Engine(ABC):
    """The adapter of one engine.

    The columns of its table are named c0, c1 and so on. Engines quote, fold and expand names
    differently (``*``, ``a.b``, ``A`` and ``a``), so the user's names never reach a query.

    Attributes
    ----------
    table
        The table with plain column names.
    streams
        Whether moments are added up in this process, batch by batch. Basis functions are then
        computed here, too, which is faster than sending them as further columns.
    """

    table: Any
    streams: ClassVar[bool] = False

    @property
    @abstractmethod
    def site(self) -> str:
        """Name of the engine, for the disclosure."""

    @abstractmethod
    def distinct(self, columns: Sequence[str], rows: int) -> list[int]:
        """Number of distinct values of these columns in the first `rows` rows."""

    @abstractmethod
    def moments(self, schema: Schema, columns: Sequence[str]) -> Computed:
        """Moments of the variables of `schema`, refusing missing and infinite cells.

        Parameters
        ----------
        schema
            The variables.
        columns
            The column of each variable.
        """


def plain_names(names: Sequence[str]) -> list[str]:
    """The plain column names that stand for these names."""
    return [f"c{i}" for i in range(len(names))]


def distinct_by_narwhals(table: Any, columns: Sequence[str], rows: int) -> list[int]:
    """Number of distinct values, in one query that narwhals writes."""
    import narwhals as nw

    wanted = [nw.col(c).n_unique().alias(c) for c in columns]
    answer = nw.from_native(table).head(rows).select(*wanted).collect()
    return [int(answer.get_column(c).to_list()[0] or 0) for c in columns]


def batch_rows(columns: int) -> int:
    """How many rows to take at once: about 64 MB of floats."""
    return min(max(2**23 // max(columns, 1), 2**11), 2**20)


def unknown_level(name: str, levels: Sequence[Level]) -> SchemaError:
    """The error for a value that is no level."""
    return SchemaError(
        f"Column {name!r} has values that are not among its levels {tuple(levels)[:20]!r}. "
        "Add them to the schema, drop the rows, or read the table again if it has changed."
    )
