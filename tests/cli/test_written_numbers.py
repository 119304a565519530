"""The command line reads numbers in text files by the rules of tables of text in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.tables.read_table import open_table
from isthmus.tables.text_files import TextFormat

RNG = np.random.default_rng(0)
X = RNG.normal(size=400)
Y = X + 0.3 * RNG.normal(size=400)
PAY = (1000 + 250 * X).astype(int).clip(100)
GERMAN = [f"{v:,}".replace(",", ".") for v in PAY]
COMMAS = [f"{v:.1f}".replace(".", ",") for v in Y]
LIBRARIES = pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])


def written(path: Path, **columns: list[str]) -> Path:
    rows = [";".join(columns), *map(";".join, zip(*columns.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return path


def column(path: Path, name: str, given: TextFormat = TextFormat()) -> list[object]:
    import narwhals as nw

    table = nw.from_native(open_table(path, text_format=given).table, eager_only=True)
    return list(table.get_column(name).to_list())


@LIBRARIES
def test_one_column_settles_the_decimal_mark(
    tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(library)
    monkeypatch.setattr("isthmus.tables.read_table._LIBRARIES", (library,))
    path = written(tmp_path / "t.csv", pay=["", *GERMAN[1:]], y=COMMAS)
    assert "decimal mark: comma (recognised)" in open_table(path).description
    assert column(path, "pay")[1:] == PAY[1:].tolist()
    assert column(path, "y")[0] == round(Y[0], 1)
    points = written(tmp_path / "p.csv", pay=GERMAN, y=[f"{v:.1f}" for v in Y])
    assert column(points, "pay") == [float(text) for text in GERMAN]


def test_an_unclear_mark_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    groups = np.where(Y > 0, "hi", "lo").tolist()
    path = written(tmp_path / "t.csv", pay=GERMAN, g=groups, h=groups[1:] + groups[:1])
    assert column(path, "pay") == GERMAN
    assert ist.Frame(open_table(path).table).reading().left_out == ("pay",)
    assert main(["learn", str(path), "--output", str(tmp_path / "o.json")]) == 0
    said = " ".join("".join(capsys.readouterr()).split())
    assert any("decimal mark: not clear" in line for line in open_table(path).description)
    assert "convert column 'pay' to numbers, or on the command line" in said
    assert column(path, "pay", TextFormat(decimal=",")) == PAY.tolist()
    assert column(path, "pay", TextFormat(decimal=".")) == [float(text) for text in GERMAN]


def test_points_far_below_are_seen(tmp_path: Path) -> None:
    cells = [str(100 + k % 900) for k in range(1500)] + ["1.031"]
    path = written(tmp_path / "t.csv", pay=cells, g=["a", "b"] * 750 + ["a"])
    assert column(path, "pay") == cells


@LIBRARIES
def test_codes_with_leading_zeros_stay_text(
    tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(library)
    monkeypatch.setattr("isthmus.tables.read_table._LIBRARIES", (library,))
    codes = [f"{k % 30:03}" for k in range(400)]
    path = written(tmp_path / "t.csv", code=codes, y=COMMAS)
    assert column(path, "code") == codes
    assert ist.Frame(open_table(path).table).schema()["code"].kind is ist.Kind.DISCRETE
    wanted = ist.Frame(open_table(path).table, kinds={"code": "continuous"})
    assert wanted.rows()[:, 0].max() == 29
    late = written(tmp_path / "l.csv", code=["123"] * 20_000 + ["007"], y=["1,5"] * 20_001)
    assert column(late, "code")[-1] == "007"
    plain = written(tmp_path / "n.csv", n=["0", "10", "0,5"], y=["1", "2", "3"])
    assert column(plain, "n") == [0, 10, 0.5]
