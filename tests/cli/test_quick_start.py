"""Help, version and completion come at once: they import the parser and no part of the library."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from isthmus import datasets
from isthmus.cli import inputs, main
from isthmus.cli.inputs import DATASETS
from isthmus.statistics import Kind
from isthmus.tables import TimeUnit

# The parser, its errors, the folder of tables (without reading any), and how packages
# are lazy.
LIGHT = {"cli", "errors", "hooks", "lazy", "tables"}


@pytest.mark.long
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["completion", "bash"]])
def test_what_help_imports(words: list[str]) -> None:
    code = (
        "import sys\nfrom isthmus.cli import main\n"
        f"try: main({words!r})\nexcept SystemExit: pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = done.stderr.split()
    parts = {name.split(".")[1] for name in names if name.startswith("isthmus.")}
    assert "cli" in parts  # the list is that of the process
    assert parts <= LIGHT
    assert not {"numpy", "scipy", "polars", "narwhals", "jinja2"} & set(names)


def test_help_lists_all_strategies(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["learn", "--help"])
    words = set(re.findall(r"[\w.=()]+", capsys.readouterr().out))
    assert {"BDeu", "GaussianBIC", "Boss", "KnownOrder(order=...)", "DropRows"} <= words
    assert "Dynotears" in words  # with --lags
    assert not {"Score", "Search", "Missing", "LaggedLeastSquares"} & words


def test_names_of_options_are_those_of_the_library() -> None:
    """The parser has lists of its own, because those of the library cost its import."""
    assert tuple(Kind) == inputs.KINDS
    assert tuple(TimeUnit) == inputs.UNITS
    assert [n for n in datasets.__all__ if n not in {"Dataset", "fetch"}] == list(DATASETS)
