"""Files and databases that a table is read from, and what is said about them."""

from __future__ import annotations

import gzip
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from isthmus.errors import ArgumentError, DataError, IsthmusError, MissingExtraError, SchemaError
from isthmus.tables.read_table import open_table, read_table
from isthmus.tables.text_files import TextFormat


def workbook(path: Path, sheets: dict[str, list[list[object]]]) -> Path:
    """Write a minimal workbook."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"

    def cell(value: object) -> str:
        if isinstance(value, str):
            return f'<c t="inlineStr"><is><t>{value}</t></is></c>'
        return "<c/>" if value is None else f"<c><v>{value}</v></c>"

    names = list(enumerate(sheets, start=1))
    parts = "".join(f'<sheet name="{n}" sheetId="{i}" r:id="r{i}"/>' for i, n in names)
    links = "".join(
        f'<Relationship Id="r{i}" Type="{office}/worksheet" Target="worksheets/s{i}.xml"/>'
        for i, _ in names
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types">'
            '<Default Extension="xml" ContentType="application/xml"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{parts}</sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships">{links}</Relationships>',
        )
        for i, name in names:
            rows = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in sheets[name])
            archive.writestr(
                f"xl/worksheets/s{i}.xml",
                f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>',
            )
    return path


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-8-sig", "utf-16"])
def test_how_a_text_is_written_is_recognised_and_said(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("größe;ort;m\n1,5;Köln;.\n2,5;-;3\n".encode(encoding))
    file = open_table(path)
    said = "\n".join(file.description)
    assert file.table.rows() == [(1.5, "Köln", None), (2.5, "-", 3)]
    assert file.table.columns == ["größe", "ort", "m"]
    assert "separator: semicolon (recognised)" in said
    assert "decimal mark: comma (recognised)" in said
    assert f"encoding: {encoding.removesuffix('-sig')} (recognised)" in said
    assert "missing values: '.' (recognised)" in said


@pytest.mark.parametrize("library", ["polars", "pandas", "pyarrow"])
def test_what_is_given_is_not_recognised(
    tmp_path: Path, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import narwhals as nw

    monkeypatch.setattr("isthmus.tables.read_table._LIBRARIES", (library,))
    path = tmp_path / "t.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write("1,5:ä:NA\n2,5:ö:-9\n".encode("latin-1"))
    given = TextFormat(":", ",", "latin-1", ("-9",), header=False)
    table = nw.from_native(open_table(path, text_format=given).table, eager_only=True)
    assert table.columns == ["column_1", "column_2", "column_3"]
    assert table.get_column("column_1").to_list() == [1.5, 2.5]
    assert table.get_column("column_2").to_list() == ["ä", "ö"]
    assert table.get_column("column_3").is_null().to_list() == [False, True]


def test_marks_that_are_words_elsewhere_stay(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,-\n-,x\n")
    assert read_table(path).rows() == [("1", "-"), ("-", "x")]


def test_arrow_parquet_and_workbooks(tmp_path: Path) -> None:
    import polars as pl

    table = pl.DataFrame({"a": [1.5, 2.5, None], "b": ["x", "y", "x"]})
    table.write_parquet(tmp_path / "t.parquet")
    for name in ("t.arrow", "t.feather", "t.ipc"):
        table.write_ipc(tmp_path / name)
    for name in ("t.parquet", "t.arrow", "t.feather", "t.ipc"):
        assert read_table(tmp_path / name).equals(table)
    rows: list[list[object]] = [["a", "b"], [1.5, "x"], [2.5, "y"]]
    book = workbook(tmp_path / "t.xlsx", {"one": rows, "two": [["a", "a"], [1, 2]]})
    file = open_table(book)
    assert file.table.rows() == [(1.5, "x"), (2.5, "y")]
    assert file.description == ("sheet: one, the first of 2",)
    with pytest.raises(SchemaError, match="more than once"):
        open_table(book, table="two")
    with pytest.raises(SchemaError, match="Its sheets: one, two"):
        open_table(book, table="three")


def test_sheets_that_hold_no_table_are_named(tmp_path: Path) -> None:
    rows: list[list[object]] = [["a", "b"], [1.5, "x"], [2.5, "y"]]
    sheets: dict[str, list[list[object]]]
    sheets = {"cover": [], "title": [["Results of 2024"], *rows], "data": rows}
    book = workbook(tmp_path / "t.xlsx", sheets)
    with pytest.raises(DataError, match=r"'cover' of 't.xlsx' is empty.* cover, title, data"):
        open_table(book)
    with pytest.raises(DataError, match=r"one cell, 'Results of 2024'.*--skip-rows 1"):
        open_table(book, table="title")
    assert open_table(book, table="data").table.columns == ["a", "b"]


def test_a_database_without_a_driver_names_its_package() -> None:
    pytest.importorskip("ibis")
    with pytest.raises(MissingExtraError, match=r"pip install 'ibis-framework\[mysql\]'"):
        open_table("mysql://me:hunter2@localhost/none")


def test_tables_of_databases_stay_there(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "one.duckdb")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS a, 2 AS b")
        connection.execute("CREATE TABLE wards AS SELECT 1 AS c")
    with pytest.raises(SchemaError, match="visits, wards"):
        open_table(tmp_path / "one.duckdb")
    file = open_table(tmp_path / "one.duckdb", table="visits", drop=["b"])
    assert file.table.fetchall() == [(1,)]
    assert file.description == ("table: visits",)


def test_urls_of_databases(tmp_path: Path) -> None:
    pytest.importorskip("ibis")
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection:
        connection.execute("CREATE TABLE visits AS SELECT 1 AS a, 2 AS b")
        connection.execute("CREATE TABLE wards AS SELECT 1 AS c")
        connection.commit()
    url = f"sqlite://{tmp_path}/t.db"
    assert open_table(url, table="wards").table.columns == ("c",)
    with pytest.raises(SchemaError, match=r"'beds'.*visits, wards"):
        open_table(url, table="beds")
    with pytest.raises(SchemaError, match=r"visits, wards. Name one"):
        open_table(url)


def test_passwords_are_not_shown() -> None:
    # Nothing listens on port 1; without the driver, its extra is named instead.
    with pytest.raises(IsthmusError) as told:
        open_table("postgres://me:hunter2@127.0.0.1:1/none")
    assert "postgres://127.0.0.1:1/none" in str(told.value)
    assert "hunter2" not in str(told.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [("", "is empty"), ("a,b\n1,2\n1,2,3\n", "Row 3 of 't.csv' has 3 cells")],
)
def test_texts_that_are_no_tables(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=says):
        read_table(path)


def test_formats_that_cannot_be() -> None:
    with pytest.raises(ArgumentError, match="one character"):
        TextFormat(separator=";;")
    with pytest.raises(ArgumentError, match="encoding 'utf-9' is unknown"):
        TextFormat(encoding="utf-9")
    with pytest.raises(ArgumentError, match="comma cannot both"):
        TextFormat(separator=",", decimal=",")
