"""Series are centred by realisation, and steps of time are read as what they are."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus.errors import DataError, MissingValuesError, SchemaError

STEPS = 3000
DAY = np.arange(STEPS) + 2 * (np.arange(STEPS) // 5)  # a weekend after five steps


def persistent(seed: int = 0) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    x = np.zeros(STEPS)
    for t, e in enumerate(rng.normal(size=STEPS)):
        x[t] = 0.9 * x[t - 1] + e if t else e
    return x


X = persistent()


def coefficient(series: ist.Series) -> float:
    moments = series.moments()
    names = moments.schema.names
    now, before = names.index("x"), names.index("x@1")
    covariance = moments.covariance()
    return float(covariance[now, before] / covariance[before, before])


def test_each_realisation_is_centred_not_each_stretch() -> None:
    table = {"x": X, "day": DAY}
    plain = ist.Series(table, lags=1, time="day")
    centred = ist.Series(table, lags=1, time="day", centre=True)
    assert coefficient(centred) == pytest.approx(coefficient(plain), abs=1e-9)
    assert coefficient(centred) == pytest.approx(0.9, abs=0.03)


def test_jittered_stamps_are_rounded_to_the_step_with_a_note() -> None:
    rng = np.random.default_rng(1)
    stamps = np.arange(STEPS) + rng.uniform(-0.2, 0.2, STEPS)
    series = ist.Series({"x": X, "t": stamps}, lags=2, time="t")
    assert series.moments().n == STEPS - 2
    (note,) = ist.learn(series).notes
    assert note.startswith("2,998 of 3,000 rows are used; the first 2 rows have no complete past.")
    assert "in 't' count as one step" in note


def test_a_gap_among_jittered_stamps_is_still_a_gap() -> None:
    rng = np.random.default_rng(1)
    stamps = np.arange(STEPS) + rng.uniform(-0.2, 0.2, STEPS)
    stamps[1000:] += 1.0  # one step is missing
    series = ist.Series({"x": X, "t": stamps}, lags=1, time="t")
    assert series.realisations == 2
    assert series.moments().n == STEPS - 2


def test_irregular_stamps_are_refused() -> None:
    stamps = np.cumsum(np.random.default_rng(2).exponential(size=STEPS))
    with pytest.raises(DataError, match=r"too irregular.*regular grid.*leave out time="):
        ist.Series({"x": X, "t": stamps}, lags=1, time="t")


def test_months_are_steps_although_their_lengths_differ() -> None:
    months = np.arange("1990-01", "2020-01", dtype="M8[M]").astype("M8[ns]")
    kept = np.arange(len(months)) != 100
    series = ist.Series({"x": X[: len(months)][kept], "t": months[kept]}, lags=1, time="t")
    assert series.realisations == 2
    assert "Differences from 28 days to 31 days" in series.notes()[0]


def test_a_sparse_grid_keeps_its_shortest_difference_as_the_step() -> None:
    kept = np.flatnonzero(np.random.default_rng(3).random(STEPS) < 0.3)
    series = ist.Series({"x": X[kept], "t": kept}, lags=1, time="t")
    assert series.moments().n == int((np.diff(kept) == 1).sum())


@pytest.mark.parametrize("column", ["time", "by"])
@pytest.mark.parametrize("missing", [np.nan, None])
def test_missing_keys_are_refused(column: str, missing: float | None) -> None:
    keys: NDArray[Any] = DAY.astype(float) if missing is not None else DAY.astype(object)
    keys[7] = missing
    with pytest.raises(MissingValuesError, match=rf"'key' \({column}=\) is missing in 1 of"):
        ist.Series(
            {"x": X, "key": keys},
            lags=1,
            time="key" if column == "time" else None,
            by="key" if column == "by" else None,
        )


def test_numbers_as_text_are_sorted_as_numbers() -> None:
    text = np.array([str(i) for i in range(STEPS)])
    assert coefficient(ist.Series({"x": X, "t": text}, lags=1, time="t")) == pytest.approx(
        coefficient(ist.Series({"x": X}, lags=1))
    )


@pytest.mark.parametrize("form", ["date", "text", "aware", "pandas"])
def test_dates_in_any_form_have_the_same_gaps(form: str) -> None:
    days = [dt.date(2000, 1, 1) + dt.timedelta(days=int(k)) for k in DAY]
    columns: dict[str, Any] = {
        "date": np.array(days, dtype=object),
        "text": np.array([d.isoformat() for d in days]),
        "aware": np.array(
            [dt.datetime(d.year, d.month, d.day, tzinfo=dt.UTC) for d in days], dtype=object
        ),
    }
    if form == "pandas":
        pandas = pytest.importorskip("pandas")
        columns[form] = pandas.to_datetime(pandas.Series(days)).dt.tz_localize("Europe/Berlin")
        table: Any = pandas.DataFrame({"x": X, "t": columns[form]})
    else:
        table = {"x": X, "t": columns[form]}
    series = ist.Series(table, lags=1, time="t")
    # Clocks change twice a year: an hour more or less in a day is no gap.
    assert series.realisations == STEPS // 5
    assert f"{STEPS - STEPS // 5:,} of {STEPS:,} rows are used" in series.notes()[0]


def test_text_that_is_no_time_is_refused() -> None:
    with pytest.raises(DataError, match=r"'January'.*ISO 8601"):
        ist.Series({"x": X[:3], "t": ["January", "March", "May"]}, lags=1, time="t")


def test_the_step_is_the_same_in_all_tables() -> None:
    daily = {"x": X[:100], "t": np.arange(100)}
    weekly = {"x": X[100:150], "t": 7 * np.arange(50)}
    series = ist.Series([daily, weekly], lags=1, time="t")
    assert series.moments().n == 99
    dates = np.datetime64("2026-01-01") + np.arange(100)
    with pytest.raises(SchemaError, match=r"numbers .* dates"):
        ist.Series([daily, {"x": X[:100], "t": dates}], lags=1, time="t")
