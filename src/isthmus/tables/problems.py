"""All reasons why a table cannot be read, in one error."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, final

import numpy as np

from isthmus.errors import DataError, MissingValuesError, SchemaError
from isthmus.statistics.base import refuse_infinite
from isthmus.tables.kinds import CellType
from isthmus.tables.missing import Missing, Read, apply_strategy

Item = TypeVar("Item")
Result = TypeVar("Result")


@final
class Problems:
    """Errors about columns, which are raised together."""

    def __init__(self, errors: Iterable[DataError] = ()) -> None:
        self._errors = list(errors)

    def without(self, items: Iterable[Item], read: Callable[[Item], Result]) -> list[Result]:
        """Return what is read from items, without those that cannot be read."""
        results = []
        for item in items:
            try:
                results.append(read(item))
            except SchemaError as error:
                self._errors.append(error)
        return results

    def refuse_with(self, others: Sequence[Read], missing: Missing | None) -> None:
        """Raise if there are errors, with what is wrong with the cells of the other columns."""
        if not self._errors:
            return
        if others:
            try:
                apply_strategy(others, missing, len(others[0][0].values))
            except MissingValuesError as error:
                self._errors.append(error)
        raise self.and_infinite(others)

    def and_infinite(self, columns: Sequence[Read]) -> DataError:
        """Return one error of the type of the first, and name columns with infinite values."""
        floats = [c for c, _ in columns if c.cells is CellType.FLOAT]
        try:
            refuse_infinite({c.name: int(np.isinf(c.present).sum()) for c in floats})
        except DataError as error:
            self._errors.append(error)
        first = self._errors[0]
        if len(self._errors) == 1:
            return first
        return type(first)(" ".join(map(str, dict.fromkeys(self._errors))))
