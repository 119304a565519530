"""Results and graphs show themselves in notebooks."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isthmus as ist
from isthmus.plots import notebook_drawing, plot_graph
from isthmus.plots.svg import svg_graph

pytest.importorskip("fast_sugiyama")

EVIL = '</iframe></script>"x'
DAG = ist.DAG(["a", "b", EVIL], [("a", "b"), (EVIL, "b")])


def test_the_frame_holds_every_name_and_nothing_else() -> None:
    text = notebook_drawing(DAG, caption="<b>")
    assert text is not None
    assert text.count("<iframe") == text.count("</iframe>") == 1
    inner = html.unescape(re.search(r'srcdoc="([^"]*)"', text)[1])  # type: ignore[index]
    assert inner.count("</script>") == 1
    assert html.escape(EVIL) in inner
    assert "&lt;b&gt;" in inner
    assert not re.search(r"""(src|href)=|url\(h""", inner)


def test_large_graphs_are_left_to_words() -> None:
    assert ist.DAG([f"v{i}" for i in range(201)])._repr_html_() is None


def test_everything_shows_itself() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    table = {"x": x, "y": x + rng.normal(size=200)}
    solution = ist.learn(table)
    shown: list[Any] = [
        DAG,
        DAG.cpdag(),
        solution,
        solution.fit(),
        ist.bootstrap(table, replicates=3),
        ist.sample(table, draws=20),
    ]
    for thing in shown:
        assert "<iframe" in (thing._repr_html_() or ""), thing


def test_a_plot_marks_what_differs_from_a_reference() -> None:
    pytest.importorskip("matplotlib")
    reference = ist.DAG(["a", "b", EVIL], [("b", "a"), ("a", EVIL)])
    lines = [
        p for p in plot_graph(DAG, reference=reference).patches if hasattr(p, "get_arrowstyle")
    ]
    assert sorted(line.get_linestyle() for line in lines) == ["-", "--", ":"]


@pytest.mark.long
def test_a_notebook_runs(tmp_path: Path) -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook()
    code = "import isthmus as ist\nist.learn(ist.datasets.asia(rows=500), progress=True)"
    notebook.cells = [nbformat.v4.new_code_cell(code)]
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute(cwd=str(tmp_path))
    outputs = notebook.cells[0].outputs
    result = next(o for o in outputs if o.output_type == "execute_result")
    assert "<iframe" in result.data["text/html"]
    assert "edges" in result.data["text/plain"] or "Solution" in result.data["text/plain"]


def test_a_pag_is_drawn_with_its_marks_and_their_meaning() -> None:
    edges = [("a", "o->", "b"), ("b", "<->", "c"), ("c", "o-o", "d"), ("d", "-->", "e")]
    pag = ist.PAG([*"abcde"], edges)
    picture = svg_graph(pag)
    assert picture.count("url(#circle)") == 3
    assert picture.count("url(#arrow)") == 4
    assert "hidden common cause" in picture
    assert "<iframe" in (pag._repr_html_() or "")
    pytest.importorskip("matplotlib")
    axes = plot_graph(pag)
    arrows = [p.get_arrowstyle() for p in axes.patches if hasattr(p, "get_arrowstyle")]
    styles = sorted(type(arrow).__name__ for arrow in arrows)
    assert styles == ["Curve", "CurveFilledAB", "CurveFilledB", "CurveFilledB"]
    assert sum(type(p).__name__ == "Circle" for p in axes.patches) == 3
    assert any("hidden common cause" in text.get_text() for text in axes.texts)
    cycle = [("a", "-->", "b"), ("b", "-->", "c"), ("c", "-->", "a")]  # from tests that err
    assert len(plot_graph(ist.PAG([*"abc"], cycle)).patches) == 6
    with pytest.raises(ist.errors.GraphError, match="without strengths"):
        plot_graph(pag, strengths={("a", "b"): 1.0})
