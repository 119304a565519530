"""Tables as they are: each ends in a right graph or in one sentence of advice, quickly."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.notes import noted
from tests.verbs import uglier_tables, ugly_tables
from tests.verbs.ugly_tables import UNIQUE, codes, numbers, text

import isthmus as ist
from isthmus.errors import DataWarning, IsthmusError

CASES = ugly_tables.CASES | uglier_tables.CASES
SECONDS = 10.0
"""No table may take longer, on a busy machine."""


def adjacent(solution: ist.Solution) -> set[frozenset[str]]:
    return {frozenset(edge) for edge in solution.dag.edges}


@pytest.mark.timing
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning")
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # matrices
def test_every_ugly_table(name: str) -> None:
    case = CASES[name]
    table = case.make()
    begin = time.process_time()
    if case.error is not None:
        with pytest.raises(IsthmusError, match=case.error) as refusal:
            ist.learn(table, kinds=dict(case.kinds) or None)
        assert len(str(refusal.value)) < 700
        assert time.process_time() - begin < SECONDS
        return
    solution = ist.learn(table, kinds=dict(case.kinds) or None)
    assert time.process_time() - begin < SECONDS
    if case.edges is None:
        assert len(solution.dag.edges) <= 3
    else:
        wanted = {frozenset(edge.rsplit(" ", 1)) for edge in case.edges}
        assert adjacent(solution) == wanted, solution
    for column, read_as in case.read:
        assert solution.reading[column].read_as is read_as, solution.reading[column]
        assert (column in solution.dag.nodes) == solution.reading[column].used
    assert [c.name for c in solution.reading if c.used] == list(solution.dag.nodes)
    if case.note is not None:
        assert case.note in " ".join(solution.notes)
        assert case.note in str(solution)


def test_there_are_eighty() -> None:
    assert len(CASES) >= 80


def test_the_report_and_the_text_show_the_reading(tmp_path: Path) -> None:
    with noted("left out: id: identifier"):
        solution = ist.learn(numbers() | {"id": UNIQUE})
    solution.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h2>Columns</h2>" in page
    assert "400 different values in 400 rows" in page
    assert str(solution.reading).splitlines()[2].split() == (
        ["id", "identifier", "400", "different", "values", "in", "400", "rows"]
    )
    assert solution.reading.left_out == ("id",)


def test_every_verb_reads_alike() -> None:
    table = numbers() | {"id": UNIQUE}
    dag = ist.DAG(["x", "y"], [("x", "y")])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert ist.summarise(table).schema.names == ("x", "y")
        assert np.isfinite(ist.score(table, dag, ist.GaussianBIC()))
        assert "left out: id" in " ".join(ist.sample(table, draws=10).notes)
        # Who puts a column into a graph means it.
        assert np.isfinite(
            ist.score(codes() | {"k": text(300)}, ist.DAG(["a", "k"], []), ist.BIC())
        )
        tiers = ist.Knowledge(tiers=[["id", "x"], ["y"]], roots=["id"])
        assert ist.learn(table, knowledge=tiers).dag.edges == (("x", "y"),)
