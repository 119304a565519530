"""Read a column of time, and find the step and the gaps in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from numbers import Integral, Real
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError, MissingValuesError
from isthmus.types import Floats

_NEAR = 0.5
"""Two rows are one step apart if their difference is nearer to one step than this, in steps."""
_MAX_SPREAD = 0.25
"""Largest standard deviation, in steps, of the differences that are called a step. With normal
jitter, one step in twenty is then mistaken for a gap; see tests/repro/test_w06_series.py."""
_EXACT = 1e-3
"""Deviations below this share of a step are rounding of the stamps, not jitter."""
_MIN_SHARE = 0.1
"""Minimum share of differences that equal the shortest one, for it to be the step."""
_COMPACT = re.compile(r"\s*\d{8}\s*")
"""Dates without separators, such as 20240131."""
_UNITS = (("day", 86_400.0), ("hour", 3_600.0), ("minute", 60.0), ("second", 1.0))


@final
@dataclass(frozen=True)
class Steps:
    """The steps between rows of a column of time.

    Attributes
    ----------
    gaps
        Which differences are not one step.
    text
        A sentence about differences that were rounded to one step; empty if all are equal.
    """

    gaps: NDArray[np.bool_]
    text: str


def refuse_missing_keys(column: NDArray[Any], name: str, role: str) -> None:
    """Raise an error if a column that orders or groups rows has missing values."""
    if column.dtype.kind in "fc":
        missing = np.isnan(column)
    elif column.dtype.kind in "mM":
        missing = np.isnat(column)
    elif column.dtype.kind == "O":
        missing = np.array([_is_missing(value) for value in column.tolist()], dtype=np.bool_)
    else:
        return
    if missing.any():
        raise MissingValuesError(
            f"The column {name!r} ({role}=) is missing in {int(missing.sum()):,} of "
            f"{len(column):,} rows, for instance in row {int(np.flatnonzero(missing)[0])}. It "
            "must be known for each row: fill it in, or drop these rows."
        )


def _is_missing(value: object) -> bool:
    # Only NaN, NaT and pandas.NA differ from themselves; the last one refuses to be a Boolean.
    if value is None or type(value).__name__ == "NAType":
        return True
    return bool(value != value)


def as_times(column: NDArray[Any], name: str) -> NDArray[Any]:
    """Return a column of time as numbers, or as ``datetime64`` or ``timedelta64`` of NumPy.

    Numbers and ISO 8601 dates may also be text, and dates may be objects of Python. Text of eight
    digits is dates if each row has a valid one.
    """
    refuse_missing_keys(column, name, "time")
    kind = column.dtype.kind
    if kind in "iuf":
        if not np.isfinite(column).all():
            raise DataError(f"The column of time {name!r} has infinite values. Correct them.")
        return column
    if kind in "mM":
        return column
    values = column.tolist()
    # Month ends would be gaps in '20240131' as a number, so that dates come first.
    compact = all(isinstance(v, str) and _COMPACT.fullmatch(v) for v in values)
    for read in (_dates, _numbers) if compact else (_numbers, _dates):
        try:
            times = read(values)
        except OverflowError:
            raise DataError(
                f"The column of time {name!r} has whole numbers that 64 bits do not hold (beyond "
                "about 9.2e18). Subtract the first one from all, or use a larger unit of time."
            ) from None
        if times is not None and not _has_missing(times):
            return times
    shown = ", ".join(map(repr, values[:3]))
    raise DataError(
        f"The column of time {name!r} has values such as {shown}. Numbers, dates, and text with "
        "numbers or ISO 8601 dates ('2026-03-01 12:30') are allowed. Convert the column, for "
        "instance with pandas.to_datetime."
    )


def _has_missing(times: NDArray[Any]) -> bool:
    lacking = np.isnat(times) if times.dtype.kind in "mM" else ~np.isfinite(times)
    return bool(lacking.any())


def _numbers(values: Sequence[Any]) -> NDArray[Any] | None:
    if any(isinstance(v, bool) or not isinstance(v, Real | str) for v in values):
        return None
    try:
        # Whole numbers stay so: as floats, neighbouring nanoseconds since 1970 are equal.
        if all(isinstance(v, Integral | str) for v in values):
            return np.array([int(v) for v in values], dtype=np.int64)
    except ValueError:  # text with fractions
        pass
    try:
        return np.array([float(v) for v in values], dtype=np.float64)
    except ValueError:
        return None


def _dates(values: Sequence[Any]) -> NDArray[Any] | None:
    try:
        if all(isinstance(v, str) for v in values):
            values = [datetime.fromisoformat(v.strip()) for v in values]
        if all(isinstance(v, date) for v in values):
            return np.array([_naive(v) for v in values], dtype="M8[us]")
    except ValueError:
        pass
    return None


def _naive(moment: date) -> date:
    """Return a moment with a time zone as one of UTC, without a zone, as NumPy has it."""
    if isinstance(moment, datetime) and moment.tzinfo is not None:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment


def differences(times: NDArray[Any]) -> Floats:
    """Return the differences of consecutive times, those of dates in seconds.

    Times ascend within a realisation; where the next one begins, differences have no meaning.
    """
    kind = times.dtype.kind
    if kind in "iu":
        # Before they are floats: nanoseconds since 1970 have more digits than these. Without a
        # sign, the difference of any two integers in ascending order fits.
        whole = times.astype(np.int64).view(np.uint64) if kind == "i" else times.astype(np.uint64)
        return np.diff(whole).astype(np.float64)
    if kind not in "mM":
        return np.diff(times.astype(np.float64))
    if np.datetime_data(times.dtype)[0] in ("Y", "M"):
        times = times.astype("M8[D]")  # months have different lengths in seconds
    return np.asarray(np.diff(times) / np.timedelta64(1, "s"), dtype=np.float64)


def find_steps(lengths: Floats, within: NDArray[np.bool_], name: str, *, dates: bool) -> Steps:
    """Tell steps from gaps.

    Parameters
    ----------
    lengths
        Differences of time between consecutive rows; those of dates in seconds.
    within
        Whether both rows belong to one realisation; other differences mean nothing.
    name
        Name of the column of time.
    dates
        Whether the column holds dates, or durations.

    Raises
    ------
    DataError
        If the differences vary so much that no length of a step can be told.
    """
    inside = lengths[within]
    if not len(inside):
        return Steps(np.zeros(len(lengths), dtype=np.bool_), "")
    step = _step(inside)
    ratios = inside / step
    near = ratios[ratios < 1.0 + _NEAR]
    spread = float(np.sqrt(np.mean(np.square(near - 1.0))))
    shown = _length(step, dates=dates)
    if spread > _MAX_SPREAD:
        raise DataError(
            f"The times in {name!r} are too irregular to tell steps from gaps: the median "
            f"difference is {shown}, and differences near it vary by {spread:.0%}. Bring the rows "
            "to a regular grid first, for instance with resample of pandas; or leave out time= if "
            "each row is one step after the row before it."
        )
    far = np.abs(lengths / step - 1.0) >= _NEAR
    joined = ratios[np.abs(ratios - 1.0) < _NEAR]
    text = ""
    if len(joined) and max(joined.max() - 1.0, 1.0 - joined.min()) > _EXACT:
        ends = [_length(step * float(end), dates=dates) for end in (joined.min(), joined.max())]
        text = f"Differences from {ends[0]} to {ends[1]} in {name!r} count as one step."
    return Steps(within & far, text)


def _step(lengths: Floats) -> float:
    """The length of a step: the shortest difference if all are multiples of it, else the median.

    Rows of a regular grid from which many were dropped are mostly further apart than a step.
    """
    shortest = float(lengths.min())
    ratios = lengths / shortest
    on_grid = bool((np.abs(ratios - np.rint(ratios)) <= _EXACT * ratios).all())
    if on_grid and np.mean(ratios < 1.0 + _NEAR) >= _MIN_SHARE:
        return shortest
    # Half of the differences of a series in pairs are gaps; the mean of both would be neither.
    return float(np.quantile(lengths, 0.5, method="lower"))


def _length(step: float, *, dates: bool) -> str:
    if not dates:
        return f"{step:.4g}"
    unit, seconds = next((u for u in _UNITS if step >= u[1]), _UNITS[-1])
    value = f"{step / seconds:.4g}"
    return f"{value} {unit}" if value == "1" else f"{value} {unit}s"
