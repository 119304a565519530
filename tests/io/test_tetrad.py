"""PAGs as text of Tetrad and causal-learn."""

from __future__ import annotations

from pathlib import Path

import pytest

import isthmus as ist
from isthmus.errors import FormatError
from isthmus.io import from_tetrad, read_tetrad, to_tetrad, write_tetrad
from isthmus.metrics import pag_metrics

PAG = ist.PAG(
    ["age", "dose o", "x"], [("age", "o->", "dose o"), ("dose o", "<->", "x"), ("x", "o-o", "age")]
)

OF_TETRAD = """Graph Nodes:
X1;X2;X3;X4

Graph Edges:
1. X1 --> X2 dd nl
2. X2 <-> X3
3. X4 o-o X1
4. X3 <-o X4

Graph Attributes:
Score: -12.5
"""


def test_text_and_files_are_read_as_written(tmp_path: Path) -> None:
    assert from_tetrad(to_tetrad(PAG)) == PAG
    write_tetrad(PAG, tmp_path / "graph.txt")
    assert read_tetrad(tmp_path / "graph.txt") == PAG
    assert to_tetrad(PAG).splitlines()[:2] == ["Graph Nodes:", "age;dose o;x"]


def test_text_of_tetrad() -> None:
    expected = [("X1", "-->", "X2"), ("X2", "<->", "X3"), ("X4", "o-o", "X1"), ("X4", "o->", "X3")]
    assert from_tetrad(OF_TETRAD) == ist.PAG(["X1", "X2", "X3", "X4"], expected)
    assert from_tetrad("Graph Nodes:\na,b\n\nGraph Edges:\n").nodes == ("a", "b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("digraph {}", "Graph Nodes"),
        ("Graph Nodes:\na;b\nGraph Edges:\n1. a ~> b", "Line 4"),
        ("Graph Nodes:\na;b\nGraph Edges:\na o-> b", "Line 4"),
        ("Graph Nodes:\na;b\nGraph Edges:\n1. a --- b", "not an edge of a PAG"),
        ("Graph Nodes:\na;b\nGraph Edges:\n1. a o-> c", "no node 'c'"),
    ],
)
def test_wrong_text(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        from_tetrad(text)


def test_names_that_would_not_be_read_back() -> None:
    for name in ("a;b", " a", "", "a --> b"):
        with pytest.raises(FormatError, match="Rename"):
            to_tetrad(ist.PAG([name]))


def test_metrics_by_hand() -> None:
    estimate = ist.PAG(["x", "age", "dose o"], [("age", "-->", "dose o"), ("dose o", "o->", "x")])
    found = pag_metrics(PAG, estimate)
    assert (found.adjacency_precision, found.adjacency_recall) == (1.0, 2 / 3)
    assert (found.arrowhead_precision, found.arrowhead_recall) == (1.0, 2 / 3)
    assert (found.tail_precision, found.tail_recall) == (0.0, 1.0)
    assert pag_metrics(PAG, PAG).arrowhead_f1 == 1.0
