"""More ways of bad input, odd but good tables, and odd terminals and disks."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from isthmus.cli import ExitCode, main
from isthmus.cli.result_files import whole_file

USAGE, FILE, DATA = ExitCode.USAGE, ExitCode.FILE, ExitCode.DATA
SCHEMA, GRAPH, FORMAT = ExitCode.SCHEMA, ExitCode.GRAPH, ExitCode.FORMAT
MISMATCH, ARGUMENT, STUDY = ExitCode.MISMATCH, ExitCode.ARGUMENT, ExitCode.STUDY
NUMBERS = [f"{i * 0.37 % 1:.3f},{i * 0.61 % 1:.3f}" for i in range(40)]
RELATED = [f"{i * 0.37 % 1:.3f},{i * 0.37 % 1 + i % 3 * 0.1:.3f}" for i in range(40)]

BAD: list[tuple[str, ExitCode, str]] = [
    # Names of files
    ("learn ''", FILE, "Name a file with a table"),
    ("learn loop.csv", FILE, "Check the name"),
    ("learn noextension", DATA, "does not end in"),
    ("learn \udcff.csv", DATA, "Rename the file"),
    ("learn good.csv -o ''", FORMAT, "Give a name that ends in"),
    ("learn good.csv -o /dev/null", FORMAT, "Give a name that ends in"),
    ("learn good.csv -o net.bif/x.html", FILE, "Create it first"),
    ("simulate net.bif --rows 5 -o x.docx", FORMAT, ".parquet"),
    ("study show good.csv", FILE, "Name a folder"),
    ("site new good.csv --name a --organisation b", FILE, "Give another name"),
    # What is in tables
    ("learn packed.csv", DATA, "Let it end in .csv.gz"),
    ("learn cut.csv.gz", DATA, "Check that the file is complete"),
    ("learn utf16be.csv", DATA, "(--encoding)"),
    ("learn quote.csv", DATA, "Mend the row"),
    ("learn two-headers.csv", SCHEMA, "1 of 41 cells is not a number, such as 'a'"),
    ("learn zero.parquet", DATA, "Check that the file is complete"),
    ("learn no-rows.parquet", DATA, "has no rows"),
    ("learn nested.parquet", SCHEMA, "or leave the column out"),
    ("learn bytes.parquet", SCHEMA, "or leave the column out"),
    ("learn zoned.parquet", SCHEMA, "--dates 'a' days"),
    ("learn clock.parquet", SCHEMA, "hours since midnight"),
    ("learn sqlite://good.csv", DATA, "Check the URL"),
    # Options
    ("learn good.csv --encoding base64", ARGUMENT, "Give utf-8"),
    ("learn good.csv --encoding utf-16", DATA, "Give another"),
    ("learn good.csv --separator a", DATA, "has 1 cell, and the first has 2"),
    ("learn good.csv --skip-rows 9999", DATA, "is empty"),
    ("learn good.csv --no-header", SCHEMA, "--discrete 'column_1'"),
    ("learn good.csv --drop a --drop b", DATA, "no columns"),
    ("learn good.csv --continuous zzz", SCHEMA, "--dates names ['zzz']"),
    ("learn good.csv --score BIC --continuous a", MISMATCH, "read a column: --discrete 'a'"),
    ("learn good.csv --tier a --tier a", GRAPH, "one tier only"),
    ("learn good.csv --required a a", GRAPH, "cannot cause itself"),
    ("learn good.csv --required a b --required b a", GRAPH, "Remove or reverse"),
    ("learn good.csv --time-limit nan", USAGE, "positive number of seconds"),
    ("coordinator draft l s --address here", USAGE, "coordinator.example.org:9092"),
    ("site join home study --data good.csv --coordinator h:0", USAGE, "HOST:PORT"),
    ("party run home study --data good.csv --connect :9300", USAGE, "HOST:PORT"),
    ("study variables -o v.toml --continuous a 5 1", STUDY, "ascending order"),
    # Networks
    ("query sums.bif --target a", FORMAT, "must sum to one"),
    ("query empty.bif --target a", FORMAT, "there is no variable"),
    ("query net.bif --target a --given a=yes", ARGUMENT, "in one only"),
    ("query net.bif --target a --given b=yes --given b=no", SCHEMA, "Give one"),
    ("compare net.bif cut.json", FORMAT, "Line 1 of the JSON"),
    ("compare net.bif list.json", FORMAT, "must be an object"),
    ("compare net.bif cycle.csv", GRAPH, "Remove or reverse"),
]
BIF = """network n {}
variable a { type discrete [ 2 ] { yes, no }; }
variable b { type discrete [ 2 ] { yes, no }; }
probability ( a ) { table 0.3, 0.7; }
probability ( b | a ) { (yes) 0.9, 0.1; (no) 0.2, 0.8; }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    import polars as pl

    path = tmp_path_factory.mktemp("odd")
    good = "\n".join(["a,b", *NUMBERS])
    b = [float(row.split(",")[1]) for row in NUMBERS]
    with chdir(path):
        for name, content in {
            "good.csv": good.encode(),
            "noextension": good.encode(),
            "packed.csv": gzip.compress(good.encode()),
            "cut.csv.gz": gzip.compress(good.encode())[:60],
            "utf16be.csv": good.encode("utf-16-be"),
            "quote.csv": ("\n".join(["a,b", '"0.1,0.2', *NUMBERS])).encode(),
            "two-headers.csv": ("a,b\n" + good).encode(),
            "zero.parquet": b"",
            "net.bif": BIF.encode(),
            "sums.bif": BIF.replace("0.9, 0.1", "0.9, 0.9").encode(),
            "empty.bif": b"",
            "cut.json": b'{"nodes": ["a"',
            "list.json": b"[1, 2]",
            "cycle.csv": b"from,to\na,b\nb,a\n",
        }.items():
            Path(name).write_bytes(content)
        Path("loop.csv").symlink_to("loop.csv")
        tables: dict[str, list[object]] = {
            "no-rows": [],
            "nested": [{"x": 1}] * 40,
            "bytes": [b"x"] * 40,
            "zoned": [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)] * 40,
            "clock": [dt.time(i % 24) for i in range(40)],
        }
        for name, values in tables.items():
            pl.DataFrame({"a": values, "b": b[: len(values)]}).write_parquet(f"{name}.parquet")
        yield path


@pytest.mark.long
@pytest.mark.parametrize(("line", "code", "says"), BAD)
def test_bad_input_ends_in_one_sentence(
    line: str, code: ExitCode, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(folder.iterdir())
    assert main(shlex.split(line)) == code, capsys.readouterr().err
    out, err = capsys.readouterr()
    assert err.startswith(f"isthmus: error {int(code)} (")
    assert says in err
    assert (err.count("\n"), out) == (1, "")
    assert sorted(folder.iterdir()) == before


@pytest.mark.long
def test_errors_are_in_the_json_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line, code, says in BAD[1::4]:
        assert main([*shlex.split(line), "--json"]) == code
        told = json.loads(capsys.readouterr().out)
        assert told["exit_code"] == code
        assert says in told["error"]


def test_there_are_forty() -> None:
    assert len({line for line, _, _ in BAD}) >= 40


@pytest.mark.long
@pytest.mark.parametrize(
    ("header", "rows", "encoding", "shown"),
    [
        ("a,b", RELATED, "utf-8-sig", "1 edge"),
        ("a,b", RELATED, "utf-16", "1 edge"),
        ("größe,b", RELATED, "latin-1", "größe"),
        ("😀,b", RELATED, "utf-8", "😀"),
        ("a\x1b[31m,b", RELATED, "utf-8", "a�[31m"),
        ("\u202eabc,b", RELATED, "utf-8", "�abc"),
        ('"first\nline",b', RELATED, "utf-8", "first line"),
        (f"{'x' * 3000},b", RELATED, "utf-8", f"{'x' * 3000}"),
        ("a,b", [f"{10**30 * i},{i % 7}.5" for i in range(40)], "utf-8", "2 variables"),
        ("a,b", [f"{x},{y}" for x in ("TRUE", "false") for y in "YN"] * 9, "utf-8", "2 variables"),
        ("a,b", ["1,2"] * 9, "utf-8", "Constant columns: 'a' and 'b'"),
        ("a,b", [f"{row.split(',')[0]}," for row in NUMBERS], "utf-8", "b (it has no values)"),
        ("a,b", NUMBERS[:1], "utf-8", "1 row for 2 variables"),
    ],
)
def test_odd_tables_are_read(
    header: str,
    rows: list[str],
    encoding: str,
    shown: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "odd.csv"
    path.write_bytes("\n".join([header, *rows]).encode(encoding))
    assert main(["learn", str(path)]) == ExitCode.DONE
    told = capsys.readouterr()
    out = told.out + told.err  # notes are printed once, to standard error
    assert shown in out
    assert "\x1b" not in out
    assert "\u202e" not in out


def write_half(path: Path) -> None:
    with whole_file(path) as place:
        place.write_text("ha")
        raise OSError(28, "No space left on device", str(place))


def test_half_a_file_is_not_left_behind(tmp_path: Path) -> None:
    path, link = tmp_path / "x.csv", tmp_path / "link.csv"
    path.write_text("old")
    path.chmod(0o600)
    link.symlink_to(path)
    with pytest.raises(OSError, match="link"):
        write_half(link)
    assert path.read_text() == "old"
    with whole_file(link) as place:
        place.write_text("new")
    assert (path.read_text(), link.is_symlink()) == ("new", True)
    assert os.name == "nt" or path.stat().st_mode & 0o777 == 0o600
    assert sorted(tmp_path.iterdir()) == [link, path]


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_streams_that_are_closed_or_know_no_arrows(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["größe,b", *RELATED]), encoding="utf-8")
    command = f"{sys.executable} -m isthmus.cli learn"
    script = f"""
    export PYTHONIOENCODING=ascii
    {command} {path} --json 2> people.txt || exit 1
    {command} nowhere.csv >&- 2>&-
    test $? = 10 || exit 2
    """
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert sorted(*json.loads(done.stdout)["edges"]) == ["b", "größe"]
    people = (tmp_path / "people.txt").read_text()
    assert "gr\\xf6\\xdfe -- b" in people or "b -- gr\\xf6\\xdfe" in people
