"""Who the rows of a site describe, as its policy states it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from isthmus.errors import StudyError

ROWS = "rows"
NOT_PERSONS = "none"
_COLUMN = "column:"


@final
@dataclass(frozen=True)
class Persons:
    """The person or persons that a row of the site describes.

    Parameters
    ----------
    text
        ``"rows"`` if every row describes another person; in a study of time series, every
        realisation then does. ``"none"`` if rows do not describe persons (machines, regions), so
        that the rules count rows. ``"column:NAME"`` if a column of the site's table identifies the
        person.
    """

    text: str = ROWS

    def __post_init__(self) -> None:
        if self.text not in (ROWS, NOT_PERSONS) and not self.column:
            raise StudyError(
                f"persons is {self.text!r}; it must be {ROWS!r}, {NOT_PERSONS!r}, or {_COLUMN!r} "
                "followed by the name of the column that identifies a person"
            )

    @property
    def column(self) -> str:
        """The column that identifies a person, or nothing."""
        return self.text.removeprefix(_COLUMN) if self.text.startswith(_COLUMN) else ""

    @property
    def not_persons(self) -> bool:
        """Whether rows do not describe persons."""
        return self.text == NOT_PERSONS

    def __str__(self) -> str:
        return self.text
