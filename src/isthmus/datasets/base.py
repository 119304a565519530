"""A table together with the network that it was simulated from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, final

from numpy.typing import NDArray

from isthmus.graphs import DAG
from isthmus.models import Network
from isthmus.plurals import counted


@final
class Dataset(Mapping[str, NDArray[Any]]):
    """A table together with the network it was simulated from. Pass it to ``learn`` directly.

    Parameters
    ----------
    table
        The columns.
    network
        The network that they were simulated from.
    description
        Subject of the data, and where they were published.
    """

    def __init__(
        self, table: Mapping[str, NDArray[Any]], network: Network, description: str
    ) -> None:
        self._table = dict(table)
        self.network = network
        self.description = description

    @property
    def dag(self) -> DAG:
        """The true graph."""
        return self.network.dag

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._table[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table)

    def __len__(self) -> int:
        return len(self._table)

    def __repr__(self) -> str:
        rows = counted(len(next(iter(self._table.values()))), "row")
        return f"Dataset({rows}, {counted(len(self), 'column')}): {self.description}"
