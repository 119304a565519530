"""Times with many digits, and dates without separators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import DataError, SchemaError

EPOCH = 1_700_000_000_000_000_000
X = np.random.default_rng(0).normal(size=60)


def series(times: Any, values: Any = X) -> ist.Series:
    return ist.Series({"x": values, "t": times}, lags=1, time="t")


@pytest.mark.parametrize("step", [1, 100, 1_000, 10_000])
@pytest.mark.parametrize("kind", ["int64", "uint64", "object", "text"])
def test_nanoseconds_since_1970(step: int, kind: str) -> None:
    stamps = [EPOCH + step * i for i in range(60)]
    times: dict[str, Any]
    times = {"object": np.array(stamps, dtype=object), "text": np.array(list(map(str, stamps)))}
    read = series(times[kind] if kind in times else np.array(stamps, dtype=kind))
    assert read.realisations == 1
    assert read.notes() == ("59 of 60 rows are used; the first row has no complete past.",)


def test_repeated_times_and_gaps_are_still_found() -> None:
    stamps = EPOCH + 100 * np.arange(60)
    later = np.where(np.arange(60) < 30, stamps, stamps + 100)
    assert series(later).realisations == 2
    with pytest.raises(DataError, match=r"1 rows .*'t'"):
        series(np.r_[stamps[:59], stamps[58]])


@pytest.mark.parametrize("kind", ["int8", "int64", "uint64"])
def test_the_whole_range_of_integers(kind: str) -> None:
    info = np.iinfo(kind)
    width = (int(info.max) - int(info.min)) // 59
    times = np.array([int(info.min) + width * i for i in range(60)], dtype=kind)
    assert series(times[::-1]).realisations == 1


def test_realisations_may_start_at_different_times() -> None:
    times = np.r_[EPOCH + 100 * np.arange(30), 100 * np.arange(30)]
    table: dict[str, Any] = {"x": X, "t": times, "g": np.repeat([0, 1], 30)}
    assert ist.Series(table, lags=1, time="t", by="g").realisations == 2


@pytest.mark.parametrize("large", [10**30, 10**400], ids=["1e30", "1e400"])
def test_integers_beyond_64_bits_are_refused(large: int) -> None:
    with pytest.raises(DataError, match=r"'t'.*64 bits.*Subtract"):
        series([large + i for i in range(60)])


def test_integers_beyond_floats_among_fractions_are_refused() -> None:
    with pytest.raises(DataError, match=r"'t'.*64 bits.*Subtract"):
        series(np.array([0.5, *(10**400 + i for i in range(59))], dtype=object))


def test_dates_without_separators() -> None:
    days = np.arange("2024-01-01", "2024-03-01", dtype="M8[D]").astype(str)
    compact = [day.replace("-", "") for day in days]
    assert "20240131" in compact
    read = series(compact)
    assert read.realisations == 1
    assert "count as one step" not in read.notes()[0]
    tables: list[Any] = [{"x": X, "t": compact}, {"x": X, "t": list(map(str, range(60)))}]
    with pytest.raises(SchemaError, match=r"numbers .* dates"):
        ist.Series(tables, lags=1, time="t")


def test_eight_digits_that_are_not_all_dates_are_numbers() -> None:
    assert series([str(20240101 + i) for i in range(60)]).realisations == 1
