"""Reports in a real browser: search, click, compare, export, on a desktop and on a phone."""

from __future__ import annotations

import csv
import itertools
import json
import re
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from tests.report.pages import DESKTOP, PATIENCE, PHONE, network, opened, wait_until, write

import isthmus as ist
from isthmus.io import from_bif, to_bif
from isthmus.report import compare

pytestmark = pytest.mark.browser

EVIL = "</script><img src=x onerror=alert(1)> \"quoted\" 'ä' 変数"


def boxes(page: Any, of: str = "[node]") -> list[list[float]]:
    """Return left, top, right, bottom and the font size of all names drawn, in pixels."""
    found: list[list[float]] = page.evaluate(
        """(of) => { const { cy } = Report.network;
        return cy.nodes(of).map((n) => {
          const { x1, y1, x2, y2 } = n.renderedBoundingBox({ includeOverlays: false });
          return [x1, y1, x2, y2, n.pstyle('font-size').pfValue * cy.zoom()]; }); }""",
        of,
    )
    return found


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
    assert_readable(page)
    assert page.inner_text("#panel h2") == "gene_150"
    box = page.locator("#picture").bounding_box()
    assert box["y"] < size["height"] / 2  # in sight
    if size is PHONE:
        page.click("[data-mode=groups]")
        assert_readable(page, of=".closed")
    elif count == 500:
        page.keyboard.press("Escape")
        assert_communities(page, dag)
    assert page.problems == []


def assert_communities(page: Any, dag: ist.DAG) -> None:
    """Every edge is in a community or between two, and a community alone shows its arrowheads."""
    assert page.evaluate("Report.state.mode") == "groups"
    assert not page.locator("[data-mode=all]").count()  # arrowheads would cover each other
    assert_readable(page, of=".closed")
    community = page.evaluate("Report.groups.of")
    pairs = [(community[dag.index(a)], community[dag.index(b)]) for a, b in dag.edges]
    merged = sum(page.evaluate("Report.network.cy.edges().map((e) => e.data('edges'))"))
    assert merged == sum(a != b for a, b in pairs)
    largest = "Report.network.cy.$id('g0').renderedPosition()"
    page.locator("#drawing").click(position=page.evaluate(largest))
    shown = page.evaluate("Report.network.cy.nodes('[node]').map((n) => n.data('node'))")
    assert sorted(shown) == [i for i, c in enumerate(community) if c == 0]
    assert len(heads_of(page)) == pairs.count((0, 0))
    assert_uncovered(page)
    left = sum((a == 0) != (b == 0) for a, b in pairs)
    assert f"without {left} edges to other communities" in page.inner_text("#panel")
    page.click("#part")
    assert page.evaluate("Report.network.cy.nodes('.closed').length") == max(community) + 1


def assert_uncovered(page: Any) -> None:
    """No arrowhead covers the middle of another one."""
    heads = heads_of(page)
    middles = [
        (x + 0.6 * length * np.sin(angle), y - 0.6 * length * np.cos(angle), length)
        for x, y, length, _, angle, _ in heads
    ]
    for (ax, ay, length, *_), (bx, by, *_) in itertools.combinations(middles, 2):
        assert np.hypot(ax - bx, ay - by) > 0.6 * length


def assert_readable(page: Any, *, of: str = "[node]") -> None:
    drawn = boxes(page, of)
    assert min(size for *_, size in drawn) >= 11
    for (left, top, right, bottom, _), (x1, y1, x2, y2, _) in itertools.combinations(drawn, 2):
        assert x1 >= right or x2 <= left or y1 >= bottom or y2 <= top
    frame = page.locator("#drawing").bounding_box()
    for left, top, right, bottom, _ in drawn:
        assert left >= 0
        assert top >= 0
        assert right <= frame["width"]
        assert bottom <= frame["height"]


def dense(count: int) -> ist.DAG:
    """Return a graph of so many nodes with five edges for each."""
    names = [f"variable {i:02d}" for i in range(count)]
    pairs = [(i, (i + step) % count) for i in range(count) for step in (1, 2, 5, 9, 12)]
    return ist.DAG(names, [(names[min(p)], names[max(p)]) for p in pairs])


HEADS = """() => { const { cy } = Report.network; const zoom = cy.zoom();
  return cy.edges('[head = "triangle"]').map((edge) => {
    const width = edge.pstyle('width').pfValue;
    const size = Math.max((13.37 * width) ** 0.9, 29) * edge.pstyle('arrow-scale').value;
    const { x, y } = edge.renderedTargetEndpoint();
    const { badLine, tgtArrowAngle } = edge._private.rscratch;
    const drawn = !badLine && Number.isFinite(tgtArrowAngle);
    const color = edge.pstyle('target-arrow-color').strValue;
    return [x, y, 0.3 * size * zoom, color, tgtArrowAngle, drawn]; }); }"""


def heads_of(page: Any) -> list[list[Any]]:
    """Return tip, length, colour and angle of all arrowheads, in pixels; all of them are drawn.

    The length of a triangle of cytoscape.js is 0.3 of its size.
    """
    wait_until(page, "Report.network.cy.edges()[0]._private.rscratch.allpts !== undefined")
    heads: list[list[Any]] = page.evaluate(HEADS)
    assert all(drawn for *_, drawn in heads)
    return heads


@pytest.mark.parametrize(("dag", "names_in_boxes"), [(dense(30), True), (network(90), False)])
def test_every_arrowhead_can_be_seen(
    browser: Any, tmp_path: Path, dag: ist.DAG, names_in_boxes: bool
) -> None:
    page = opened(browser, write(tmp_path / "r.html", dag))
    shown = "Report.network.written.length > 10"
    wait_until(page, "Report.network.named()" if names_in_boxes else shown)
    assert page.evaluate("Report.network.named()") is names_in_boxes
    heads = heads_of(page)
    assert len(heads) == len(dag.edges)
    assert min(length for _, _, length, *_ in heads) > 7.99  # pixels
    assert {colour for _, _, _, colour, *_ in heads} == {"rgb(70,86,103)"}  # none is faded
    for left, top, right, bottom in page.evaluate("Report.network.written"):
        assert not [1 for x, y, *_ in heads if left < x < right and top < y < bottom]
    assert_uncovered(page)
    if names_in_boxes:
        assert_readable(page)
        assert_apart(page)
    assert f"direction known ({len(dag.edges)})" in page.inner_text("#legend")
    assert page.problems == []


def assert_apart(page: Any) -> None:
    """No arrowhead lies on another one or in a box, and no line starts or ends far from its box."""
    heads, drawn = heads_of(page), boxes(page)
    for (ax, ay, *_), (bx, by, *_) in itertools.combinations(heads, 2):
        assert max(abs(ax - bx), abs(ay - by)) > 3.5
        assert abs(ax - bx) + abs(ay - by) > 7
    for x, y, *_ in heads:
        reach = [
            max(left - x, x - right, top - y, y - bottom) for left, top, right, bottom, _ in drawn
        ]
        assert -2 < min(reach) < 40


BEHIND = """() => { const { cy } = Report.network; const centre = cy.$id(`n${Report.state.chosen}`);
  const { x1, x2, y1, y2 } = centre.boundingBox({ includeOverlays: false });
  return cy.edges().filter((e) => !e.connectedNodes().contains(centre)).map((e) => e.midpoint())
    .filter(({ x, y }) => x1 < x && x < x2 && y1 < y && y < y2); }"""


def test_layers_and_neighbourhoods_show_every_arrowhead(browser: Any, tmp_path: Path) -> None:
    dag = network(20)
    for size in (DESKTOP, PHONE):
        page = opened(browser, write(tmp_path / "r.html", dag), size)
        assert page.evaluate("Report.state.mode") == ("all" if size is DESKTOP else "near")
        if size is DESKTOP:
            assert_readable(page)
            assert_apart(page)
            page.click("[data-mode=near]")
        assert_readable(page)
        assert_apart(page)
        assert page.evaluate(BEHIND) == []
        page.click("#part")
        assert page.evaluate("Report.state.mode") == "all"
        assert page.problems == []


def test_the_neighbourhood_of_a_hub_is_readable(browser: Any, tmp_path: Path) -> None:
    names = [f"gene_{i:03d}" for i in range(70)]
    hub = [(names[0], name) for name in names[1:30]] + [(name, names[0]) for name in names[30:60]]
    page = opened(browser, write(tmp_path / "r.html", ist.DAG(names, hub)))
    page.fill("#search", names[0])
    page.press("#search", "Enter")
    assert page.evaluate("Report.network.cy.nodes('[node]').length") == 60
    assert_readable(page)
    assert page.problems == []


def test_keyboard_reaches_everything_and_escape_closes(browser: Any, tmp_path: Path) -> None:
    dag = ist.DAG(["a", "b", "c"], [("a", "b"), ("c", "b")])
    page = opened(browser, write(tmp_path / "r.html", dag))
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        where, outline = page.evaluate(
            """() => { const e = document.activeElement;
            const { view, mode, zoom } = e.dataset;
            return [e.id || view || mode || zoom || e.textContent.trim().slice(0, 20),
              getComputedStyle(e).outlineStyle]; }"""
        )
        if where in reached:
            break
        assert outline != "none", where  # the focus can be seen
        reached.add(where)
    wanted = {"search", "network", "matrix", "all", "groups", "near", "least", "picture", "theme"}
    assert wanted | {"1.4", "0.7", "0", "Download", "filter"} <= reached
    page.keyboard.press("/")
    page.keyboard.type("b")
    page.keyboard.press("Enter")
    assert page.inner_text("#panel h2") == "b"
    page.click("#downloads summary")
    page.keyboard.press("Escape")  # closes the menu first
    assert page.evaluate("document.querySelector('#downloads').open") is False
    assert page.inner_text("#panel h2") == "b"
    page.keyboard.press("Escape")
    assert "most edges" in page.inner_text("#panel")
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
    assert page.locator("#panel h2:not(.list)").count() == 0
    assert page.locator("#panel .tags button").first.inner_text() == "b"  # has most edges
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
    table = ist.datasets.sprinkler(rows=200)
    fitted: Any = ist.learn(table).fit()
    exports = {"bif": to_bif(fitted), "json": '{"x": 1}'}
    path = write(tmp_path / "r.html", dag, comparison=comparison, exports=exports)
    page = opened(browser, path)
    classes = "Report.network.cy.edges().map((e) => e.data('state') ?? '').sort()"
    assert page.evaluate(classes) == ["", "added", "missing", "reversed"]
    image = pytest.importorskip("PIL.Image")
    texts = {}
    for kind in ("svg", "png", "bif", "json", "csv"):
        page.click("#downloads summary")
        with page.expect_download() as download:
            page.click(f"#downloads [data-export={kind}]")
        texts[kind] = Path(download.value.path()).read_bytes()
        assert download.value.suggested_filename == f"a-test.{kind}"
    assert min(image.open(BytesIO(texts["png"])).size) > 50
    drawing = ET.fromstring(texts["svg"])
    space = "{http://www.w3.org/2000/svg}"
    assert sorted(t.text or "" for t in drawing.iter(f"{space}text")) == names
    dashes = [path.get("stroke-dasharray") for path in drawing.iter(f"{space}path")]
    assert len({d for d in dashes if d}) == 2  # missing and reversed
    assert from_bif(texts["bif"].decode()).dag == fitted.dag
    assert json.loads(texts["json"]) == {"x": 1}
    rows = list(csv.DictReader(texts["csv"].decode().splitlines()))
    assert {(row["from"], row["to"]) for row in rows} == {*dag.edges, ("c", "d")}
    assert {row["comparison"] for row in rows} == {"same", "reversed", "added", "missing"}
    page.uncheck("#compare")
    assert page.evaluate(classes) == ["", "", ""]
    page.fill("#least", "2")
    assert page.evaluate("Report.network.cy.edges().length") == 1
    assert page.problems == []


def test_the_page_can_be_used_before_the_network_is_drawn(browser: Any, tmp_path: Path) -> None:
    dag = network(160)
    path = write(tmp_path / "r.html", dag)
    page = browser.new_page(viewport=DESKTOP)
    page.set_default_timeout(PATIENCE)
    # Frames wait until the test lets them go: as on a machine that is slow or has no time.
    page.add_init_script(
        """window.frames_held = []; window.frame = window.requestAnimationFrame.bind(window);
        window.requestAnimationFrame = (call) => frames_held.push(call);"""
    )
    page.goto(path.as_uri())
    assert page.evaluate("typeof cytoscape") == "undefined"
    assert page.inner_text("#waiting") == "Drawing the network …"
    hidden = "getComputedStyle(document.querySelector('#edges')).contentVisibility"
    assert page.evaluate(hidden) == "hidden"
    page.emulate_media(media="print")
    assert page.evaluate(hidden) == "visible"
    assert page.is_hidden("#toolbar")
    page.emulate_media(media="screen")
    page.fill("#search", "gene_150")
    page.press("#search", "Enter")
    assert page.inner_text("#panel h2") == "gene_150"
    page.evaluate(
        """() => { window.requestAnimationFrame = window.frame;
        for (const call of frames_held) requestAnimationFrame(call); }"""
    )
    wait_until(page, "document.querySelector('#waiting') === null")
    shown = page.evaluate("Report.network.cy.nodes('[node]').map((n) => n.data('node'))")
    wanted = {"gene_150", *dag.parents("gene_150"), *dag.children("gene_150")}
    assert {dag.nodes[i] for i in shown} == wanted
    wait_until(page, "document.querySelector('#again').classList.contains('ready')")
    # A link to a section arrives there, though the sections before it were never laid out.
    page.click("nav a[href='#again']")
    place = "Math.round(document.querySelector('#again h2').getBoundingClientRect().bottom)"
    wait_until(page, f"0 < {place} && {place} < innerHeight")


def test_a_download_of_the_drawing_does_not_wait(browser: Any, tmp_path: Path) -> None:
    page = browser.new_page(viewport=DESKTOP)
    page.set_default_timeout(PATIENCE)
    page.add_init_script("window.requestAnimationFrame = () => {};")  # it never starts by itself
    page.goto(write(tmp_path / "r.html", network(5)).as_uri())
    page.evaluate("document.querySelector('#downloads').open = true")
    with page.expect_download() as download:
        page.evaluate("document.querySelector('[data-export=svg]').click()")
    drawing = ET.fromstring(Path(download.value.path()).read_bytes())
    texts = drawing.iter("{http://www.w3.org/2000/svg}text")
    assert sorted(text.text or "" for text in texts) == sorted(network(5).nodes)


def picture(page: Any) -> bytes:
    """Download the drawing."""
    page.click("#downloads summary")
    with page.expect_download() as download:
        page.click("#downloads [data-export=png]")
    return Path(download.value.path()).read_bytes()


def test_a_table_wider_than_its_place_can_be_reached(browser: Any, tmp_path: Path) -> None:
    table = ist.datasets.asia(rows=200)
    path = tmp_path / "r.html"
    ist.learn(table).report(path)
    page = opened(browser, path, {"width": 200, "height": 844})
    page.click("#parameters details:has-text('either') summary")
    wide = "document.querySelector('#parameters details[open] .scroll')"
    wait_until(page, f"{wide}.scrollWidth > {wide}.clientWidth && {wide}.tabIndex === 0")
    page.set_viewport_size(DESKTOP)
    wait_until(page, f"{wide}.tabIndex === -1")
    assert page.problems == []


def test_large_networks_open_as_communities(browser: Any, tmp_path: Path) -> None:
    dag = network(160)
    reference = ist.DAG(dag.nodes, dag.edges[5:])
    path = write(tmp_path / "r.html", dag, comparison=compare(dag, reference))
    page = opened(browser, path)
    labels = page.evaluate(
        "Report.network.cy.elements().map((e) => e.data('label') + e.data('count'))"
    )
    within, between = r"(\d+) difference", r"≠ (\d+)"
    counts = re.findall(within, " ".join(labels)) + re.findall(between, " ".join(labels))
    assert sum(map(int, counts)) == 5
    assert page.get_attribute("[data-mode=groups]", "aria-pressed") == "true"
    closed = page.evaluate("Report.network.cy.nodes().length")
    assert closed < 30
    place = page.evaluate("Report.network.cy.$id('g0').renderedPosition()")
    page.locator("#drawing").click(position=place)
    assert page.evaluate("Report.network.cy.nodes('[node]').length") < 160
    page.keyboard.press("Escape")
    assert page.evaluate("Report.network.cy.nodes().length") == closed
    page.click("[data-mode=all]")
    assert page.evaluate("Report.network.cy.nodes('[node]').length") == 160
    # Where names would be too small, as many as fit are shown at a readable size.
    assert page.evaluate("Report.network.cy.zoom() * Report.network.font") < 11
    shown = "Number(document.querySelector('#labels').dataset.shown)"
    wait_until(page, f"{shown} > 10")
    in_boxes = "Number(Report.network.cy.nodes().first().style('text-opacity'))"
    small = picture(page)
    page.evaluate("void Report.network.cy.zoom(0.7)")
    wait_until(page, f"{in_boxes} === 0")  # a name is drawn once
    page.evaluate("void Report.network.cy.zoom(0.99)")  # now names are as large as their boxes
    wait_until(page, f"{shown} === 0 && {in_boxes} === 1")
    assert picture(page) == small  # with all names
    assert page.problems == []


@pytest.mark.parametrize("policy", ["script-src 'unsafe-inline'; style-src 'unsafe-inline'", ""])
def test_drawings_of_notebooks(browser: Any, tmp_path: Path, policy: str) -> None:
    """Several in one page, with a policy as in VS Code, and without scripts and styles."""
    pytest.importorskip("fast_sugiyama")
    dags = [network(3), network(60)]
    cells = "".join(f"<div>{dag._repr_html_()}</div>" for dag in dags)
    meta = f'<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; {policy}">'
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{meta}{cells}", encoding="utf-8")
    page = browser.new_page(viewport=DESKTOP)
    page.set_default_timeout(PATIENCE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    frames = [page.frame_locator(f"iframe >> nth={i}") for i in range(2)]
    for frame, dag in zip(frames, dags, strict=True):
        assert frame.locator("[data-node]").count() == len(dag.nodes)
        fill = frame.locator("rect").first.evaluate("(e) => getComputedStyle(e).fill")
        assert fill == "rgb(234, 241, 248)"  # a light box, not a black one
    if policy:
        far = frames[1].locator("[data-node='30']")
        size = "(e) => e.querySelector('text').getBoundingClientRect().height"
        before = far.evaluate(size)
        far.click()
        assert far.evaluate(size) > max(before, 10)  # the neighbourhood fills the frame
        assert frames[1].locator(".node.chosen").count() == 1
        assert frames[0].locator(".node.chosen").count() == 0
    assert [url for url in asked if not url.startswith(("file:", "about:"))] == []
