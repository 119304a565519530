"""Lagged columns: within realisations, never across, never over a gap."""

from __future__ import annotations

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import DataError, MissingValuesError, SchemaError


def test_rows_hold_the_past_of_their_own_series() -> None:
    first = {"a": np.arange(5.0), "b": 10.0 + np.arange(5.0)}
    second = {"a": 100.0 + np.arange(4.0), "b": 200.0 + np.arange(4.0)}
    source = ist.Series([first, second], lags=2)
    assert source.schema().names == ("a", "b", "a@1", "b@1", "a@2", "b@2")
    rows = source.rows()
    assert rows.shape == (5, 6)
    np.testing.assert_array_equal(rows[0], [2, 12, 1, 11, 0, 10])
    np.testing.assert_array_equal(rows[2], [4, 14, 3, 13, 2, 12])
    np.testing.assert_array_equal(rows[3], [102, 202, 101, 201, 100, 200])
    np.testing.assert_array_equal(rows[:, 2], rows[:, 0] - 1)
    np.testing.assert_array_equal(rows[:, 4], rows[:, 0] - 2)


@pytest.mark.parametrize("library", ["numpy", "pandas", "polars"])
def test_a_long_table_is_sorted_and_split(library: str) -> None:
    rng = np.random.default_rng(0)
    parts = [{"x": rng.normal(size=30), "y": rng.normal(size=30)} for _ in range(3)]
    long = {
        "who": np.repeat(["c", "a", "b"], 30),
        "day": np.tile(np.arange(30), 3),
        "x": np.concatenate([p["x"] for p in parts]),
        "y": np.concatenate([p["y"] for p in parts]),
    }
    mixed = rng.permutation(90)
    table: object = {name: column[mixed] for name, column in long.items()}
    if library != "numpy":
        table = pytest.importorskip(library).DataFrame(table)
    found = ist.Series(table, lags=2, by="who", time="day")
    expected = ist.Series(parts, lags=2)
    assert found.realisations == 3
    np.testing.assert_allclose(
        np.sort(found.rows(), axis=0), np.sort(expected.rows(), axis=0), atol=0
    )


def test_a_gap_ends_a_stretch() -> None:
    days = np.array([0, 1, 2, 3, 7, 8, 9])
    source = ist.Series({"day": days, "x": days.astype(float)}, lags=1, time="day")
    assert source.realisations == 2
    np.testing.assert_array_equal(source.rows()[:, 0] - source.rows()[:, 1], 1.0)
    dates = np.datetime64("2026-01-01") + days
    again = ist.Series({"day": dates, "x": days.astype(float)}, lags=1, time="day")
    np.testing.assert_array_equal(again.rows(), source.rows())


def test_moments_of_parts_add_up() -> None:
    rng = np.random.default_rng(1)
    parts = [rng.normal(size=(40, 3)).cumsum(axis=0) for _ in range(4)]
    whole = ist.Series(parts, lags=2).moments()
    added = ist.Series(parts[:1], lags=2).moments() + ist.Series(parts[1:], lags=2).moments()
    np.testing.assert_allclose(added.covariance(), whole.covariance(), rtol=1e-10)
    assert added.n == whole.n == 4 * 38


def test_each_series_can_be_centred() -> None:
    rng = np.random.default_rng(2)
    parts = [rng.normal(size=(500, 1)) + 50.0 * k for k in range(3)]
    spread = [
        ist.Series(parts, lags=1, centre=c).moments().covariance()[0, 0] for c in (False, True)
    ]
    assert spread[0] > 1000.0
    assert spread[1] < 2.0


def test_refusals() -> None:
    x = np.arange(5.0)
    with pytest.raises(DataError, match="lags"):
        ist.Series({"x": x}, lags=0)
    with pytest.raises(DataError, match="more than 9 steps"):
        ist.Series({"x": x}, lags=9)
    with pytest.raises(DataError, match="no series"):
        ist.Series([], lags=1)
    with pytest.raises(SchemaError, match="different columns"):
        ist.Series([{"x": x}, {"y": x}], lags=1)
    with pytest.raises(SchemaError, match="no column"):
        ist.Series({"x": x}, lags=1, by="who")
    with pytest.raises(DataError, match="tells realisations apart"):
        ist.Series({"x": x, "t": np.zeros(5)}, lags=1, time="t")
    with pytest.raises(MissingValuesError):
        ist.Series({"x": np.array([1.0, np.nan, 2.0])}, lags=1)


def _seasonal(seed: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of four unrelated series, and a season that all share."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(steps, 4)), rng.normal(scale=2.0, size=7)


def test_a_season_is_subtracted_by_steps_and_by_the_calendar() -> None:
    noise, season = _seasonal(0, 210)
    start = np.datetime64("2024-01-01")
    days = start + np.arange(210)
    values = noise + season[np.arange(210) % 7, None]
    by_hand = values - np.array([values[k::7].mean(axis=0) for k in range(7)])[np.arange(210) % 7]
    by_hand += values.mean(axis=0)
    table = {f"x{i}": values[:, i] for i in range(4)}
    steps = ist.Series(table, lags=1, season=7)
    np.testing.assert_allclose(steps.rows()[:, :4], by_hand[1:], atol=1e-12)
    np.testing.assert_allclose(steps.rows()[:, 4:], by_hand[:-1], atol=1e-12)
    dated = {"day": days, **table}
    named = ist.Series(dated, lags=1, time="day", season="weekday")
    np.testing.assert_allclose(named.rows(), steps.rows(), atol=1e-12)
    # A gap of 10 days moves the phase, in steps as in the calendar.
    kept = np.r_[0:100, 110:210]
    gapped = {name: column[kept] for name, column in dated.items()}
    counted = ist.Series(gapped, lags=1, time="day", season=7)
    read = ist.Series(gapped, lags=1, time="day", season="weekday")
    assert counted.realisations == 2
    np.testing.assert_allclose(counted.rows(), read.rows(), atol=1e-12)


def test_a_common_season_makes_edges_unless_it_is_subtracted() -> None:
    with_season, without = 0, 0
    for seed in range(5):
        noise, season = _seasonal(seed, 700)
        values = noise + season[np.arange(700) % 7, None]
        with pytest.warns(UserWarning, match="note"):
            seasonal = ist.learn(ist.Series(values, lags=1))
        assert "about every 7 steps" in " ".join(seasonal.notes)
        with_season += len(seasonal.dag.edges)
        without += len(ist.learn(ist.Series(values, lags=1, season=7)).dag.edges)
    assert with_season > 25
    assert without <= 5 * 22 * 0.02  # pairs that an edge may join, and a rate of false ones


def test_calendar_months_differ_in_length() -> None:
    months = np.arange(np.datetime64("2000-01"), np.datetime64("2020-01"))
    season = np.random.default_rng(1).normal(size=12)
    x = season[np.arange(240) % 12]
    for name in ("month", 12):
        series = ist.Series({"m": months.astype("M8[D]"), "x": x}, lags=1, time="m", season=name)
        np.testing.assert_allclose(series.rows(), x.mean(), atol=1e-12)


@pytest.mark.parametrize(
    ("season", "said"), [("year", "one of"), (1, "at least 2"), (30, "rows"), ("month", "dates")]
)
def test_a_season_that_cannot_be_read_is_refused(season: object, said: str) -> None:
    with pytest.raises(DataError, match=said):
        ist.Series({"x": np.arange(60.0)}, lags=1, season=season)  # type: ignore[arg-type]
