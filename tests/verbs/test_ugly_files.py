"""Files as they are: each ends in a right graph or in one sentence of advice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.errors import DataWarning, IsthmusError
from isthmus.results import ReadAs
from isthmus.tables.read_table import read_table

N = 400
LIBRARIES = ["polars", "pandas", "pyarrow"]


def numbers() -> dict[str, Any]:
    x = np.random.default_rng(1).normal(size=N)
    return {"x": x, "y": x + 0.7 * np.random.default_rng(2).normal(size=N)}


def adjacent(solution: ist.Solution) -> set[frozenset[str]]:
    return {frozenset(edge) for edge in solution.dag.edges}


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    pytest.importorskip(request.param)
    monkeypatch.setattr("isthmus.tables.read_table._LIBRARIES", (request.param,))
    return str(request.param)


FILES = {
    "semicolons and decimal commas": "x;y;who\n{x:.4f};{y:.4f};p{k}\n",
    "tabs": "x\ty\twho\n{x:.4f}\t{y:.4f}\tp{k}\n",
    "bars": "x|y|who\n{x:.4f}|{y:.4f}|p{k}\n",
    "commas in quotes": 'x,y,who\n{x:.4f},{y:.4f},"p,{k}"\n',
}


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
@pytest.mark.usefixtures("library")
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_every_ugly_file(name: str, tmp_path: Path) -> None:
    head, line = FILES[name].splitlines()
    data = numbers()
    rows = [line.format(x=x, y=y, k=k) for k, (x, y) in enumerate(zip(*data.values(), strict=True))]
    body = "\n".join(rows)
    if "commas" in name and ";" in head:
        body = body.replace(".", ",")
    path = tmp_path / "table.csv"
    path.write_text(f"{head}\n{body}\n", encoding="utf-8")
    solution = ist.learn(read_table(path))
    assert adjacent(solution) == {frozenset({"x", "y"})}
    assert solution.reading["who"].read_as is ReadAs.IDENTIFIER


@pytest.mark.usefixtures("library")
def test_words_for_missing_cells_of_files(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + "1.5,u\nNA,v\n2.5,?\n" * 5, encoding="utf-8")
    with pytest.raises(IsthmusError, match=r"'a' \(5\), 'b' \(5\)"):
        ist.learn(read_table(path))
    assert "?" in str(read_table(path, missing=("", "NA")))


def plain() -> str:
    data = zip(*numbers().values(), strict=True)
    return "x,y,c\n" + "".join(f"{x:.4f},{y:.4f},l{k % 3}\n" for k, (x, y) in enumerate(data))


DAMAGED: dict[str, Callable[[], bytes]] = {
    "blank lines": lambda: plain().replace("\n", "\n\n").encode() + b"\n\n",
    "rows of separators": lambda: plain().encode() + b",,\n,,\n",
    "the index of pandas": lambda: "".join(
        f"{k - 1 if k else ''},{line}" for k, line in enumerate(plain().splitlines(keepends=True))
    ).encode(),
    "a separator at the end": lambda: plain().replace("\n", ",\n").encode(),
    "two columns without a name": lambda: plain().replace("\n", ",,\n").encode(),
    "spaces around cells": lambda: plain().replace(",", " , ").encode(),
    "spaces between cells": lambda: plain().replace(",", "   ").encode(),
    "carriage returns": lambda: plain().replace("\n", "\r").encode(),
    "line separators in cells": lambda: plain().replace("l1", "l\u2028\x85 1").encode(),
    "a byte order mark": lambda: b"\xef\xbb\xbf" + plain().replace(",", " ,").encode(),
    "UTF-16": lambda: plain().encode("utf-16"),
    "Latin letters of Windows": lambda: plain().replace("l1", "été").encode("cp1252"),
    "line breaks in quotes": lambda: plain().replace("l1", '"l\n\n1"').encode(),
}


@pytest.mark.long
@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.usefixtures("library")
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_damaged_files_are_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(DAMAGED[name]())
    solution = ist.learn(read_table(path))
    assert adjacent(solution) == {frozenset({"x", "y"})}
    assert set(solution.dag.nodes) == {"x", "y", "c"}
    assert ist.summarise(read_table(path)).n == N
    if name == "the index of pandas":
        assert solution.reading["column_1"].read_as is ReadAs.IDENTIFIER
    if name == "two columns without a name":
        assert solution.reading.left_out == ("column_4", "column_5")
        assert solution.reading["column_5"].reason == "it has no values"


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "a title": (lambda: b"My table\n\n" + plain().encode(), "Skip lines above the names"),
    "a short row": (lambda: plain().encode() + b"1.0,2.0\n", "Row 402 .* has 2 cells.* Mend"),
    "an open quote": (lambda: plain().replace("l1", '"l1', 1).encode(), "not closed. Mend"),
    "a picture": (lambda: b"\x89PNG\r\n\x1a\n" + bytes(99), "not a text file"),
    "a web page": (lambda: b"<html><body>404</body></html>", "looks like a web page"),
    "JSON": (lambda: b'[{"x": 1, "y": 2}]', "looks like JSON"),
    "nothing": (lambda: b"\n\n", "is empty. Give a file"),
    "names only": (lambda: b"x,y\n", "no rows.*Give a file"),
    "the same name twice": (lambda: plain().replace("x,y", "x,x").encode(), "unique.*Rename"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.usefixtures("library")
def test_other_files_are_refused_with_advice(name: str, tmp_path: Path) -> None:
    content, advice = REFUSED[name]
    path = tmp_path / "table.csv"
    path.write_bytes(content())
    with pytest.raises(IsthmusError, match=advice):
        ist.learn(read_table(path))


AMOUNTS = {
    "thousands": '"{x:,.2f}"',
    "percent": "{x:.1f}%",
    "a currency": "${x:.2f}",
    "one word": "{x:.3f}",
}


@pytest.mark.long
@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.usefixtures("library")
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
def test_numbers_that_are_text_are_read_or_named(name: str, tmp_path: Path) -> None:
    x = 1e4 * numbers()["x"]
    cells = [AMOUNTS[name].format(x=v) for v in x]
    if name == "one word":
        cells[7] = "unknown"
    path = tmp_path / "table.csv"
    rows = "".join(f"{cell},{v:.3f}\n" for cell, v in zip(cells, x, strict=True))
    path.write_text("amount,y\n" + rows, encoding="utf-8")
    solution = ist.learn(read_table(path))
    if name == "one word":
        assert solution.dag.nodes == ("y",)
        assert "text that looks like numbers" in solution.reading["amount"].reason
        assert "'unknown'" in solution.reading["amount"].reason
        assert "convert column 'amount' to numbers" in " ".join(solution.notes).lower()
    else:
        assert solution.dag.edges
        assert "numbers written as text" in solution.reading["amount"].reason


def test_the_command_line_says_what_it_did(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(plain().partition("\n")[2], encoding="utf-8")
    assert main(["learn", str(path)]) == 0
    seen = capsys.readouterr()
    assert "note: The first line of 'table.csv' has numbers as names" in seen.err
    assert "--no-header" in seen.err
    assert main(["learn", str(path), "--no-header"]) == 0
    assert "column_2 — column_1" in capsys.readouterr().out
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(99))
    assert main(["learn", str(path)]) == 11
    assert "not a text file" in capsys.readouterr().err
    path.write_text("1.5,2.5\n3.5,4.5\n", encoding="utf-8")
    with pytest.warns(DataWarning, match="numbers as names"):
        read_table(path)
