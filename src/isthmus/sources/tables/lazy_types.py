"""Types of the columns of a table in an engine, before any row is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from isthmus.errors import SchemaError
from isthmus.sources.tables.infer_kinds import Profile, decide
from isthmus.sources.tables.kinds import CellType, TimeUnit, cell_type_of, refused_type

if TYPE_CHECKING:
    import narwhals as nw

    from isthmus.sources.tables.engines.base import Engine


def readable_cells(dtypes: Mapping[str, nw.dtypes.DType]) -> dict[str, CellType]:
    """Return what the cells of each column are, and refuse those that are no numbers or levels."""
    cells = {name: cell_type_of(name, dtype) for name, dtype in dtypes.items()}
    for name, own in cells.items():
        if own in (CellType.EMPTY, CellType.TEMPORAL):
            raise refused_type(name, str(dtypes[name]), temporal=own is CellType.TEMPORAL)
    return cells


def check_times(
    units: Mapping[str, TimeUnit], dtypes: Mapping[str, nw.dtypes.DType], engine: Engine
) -> None:
    """Refuse columns that an engine cannot turn into numbers of a unit of time."""
    for name, unit in units.items():
        dtype = str(dtypes[name])
        decide(name, Profile(cell_type_of(name, dtypes[name]), dtype, 0, 0), unit)
        is_duration = dtype.startswith("Duration")
        if is_duration and not engine.durations:
            raise SchemaError(
                f"Column {name!r} has durations, which {engine.site} does not convert to "
                f"{unit}. Convert it to a number in the engine, and leave it out of kinds."
            )
        if not is_duration and not dtype.startswith("Date"):
            raise refused_type(name, dtype, time_of_day=True)


def fills_range(profile: Profile) -> bool:
    """Whether a column has all integers between its smallest and its largest value."""
    is_integer = profile.cells is CellType.INTEGER and profile.distinct > 0
    return is_integer and profile.distinct == profile.high - profile.low + 1
