"""Reports in a real browser: search, click, compare, export, on a desktop and on a phone."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import isthmus as ist
from isthmus.report import EdgeRow, Measure, Page, compare, render
from isthmus.report.rendering import _libraries

pytestmark = pytest.mark.browser

FLAGS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE = 60_000  # milliseconds; a busy machine takes its time
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
EVIL = "</script><img src=x onerror=alert(1)> \"quoted\" 'ä' 変数"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    if not _libraries():
        pytest.skip("the libraries of the report are missing: run sh build_assets.sh")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield opened
        opened.close()


def network(count: int) -> ist.DAG:
    """Return a graph of so many nodes in which each has two parents nearby."""
    names = [f"gene_{i:03d}" for i in range(count)]
    pairs = [(i - step, i) for i in range(count) for step in (1 + i % 7, 11) if i >= step]
    return ist.DAG(names, [(names[a], names[b]) for a, b in pairs])


def write(path: Path, dag: ist.DAG, **more: Any) -> Path:
    page = Page(
        title="A test",
        nodes=dag.nodes,
        summary=("Made for a test.",),
        notes=(),
        measures=(Measure("strength", "Strength is what it is."),),
        edges=tuple(EdgeRow(a, b, True, (1.0 + i,)) for i, (a, b) in enumerate(dag.edges)),
        network="No parameters.",
        releases=(),
        **more,
    )
    path.write_text(render(page), encoding="utf-8")
    return path


def opened(browser: Any, path: Path, size: dict[str, int] = DESKTOP) -> Any:
    """Open a page; whatever it requests beyond itself, and every error, fails the test."""
    page = browser.new_page(viewport=size)
    page.set_default_timeout(PATIENCE)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda m: page.problems.append(m.text) if m.type == "error" else None)
    page.on("request", lambda r: page.problems.append(r.url) if "file:" not in r.url else None)
    page.goto(path.as_uri())
    page.wait_for_function("Report.network.cy.nodes().length > 0")
    return page


def font_sizes(page: Any) -> list[float]:
    """Return the sizes of all names in the drawing, in pixels on the screen."""
    sizes: list[float] = page.evaluate(
        """() => { const { cy } = Report.network;
        return cy.nodes('[node]').map((n) => n.pstyle('font-size').pfValue * cy.zoom()); }"""
    )
    return sizes


@pytest.mark.parametrize(("count", "size"), [(223, DESKTOP), (500, DESKTOP), (500, PHONE)])
def test_a_variable_is_found_and_its_neighbourhood_readable_in_two_actions(
    browser: Any, tmp_path: Path, count: int, size: dict[str, int]
) -> None:
    dag = network(count)
    page = opened(browser, write(tmp_path / "r.html", dag), size)
    page.fill("#search", "gene_150")  # the first action
    page.press("#search", "Enter")  # the second
    shown = page.evaluate("Report.network.cy.nodes('[node]').map((n) => n.data('node'))")
    wanted = {"gene_150", *dag.parents("gene_150"), *dag.children("gene_150")}
    assert {dag.nodes[i] for i in shown} == wanted
    assert min(font_sizes(page)) >= 9
    assert page.inner_text("#panel h2") == "gene_150"
    box = page.locator("#picture").bounding_box()
    assert box["y"] < size["height"] / 2  # in sight
    assert page.problems == []


def test_click_panel_matrix_table_and_themes(browser: Any, tmp_path: Path) -> None:
    dag = ist.DAG(["a", "b", "c", EVIL], [("a", "b"), ("c", "b"), ("b", EVIL)])
    page = opened(browser, write(tmp_path / "r.html", dag))
    place = page.evaluate("Report.network.cy.$id('n0').renderedPosition()")
    page.locator("#drawing").click(position=place)
    assert page.inner_text("#panel h2") == "a"
    blanket = page.locator("#panel .tags button").all_inner_texts()
    assert sorted(blanket) == ["b", "c"]  # a child and a spouse
    page.click("#panel .tags button:has-text('b')")
    assert EVIL in page.inner_text("#panel")
    page.click("[data-view=matrix]")
    assert page.is_visible("#matrix")
    assert page.is_hidden("[data-mode=all]")
    page.click("#theme")
    page.click("[data-view=network]")
    page.keyboard.press("Escape")
    assert page.locator("#panel h2").count() == 0
    page.click("#edge-table th:has-text('strength') button")
    page.click("#edge-table th:has-text('strength') button")
    assert page.locator("#edge-table tbody tr").first.inner_text().split()[0] == "a"
    page.fill("#filter", "変数")
    assert page.inner_text("#listed") == "1 of 3 edges"
    assert page.problems == []


def test_comparison_slider_and_downloads(browser: Any, tmp_path: Path) -> None:
    names = ["a", "b", "c", "d"]
    dag = ist.DAG(names, [("a", "b"), ("b", "c"), ("a", "d")])
    comparison = compare(dag, ist.DAG(names, [("a", "b"), ("c", "b"), ("c", "d")]))
    path = write(tmp_path / "r.html", dag, comparison=comparison, exports={"json": '{"x": 1}'})
    page = opened(browser, path)
    classes = "Report.network.cy.edges().map((e) => e.classes()[0] ?? '').sort()"
    assert page.evaluate(classes) == ["", "added", "missing", "reversed"]
    texts = {}
    for kind in ("svg", "png", "json", "csv"):
        page.click("#downloads summary")
        with page.expect_download() as download:
            page.click(f"#downloads [data-export={kind}]")
        texts[kind] = Path(download.value.path()).read_bytes()
        assert download.value.suggested_filename == f"a-test.{kind}"
    assert texts["png"].startswith(b"\x89PNG")
    assert len(re.findall(rb"<text", texts["svg"])) == len(names)
    assert json.loads(texts["json"]) == {"x": 1}
    assert texts["csv"].decode().splitlines()[0] == "from,to,directed,strength,comparison"
    page.uncheck("#compare")
    assert page.evaluate(classes) == ["", "", ""]
    page.fill("#least", "2")
    assert page.evaluate("Report.network.cy.edges().length") == 1
    assert page.problems == []


def test_communities_open_and_close(browser: Any, tmp_path: Path) -> None:
    page = opened(browser, write(tmp_path / "r.html", network(120)))
    page.click("[data-mode=groups]")
    closed = page.evaluate("Report.network.cy.nodes().length")
    assert closed < 30
    place = page.evaluate("Report.network.cy.$id('g0').renderedPosition()")
    page.locator("#drawing").click(position=place)
    assert page.evaluate("Report.network.cy.nodes().length") > closed
    assert page.problems == []
