"""The error about missing values proposes what works here, and --explain lists columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import isthmus as ist
from isthmus.cli import main
from isthmus.cli.parsing import ExitCode
from isthmus.errors import IsthmusError, MissingValuesError

X, HOLES = [0.5, 1.5, 2.25, 3.0] * 10, [0.5, None, 2.25, 3.0] * 10
C, GAPS = ["u", "v"] * 20, ["u", "v", None, "v"] * 10
TABLES: dict[str, dict[str, Any]] = {
    "numbers": {"x": HOLES, "y": X[::-1]},
    "categories": {"c": GAPS, "d": C},
    "mixed, holes in numbers": {"x": HOLES, "c": C},
    "mixed, holes in categories": {"x": X, "c": GAPS},
}
METHODS = [
    ist.DropRows(),
    ist.MissingAsLevel(),
    ist.AvailableCases(),
    ist.StructuralEM(),
    ist.ExpectationMaximisation(),
]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("name", TABLES)
def test_exactly_the_methods_that_work_are_proposed(name: str, in_memory: bool) -> None:
    frame = pytest.importorskip("polars").DataFrame(TABLES[name])
    table = frame if in_memory else frame.lazy()
    with pytest.raises(MissingValuesError) as refused:
        ist.learn(table)
    for method in METHODS:
        try:
            ist.learn(table, missing=method)
        except IsthmusError:
            works = False
        else:
            works = True
        assert (f"{type(method).__name__}()" in str(refused.value)) == works, method


def test_explain_lists_the_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "holes.csv"
    path.write_text("x,c\n" + "0.5,u\n,v\n1.5,v\n2.25,u\n" * 10, encoding="utf-8")
    assert main(["learn", str(path), "--explain"]) == ExitCode.MISSING_VALUES
    told = capsys.readouterr()
    assert "floating-point numbers" in told.out
    assert "2 levels" in told.out
    methods = "DropRows() or ExpectationMaximisation()"
    assert f"--missing with {methods}; or" in told.err
