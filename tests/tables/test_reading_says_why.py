"""The reading of columns gives true reasons in plain words, and notes what was left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus.errors import SchemaError, StudyError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))


def test_numbers_of_a_series_say_that_they_are_always_continuous() -> None:
    series = ist.Series({"a": X[:, 0], "z": X[:, 1] > 0}, lags=1)
    reading = series.reading()
    assert reading["a@1"].reason == "numbers; all numbers of a Series are continuous"
    assert reading["z"].reason == reading["z@1"].reason
    assert reading["z"].reason.startswith("Booleans as 0 and 1;")
    text = {"a": X[:, 0], "z": np.where(X[:, 1] > 0, "y", "n")}
    assert ist.Series(text, lags=1).reading()["z@1"].reason == "text or categories, 2 levels"
    with pytest.raises(SchemaError, match="'z' holds text"):
        ist.Series(text, lags=1, kinds={"z": "continuous"})


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        *((n, True) for n in ("patientid", "PATIENTID", "mrn", "MRN", "case_no", "pid", "record")),
        *((n, True) for n in ("ID", "PatientID", "patient_id", "record number")),
        *((n, False) for n in ("paid", "solid", "records", "record_time", "cases", "casino")),
    ],
)
def test_record_numbers_are_known_by_name(name: str, left_out: bool) -> None:
    numbers = np.random.default_rng(0).permutation(10**6)[:60]
    reading = ist.Frame({name: numbers, "a": X[:, 0], "b": X[:, 1]}).reading()
    assert (name in reading.left_out) is left_out


def test_durations_and_dates_are_said_in_words() -> None:
    pl = pytest.importorskip("polars")
    hours = np.timedelta64(0, "ms") + RNG.integers(0, 1000, 60) * np.timedelta64(3600, "s")
    table = pl.DataFrame({"d": hours, "e": np.datetime64("2020-01-01", "ms") + hours, "a": X[:, 0]})
    kinds = {"d": "days", "e": "days"}
    reading = ist.Frame(table, kinds=kinds).reading()
    assert reading["d"].reason == "durations, in days as requested"
    assert reading["e"].reason == "dates with times, in days as requested"
    reading = ist.Lazy(table.lazy(), kinds=kinds).reading()
    assert reading["d"].reason == "dates or times, in days as requested"


def test_text_of_an_engine_that_is_left_out_may_need_a_cast() -> None:
    pl = pytest.importorskip("polars")
    written = [f"{value:.4f}" for value in X[:, 0]]
    table = pl.DataFrame({"s": written, "a": X[:, 0], "b": X[:, 1]})
    notes = " ".join(ist.Lazy(table.lazy()).reading().notes)
    assert "'s' holds numbers or dates that are written as text, cast it first" in notes


def test_two_parties_name_the_file_that_is_missing(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    with pytest.raises(StudyError, match=r"study\.toml.*shared folder"):
        ist.TwoParty(tmp_path / "home", tmp_path / "study", {"a": X[:, 0]})
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.toml").write_text("")
    with pytest.raises(StudyError, match=r"identity\.pem.*private folder"):
        ist.TwoParty(tmp_path / "home", tmp_path / "study", {"a": X[:, 0]})
