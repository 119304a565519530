"""Seventy ways of bad input: each ends in one sentence that says what to do, and its own code."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import pytest

from isthmus.cli import ExitCode, main

USAGE, FILE, DATA = ExitCode.USAGE, ExitCode.FILE, ExitCode.DATA
SCHEMA, GRAPH, FORMAT = ExitCode.SCHEMA, ExitCode.GRAPH, ExitCode.FORMAT
MISMATCH, ARGUMENT = ExitCode.MISMATCH, ExitCode.ARGUMENT

CASES: list[tuple[str, ExitCode, str]] = [
    # What is typed
    ("lern good.csv", USAGE, "Did you mean learn?"),
    ("", USAGE, "required: COMMAND"),
    ("learn", USAGE, "For instance: isthmus learn"),
    ("learn good.csv other.csv", USAGE, "one argument too many"),
    ("learn good.csv --sore BIC", USAGE, "Did you mean --score?"),
    ("learn good.csv --kind a=days", USAGE, "--kind. Known are: "),
    ("learn good.csv --score bdue", USAGE, "Did you mean BDeu?"),
    ("learn good.csv --score 'BDeu(es=1)'", USAGE, "Did you mean ess?"),
    ("learn good.csv --score 'BDeu('", USAGE, "must have the form NAME"),
    ("learn good.csv --score 'BDeu(ess=-1)'", USAGE, "ess"),
    ("learn good.csv --search xgess", USAGE, "Did you mean XGES?"),
    ("learn good.csv --seed x", USAGE, "whole number"),
    ("learn good.csv --time-limit -3", USAGE, "positive number of seconds"),
    ("learn good.csv --missing Drop", USAGE, "DropRows"),
    ("learn good.csv --forbidden a", USAGE, "expected 2 arguments"),
    ("sample good.csv --draws 0", USAGE, "at least 1"),
    ("query net.bif --target a --given b", USAGE, "VARIABLE=VALUE"),
    ("simulate", USAGE, "Give either a network or --nodes"),
    ("simulate --nodes 5 --model liner -o x.csv", USAGE, "Did you mean linear?"),
    ("datasets write aisa -o x.csv", USAGE, "Did you mean asia?"),
    ("completion powershel", USAGE, "Known are: bash"),
    ("learn good.csv -o ./good.csv", USAGE, "Give the output another name"),
    ("fit graph.dot good.csv -o graph.dot", USAGE, "would replace it"),
    (f"learn good.csv -o graph.dot --forbidden {'x' * 300} a", GRAPH, "data do not have"),
    ("coordinator new lead --host ''", USAGE, "such as coordinator.example.org"),
    ("simulate --nodes 100000000 --rows 5", USAGE, "more than 100,000"),
    ("simulate --nodes 3 --degree 99", USAGE, "a --degree of at most 2"),
    ("simulate --nodes 3 --degree -1 --shape scale-free", USAGE, "0 to 2 neighbours"),
    # Files
    ("learn nowhere.csv", FILE, "Check the name"),
    ("learn folder.csv", FILE, "is a folder"),
    ("learn good.csv -o nowhere/net.bif", FILE, "Create it first"),
    ("compare net.bif nowhere.bif", FILE, "Check the name"),
    ("ledger show folder.csv", FILE, "Name the private folder"),
    # Content of tables
    ("learn letter.docx", DATA, "save it as 'letter.csv'"),
    ("learn records.json", DATA, "pandas.read_json('records.json').to_csv('records.csv'"),
    ("learn empty.csv", DATA, "is empty"),
    ("learn header.csv", DATA, "row"),
    ("learn ragged.csv", DATA, "Mend the row"),
    ("learn broken.csv.gz", DATA, "cannot be read"),
    ("learn broken.parquet", DATA, "cannot be read"),
    ("learn broken.xlsx", DATA, "Save it again"),
    ("learn holes.csv", ExitCode.MISSING_VALUES, "'a'"),
    ("learn good.csv --separator ';;'", ARGUMENT, "one character"),
    ("learn good.csv --encoding utf-9", ARGUMENT, "Give utf-8"),
    ("learn twice.csv", SCHEMA, "Rename the columns"),
    ("learn good.csv --drop ag", SCHEMA, "it has ['a', 'b']"),
    ("learn good.csv --continuous a --discrete a", SCHEMA, "both"),
    ("learn good.csv --table t", SCHEMA, "leave 't' out"),
    ("learn good.csv --dates a dayz", SCHEMA, "Did you mean days?"),
    # Scores, graphs and networks
    ("learn good.csv --score BGe --discrete a", MISMATCH, "continuous"),
    ("learn good.csv --required a b --forbidden a b", GRAPH, "both required and forbidden"),
    ("learn good.csv --tier a c", GRAPH, "'c'"),
    ("compare net.bif dataset:sprinkler", GRAPH, "nodes"),
    ("query net.bif --target c", GRAPH, "Known are: a, b"),
    ("query net.bif --target a --given b=maybe", SCHEMA, "Known are"),
    ("query graph.dot --target a", MISMATCH, "isthmus fit graph.dot"),
    ("learn good.csv -o net.doc", FORMAT, "ends in one of"),
    ("compare net.bif dataset:aisa", FORMAT, "Did you mean asia?"),
    ("query broken.bif --target a", FORMAT, "broken.bif"),
    ("query letter.docx --target a", FORMAT, "Give a network"),
    ("study show folder.csv", FILE, "study.toml"),
    # Odd ones
    ("learn folder", FILE, "is a folder"),
    ("learn stream.csv", FILE, "read only once"),
    ("learn -", FILE, "Save the table to a file"),
    ("learn dangling.csv", FILE, "Check the name"),
    ("learn good.csv -o folder.html", FILE, "is a folder"),
    ("learn sqlite://absent.db", FILE, "There is no file 'absent.db'"),
    ("coordinator run folder folder", FILE, "study.toml'. Check the name"),
    ("learn https://example.org/table.csv", DATA, "Download it"),
    ("learn blank.csv", DATA, "is empty"),
    ("learn page.csv", DATA, "looks like a web page"),
    ("learn nul.csv", DATA, "NUL bytes"),
    ("learn utf16le.csv", DATA, "utf-16-le"),
    ("learn infinite.csv", DATA, "finite"),
    ("learn broken.feather", DATA, "its extension tells its format"),
    ("learn broken.duckdb", DATA, "write it again"),
    ("learn locked.duckdb", DATA, "Close it, or copy the file"),
    ("learn bare.duckdb", SCHEMA, "has no tables"),
    ("learn identifier.csv", SCHEMA, "for instance --discrete 'a'"),
    ("learn holes.csv --score BGe", ExitCode.MISSING_VALUES, "--missing with DropRows()"),
    ("simulate dataset:asia --rows 99999999999999", ExitCode.MEMORY, "Use fewer rows"),
]
BIF = """network n {}
variable a { type discrete [ 2 ] { yes, no }; }
variable b { type discrete [ 2 ] { yes, no }; }
probability ( a ) { table 0.3, 0.7; }
probability ( b | a ) { (yes) 0.9, 0.1; (no) 0.2, 0.8; }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    import duckdb

    path = tmp_path_factory.mktemp("bad")
    with chdir(path):
        good = "a,b\n" + "".join(f"{i * 0.37 % 1:.3f},{i * 0.61 % 1:.3f}\n" for i in range(40))
        for name, text in {
            "good.csv": good,
            "empty.csv": "",
            "header.csv": "a,b\n",
            "ragged.csv": "a,b\n1,2\n1,2,3\n",
            "holes.csv": "a,b\n1.5,2.5\n,3.5\n2.5,1.5\n",
            "twice.csv": "a,a\n1,2\n2,1\n",
            "broken.parquet": "no table",
            "broken.xlsx": "no table",
            "broken.csv.gz": "no gzip",
            "letter.docx": "Dear all",
            "records.json": "[{}]",
            "net.bif": BIF,
            "broken.bif": "network {",
            "graph.dot": 'digraph dag {\n  "a";\n  "b";\n  "a" -> "b";\n}\n',
        }.items():
            Path(name).write_text(text)
        for name, content in {
            "blank.csv": b"\n\n\n",
            "page.csv": b"<html><body>404 Not found</body></html>\n",
            "nul.csv": good.replace("0.5", "0\0.5").encode(),
            "utf16le.csv": good.encode("utf-16-le"),
            "infinite.csv": (good + "1e400,1\n").encode(),
            "identifier.csv": ("a\n" + "".join(f"{i}\n" for i in range(50))).encode(),
            "broken.feather": b"no table",
            "broken.duckdb": b"no table",
        }.items():
            Path(name).write_bytes(content)
        duckdb.connect("bare.duckdb").close()
        Path("folder").mkdir()
        Path("folder.html").mkdir()
        Path("dangling.csv").symlink_to("nowhere")
        if os.name != "nt":
            os.mkfifo("stream.csv")
        Path("cut.csv.gz").write_bytes(gzip.compress(good.encode())[:20])
        Path("folder.csv").mkdir()
        with locked("locked.duckdb"):
            yield path


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Have a database open in another process."""
    code = f"import duckdb; c = duckdb.connect({name!r}); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        yield
        other.communicate("\n")


def test_there_are_seventy() -> None:
    assert len({line for line, _, _ in CASES}) >= 70


@pytest.mark.long
@pytest.mark.parametrize(("line", "code", "says"), CASES)
def test_bad_input_ends_in_one_sentence(
    line: str, code: ExitCode, says: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if os.name == "nt" and "stream" in line:
        pytest.skip("Windows has no such files")
    assert main(shlex.split(line)) == code, capsys.readouterr().err
    out, err = capsys.readouterr()
    told = [text for text in err.splitlines() if not text.startswith("note: ")]
    assert len(told) == 1, err
    assert told[0].startswith(f"isthmus: error {int(code)} (")
    assert says in told[0]
    assert out == ""


def test_errors_are_in_the_json_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for line, code, says in (CASES[4], CASES[24]):
        assert main([*shlex.split(line), "--json"]) == code
        told = json.loads(capsys.readouterr().out)
        assert told["exit_code"] == code
        assert says in told["error"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("redirected", "code", "says"),
    [
        ("completion bash > /dev/full", FILE, "disk is full"),
        ("completion bash --json > /dev/full", FILE, "disk is full"),
        ("completion bash >&-", ExitCode.DONE, ""),
        ("simulate --nodes 5 --rows 50000 | head -1 > /dev/null", ExitCode.DONE, ""),
    ],
)
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full disk to try")
def test_output_that_cannot_be_written(
    redirected: str, code: ExitCode, says: str, folder: Path
) -> None:
    """A full disk is an error, a closed pipe is not."""
    command = f"set -o pipefail; {sys.executable} -m isthmus.cli {redirected}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    told = [t for t in done.stderr.splitlines() if t.startswith(("isthmus:", "Traceback"))]
    assert done.returncode == code, done.stderr
    assert len(told) == (1 if says else 0), done.stderr
    assert says in done.stderr
