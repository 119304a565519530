"""Counting of many tables from batches of coded rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels.counting import add_tables
from isthmus.statistics.blocks import Positions
from isthmus.types import Integers


@final
class TableCounter:
    """Adds up the tables of sets of variables, batch by batch of rows.

    Parameters
    ----------
    cardinalities
        Number of levels of each variable.
    sets
        Positions of the variables of each table.
    """

    def __init__(self, cardinalities: Integers, sets: Sequence[Positions]) -> None:
        self._sizes = np.ascontiguousarray(cardinalities, dtype=np.int64)
        self._sets = list(sets)
        self._type = np.uint8 if self._sizes.max(initial=1) <= 2**8 else np.uint16
        self._room = np.empty(0, dtype=self._type)
        self.n = 0
        self._places: dict[int, list[int]] = {}
        for i, members in enumerate(self._sets):
            self._places.setdefault(len(members), []).append(i)
        self._rows: dict[int, Integers] = {}
        self._values: dict[int, Integers] = {}
        for size, places in self._places.items():
            # Sets that share all but the last variable stand together.
            places.sort(key=self._sets.__getitem__)
            self._rows[size] = np.array([self._sets[i] for i in places], np.int64)
            cells = sum(math.prod(self._shape(i)) for i in places)
            self._values[size] = np.zeros(cells, np.int64)

    def _shape(self, i: int) -> tuple[int, ...]:
        return tuple(int(self._sizes[v]) for v in self._sets[i])

    def room(self, rows: int) -> NDArray[Any]:
        """Return the array for the codes of the next rows, one row per variable.

        It is the same memory each time, with what was there before.
        """
        cells = len(self._sizes) * rows
        if len(self._room) < cells:
            self._room = np.empty(cells, dtype=self._type)
        return self._room[:cells].reshape(-1, rows)

    def update(self, codes: NDArray[Any]) -> None:
        """Add rows, each of which counts once."""
        self.n += codes.shape[1]
        for size, rows in self._rows.items():
            add_tables(codes, self._sizes, rows, self._values[size])

    def finish(self) -> list[Integers]:
        """Return the tables in the order of the sets."""
        tables: dict[int, Integers] = {}
        for size, places in self._places.items():
            start = 0
            for i in places:
                shape = self._shape(i)
                end = start + math.prod(shape)
                tables[i] = self._values[size][start:end].reshape(shape)
                start = end
        return [tables[i] for i in range(len(self._sets))]
