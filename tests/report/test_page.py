"""The report: complete, self-contained, and safe against names from the data."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus.plots import svg_graph


class Reader(HTMLParser):
    """Collects tags, and checks that they are closed in order."""

    VOID = frozenset({"meta", "input", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(path: Path) -> Reader:
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    assert reader.open == []
    return reader


def numbers(names: list[str]) -> dict[str, NDArray[np.float64]]:
    rng = np.random.default_rng(1)
    held: dict[str, NDArray[np.float64]] = {}
    last = np.zeros(500)
    for name in names:
        last = 0.9 * last + rng.normal(size=500)
        held[name] = last
    return held


def test_names_from_the_data_cannot_become_markup(tmp_path: Path) -> None:
    evil = ["<script>alert(1)</script>", 'a" onload="x', "b&amp;<b>", "変数"]
    ist.learn(numbers(evil)).report(tmp_path / "r.html", title="<i>x</i>")
    page = read(tmp_path / "r.html")
    assert [tag for tag, _ in page.tags if tag == "script"] == ["script"]
    assert not any("onload" in attributes for _, attributes in page.tags)
    text = "".join(page.words)
    assert all(name in text for name in evil)
    assert "<i>x</i>" in text


def test_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    ist.learn(numbers(["a", "b", "c"])).report(tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    assert not [a for _, attributes in page.tags for a in attributes if a in ("src", "href")]
    links = re.findall(r"https?://[^\s\"'<]+", (tmp_path / "r.html").read_text(encoding="utf-8"))
    assert set(links) <= {"http://www.w3.org/2000/svg"}
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_shows_edges_with_strengths_parameters_and_disclosure(tmp_path: Path) -> None:
    tables = {s: numbers(["a", "b", "c"]) for s in ("north", "south", "east")}
    solution = ist.learn(ist.Federation.simulate(tables))
    solution.report(tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    drawn = [a for tag, a in page.tags if tag == "path" and "data-from" in a]
    assert len(drawn) == len(solution.dag.edges)
    assert all(a["data-strength"] for a in drawn)
    text = "".join(page.words)
    assert "Strength is the decrease" in text
    assert "and parameters" in text
    assert all(site in text for site in tables)
    assert "secure sum" in text
    coefficient = solution.fit().coefficients  # type: ignore[union-attr]
    child, parent = next((v, p) for v, own in coefficient.items() for p in own)
    assert f"{abs(coefficient[child][parent]):.4g}" in text


def test_tables_of_probabilities(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 3_000)
    b = np.where(rng.random(3_000) < 0.8, a, rng.integers(0, 3, 3_000))
    solution = ist.learn({"a": a, "b": b})
    solution.report(tmp_path / "r.html")
    cells = {w for w in read(tmp_path / "r.html").words if re.fullmatch(r"[01]\.\d{4}", w)}
    network = solution.fit()
    wanted = {f"{p:.4f}" for t in network.tables.values() for p in t.ravel()}  # type: ignore[union-attr]
    assert cells == wanted


def test_a_graph_without_edges_or_evidence(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ist.learn({"a": rng.normal(size=50), "b": rng.normal(size=50)}).report(tmp_path / "r.html")
    assert "independent" in "".join(read(tmp_path / "r.html").words)


@pytest.mark.parametrize("nodes", [1, 2, 7])
def test_svg_places_every_node_inside(nodes: int) -> None:
    names = [f"v{i}" for i in range(nodes)]
    dag = ist.DAG(names, [(names[i], names[j]) for j in range(nodes) for i in range(j)])
    text = svg_graph(dag)
    width, height = map(float, re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups())  # type: ignore[union-attr]
    boxes = re.findall(
        r'<rect x="([-\d.]+)" y="([-\d.]+)" width="([\d.]+)" height="([\d.]+)"', text
    )
    assert len(boxes) == nodes
    for x, y, w, h in (map(float, box) for box in boxes):
        assert x >= 0
        assert y >= 0
        assert x + w <= width
        assert y + h <= height
    assert text.count('marker-end="url(#arrow)"') == len(dag.edges)


def test_shows_the_curves_of_a_gaussian_process_network(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=150)
    table = {"<x>": x, "y & z": np.sin(2 * x) + 0.3 * rng.normal(size=150)}
    ist.learn(table, score=ist.GP()).report(tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    curves = [dict(attrs) for tag, attrs in page.tags if attrs.get("class") == "curve"]
    assert len(curves) == 1
    words = " ".join(page.words)
    assert "Effect of" in words
    assert "linear" not in words  # no warning that the parameters are those of another model
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "y &amp; z" in text
    mean = re.search(r'class="mean" d="M([^"]*)"', text)
    assert mean is not None
    down = [float(pair.split(",")[1]) for pair in mean[1].split(" L")]
    assert len(down) == 101
    rises = np.sign(np.diff(down))
    assert (rises[1:] != rises[:-1]).sum() >= 2  # a sine, drawn as one
