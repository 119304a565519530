"""A title above the names of the columns is noticed, and can be skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.tables.test_read_table import workbook

from isthmus.cli import main
from isthmus.errors import DataError
from isthmus.tables.read_table import open_table
from isthmus.tables.text_files import TextFormat

ROWS: list[list[Any]] = [["name", "age", "fare"], ["Ada", 30.5, 7.25], ["Bo", 41.5, 71.5]]
TITLES: dict[str, list[list[Any]]] = {
    "a title": [["Passenger list of 1912", None, None]],
    "a title and a blank row": [["Passenger list of 1912", None, None], [None, None, None]],
    "a title and a note": [["Passengers", None, None], ["of 1912", None, None]],
}


def write(path: Path, rows: list[list[Any]]) -> Path:
    if path.suffix == ".csv":
        lines = (",".join("" if c is None else str(c) for c in row) for row in rows)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path
    pytest.importorskip("fastexcel")
    return workbook(path, {"data": rows})


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
@pytest.mark.parametrize("name", TITLES)
def test_titles_are_noticed_and_skipped(name: str, ending: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"list{ending}", TITLES[name] + ROWS)
    number = len(TITLES[name])
    with pytest.raises(DataError, match=rf"one cell, 'Passenger.*--skip-rows {number}"):
        open_table(path)
    table = open_table(path, text_format=TextFormat(skip_rows=number)).table
    assert table.columns == ROWS[0]
    assert table.rows() == [tuple(row) for row in ROWS[1:]]


@pytest.mark.parametrize("ending", [".csv", ".xlsx"])
def test_a_table_with_one_name_is_read(ending: str, tmp_path: Path) -> None:
    path = write(tmp_path / f"list{ending}", [[None, "x"], [0, 1.5], [1, 2.5]])
    assert open_table(path).table.columns == ["column_1", "x"]


def test_the_command_line_skips_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[list[Any]] = [["x", "y"], *([k / 7, (k * k % 5) / 3] for k in range(30))]
    path = write(tmp_path / "t.csv", [["Results", None], *rows])
    assert main(["learn", str(path), "--skip-rows", "1", "--explain"]) == 0
    assert "y  continuous" in capsys.readouterr().out
