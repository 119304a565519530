"""The report: complete, self-contained, and safe against names from the data."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isthmus as ist
from isthmus.errors import GraphError
from isthmus.plots import svg_graph


class Reader(HTMLParser):
    """Collects tags, and checks that they are closed in order."""

    VOID = frozenset({"meta", "input", "br"})
    NAMES = ("<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", 'a" onload="x')

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            self.scripts.append(data)
        elif self.open[-1:] != ["style"]:
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


def data_of(page: Reader) -> dict[str, Any]:
    """Return the data that the scripts of a page read."""
    data: dict[str, Any] = json.loads(next(s for s in page.scripts if s.startswith("{")))
    return data


def test_names_from_the_data_cannot_become_markup(tmp_path: Path) -> None:
    evil = [*Reader.NAMES, "b&amp;<b>", "変数", "{{ 7 * 7 }}", "]]>--><!--"]
    ist.learn(numbers(evil)).report(tmp_path / "r.html", title="<i>x</i>")
    page = read(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    scripts = len([tag for tag, _ in page.tags if tag == "script"])
    assert scripts == text.lower().count("</script>")
    assert not [tag for tag, _ in page.tags if tag in ("img", "b", "i")]
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    words = "".join(page.words)
    assert all(name in words for name in evil)
    assert "<i>x</i>" in words
    assert data_of(page)["nodes"] == list(evil)


def test_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    ist.learn(numbers(["a", "b", "c"])).report(tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    addresses = [v for _, a in page.tags for k, v in a.items() if k in ("src", "href", "action")]
    assert all(address is not None and address.startswith("#") for address in addresses)
    policy = next(a["content"] for _, a in page.tags if a.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy.split("script-src")[1]


def test_the_policy_allows_exactly_the_scripts_of_the_page(tmp_path: Path) -> None:
    ist.learn(numbers(["a", "b", "c"])).report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    scripts = re.findall(
        r'<script(?: type="text/plain" class="drawing")?>(.*?)</script>', text, flags=re.DOTALL
    )
    digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
    assert len(digests) >= 10
    assert re.findall(r"sha256-([^&]+)&#39;", text) == digests


def test_shows_edges_with_strengths_parameters_and_disclosure(tmp_path: Path) -> None:
    tables = {s: numbers(["a", "b", "c"]) for s in ("north", "south", "east")}
    solution = ist.learn(ist.Federation.simulate(tables))
    solution.report(tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    edges = data_of(page)["edges"]
    strengths = {
        (solution.dag.nodes[e["from"]], solution.dag.nodes[e["to"]]): e["values"][0] for e in edges
    }
    assert strengths == solution.published().strengths()
    assert strengths == pytest.approx(solution.strengths(), rel=0.01)
    text = "".join(page.words)
    assert "Strength is the decrease" in text
    assert all(site in text for site in tables)
    assert "secure sum" in text
    coefficient = solution.published().fit().coefficients  # type: ignore[union-attr]
    child, parent = next((v, p) for v, own in coefficient.items() for p in own)
    assert f"{abs(coefficient[child][parent]):.4g}" in text


def test_says_how_to_run_again(tmp_path: Path) -> None:
    solution = ist.learn(numbers(["a", "b"]), seed=11, kinds={"a": "continuous"})
    solution.save(tmp_path / "s.zip")
    loaded = ist.Solution.load(tmp_path / "s.zip")
    loaded.report(tmp_path / "r.html", command="isthmus learn x.csv")
    words = "".join(read(tmp_path / "r.html").words)
    assert "isthmus learn x.csv" in words
    assert "Python" not in words  # whoever uses the command line need not know any
    assert "solution." not in words
    loaded.report(tmp_path / "r.html")
    words = "".join(read(tmp_path / "r.html").words)
    code = solution.provenance.code
    assert code in words
    assert "seed=11" in code
    again: dict[str, Any] = {"data": numbers(["a", "b"])}
    exec(code, again)
    assert again["result"].dag == solution.dag
    assert solution.provenance.versions["isthmus"] == ist.__version__


def test_the_same_page_without_the_drawing_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fast_sugiyama")
    monkeypatch.setattr("isthmus.report.rendering._libraries", list)
    solution = ist.learn(numbers(["a", "b", "c"]))
    solution.report(tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    drawn = [a for tag, a in page.tags if tag == "path" and "data-from" in a]
    assert len(drawn) == len(solution.dag.edges)
    assert not [a for _, a in page.tags if a.get("data-mode")]


def test_marks_what_differs_from_a_reference(tmp_path: Path) -> None:
    solution = ist.learn(numbers(["a", "b", "c", "d"]))  # a chain without learned directions
    names = solution.dag.nodes
    reference = ist.DAG(names[::-1], [("a", "b"), ("a", "d")])
    solution.report(tmp_path / "r.html", reference=reference)
    data = data_of(read(tmp_path / "r.html"))
    states = {
        frozenset((data["nodes"][e["from"]], data["nodes"][e["to"]])): e["state"]
        for e in data["edges"]
    }
    assert states[frozenset("ab")] == "same"  # undirected in both classes
    assert states[frozenset("bc")] == "added"
    assert states[frozenset("ad")] == "missing"
    with pytest.raises(GraphError, match="nodes"):
        solution.report(tmp_path / "r.html", reference=ist.DAG(["a", "b"]))


def test_tables_of_probabilities(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 3_000)
    b = np.where(rng.random(3_000) < 0.8, a, rng.integers(0, 3, 3_000))
    solution = ist.learn({"a": a, "b": b})
    solution.report(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    section = text.split('id="parameters"')[1].split("</section>")[0]
    cells = set(re.findall(r">([01]\.\d{4})<", section))
    network = solution.fit()
    wanted = {f"{p:.4f}" for t in network.tables.values() for p in t.ravel()}  # type: ignore[union-attr]
    assert cells == wanted
    words = read(tmp_path / "r.html").words
    rows = [f"{c.sum():,}" for t in network.counts.values() for c in t.reshape(-1, 3)]  # type: ignore[union-attr]
    assert set(rows) <= set(words)
    assert data_of(read(tmp_path / "r.html"))["exports"].keys() == {"bif", "json"}


def test_a_graph_without_edges_or_evidence(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ist.learn({"a": rng.normal(size=50), "b": rng.normal(size=50)}).report(tmp_path / "r.html")
    assert "independent" in "".join(read(tmp_path / "r.html").words)


@pytest.mark.parametrize("nodes", [1, 2, 7])
def test_svg_places_every_node_inside(nodes: int) -> None:
    names = [f"v{i}" for i in range(nodes)]
    dag = ist.DAG(names, [(names[i], names[j]) for j in range(nodes) for i in range(j)])
    text = svg_graph(dag)
    assert f'aria-label="Network; variables: {len(dag.nodes)}, edges: {len(dag.edges)}"' in text
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


def test_a_copy_without_the_libraries_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isthmus.report.rendering._LIBRARIES", ("absent.js",))
    solution = ist.learn(numbers(["a", "b"]))
    checkout = tmp_path / "checkout" / "src" / "isthmus" / "report"
    shutil.copytree(Path(ist.__file__).parent / "report", checkout)
    monkeypatch.setattr("isthmus.report.rendering._HERE", checkout)
    with pytest.warns(
        ist.errors.IsthmusWarning, match=r"installation from git .* then `pip install \.`"
    ):
        solution.report(tmp_path / "r.html")
    (tmp_path / "checkout" / "build_assets.sh").touch()
    with pytest.warns(
        ist.errors.IsthmusWarning, match=r"run `sh build_assets\.sh` there, which needs npm"
    ) as caught:
        solution.report(tmp_path / "r.html")
    assert not any("wheel" in str(w.message).lower() for w in caught)


def test_the_report_of_a_pag_says_what_its_marks_mean(tmp_path: Path) -> None:
    """All four kinds of edges, in the legend, in the table and in the data of the drawing."""
    solution = ist.learn(numbers(["a", "b", "c", "d", "e"]), search=ist.FCI())
    edges = [("a", "-->", "b"), ("b", "o->", "c"), ("c", "<->", "d"), ("d", "o-o", "e")]
    solution = replace(solution, pag=ist.PAG([*"abcde"], edges))
    solution.report(tmp_path / "r.html")
    page = read(tmp_path / "r.html")
    words = " ".join("".join(page.words).split())
    for text in (
        "a ○→ b: a is a cause of b, or they may have a hidden common cause (1)",
        "500 rows",
    ):
        assert text in words
    assert "c↔d c shares a hidden cause with d" in words
    assert "What if" not in words
    assert "Markov blanket" not in words
    data = data_of(page)
    assert data["pag"] is True
    assert [e["mark"] for e in data["edges"]] == ["determined", "possible", "hidden", "unknown"]
    assert ist.io.from_tetrad(data["exports"]["txt"]) == solution.pag
    shapes = [tag for tag, _ in page.tags if tag == "circle"]
    assert len(shapes) == 3  # one in the legend of o->, two in that of o-o
