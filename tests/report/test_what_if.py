"""What-if questions, knowledge about edges, and how sure they are, in a real browser."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.pages import DESKTOP, PATIENCE, PHONE, network, opened, wait_until, write

import isthmus as ist
from isthmus.cli import main
from isthmus.io import to_json

pytestmark = pytest.mark.browser

ANSWERS = "Report.whatIf.answers().marginals"


def asked(browser: Any, path: Path, model: Any, size: dict[str, int] = DESKTOP) -> Any:
    """Open the what-if view of a page with a network."""
    write(path, model.dag, exports={"json": to_json(model)}, parameters=model)
    page = opened(browser, path, size)
    page.click("[data-view=whatif]")
    return page


def peer_answers(model: Any, seen: dict[int, int]) -> list[Any]:
    """Return the probabilities of all levels of all nodes given codes of levels, by pyAgrum."""
    gum: Any = pytest.importorskip("pyagrum")
    peer = gum.BayesNet()
    for i, name in enumerate(model.dag.nodes):
        labels = [str(k) for k in range(len(model.levels[name]))]
        peer.add(gum.LabelizedVariable(f"v{i}", "", labels))
    for i, parents in enumerate(model.dag.parent_indices()):
        for p in reversed(parents):
            peer.addArc(f"v{p}", f"v{i}")
        peer.cpt(f"v{i}").fillWith(model.tables[model.dag.nodes[i]].ravel().tolist())
    engine = gum.LazyPropagation(peer)
    engine.setEvidence({f"v{v}": code for v, code in seen.items()})
    engine.makeInference()
    return [engine.posterior(f"v{i}").toarray().ravel() for i in range(len(model.dag.nodes))]


CLICKS = """() => [7, 11, 15, 19, 23, 27, 31, 35, 36].map((node) => {
  const level = document.querySelector(`.card[data-node='${node}'] .level`);
  const start = performance.now();
  level.click(); // computes, and moves all bars
  return performance.now() - start; })"""


def test_a_click_on_a_level_answers_at_once_and_as_pyagrum_does(
    browser: Any, tmp_path: Path
) -> None:
    """37 nodes of two to four levels, as in alarm."""
    dag = network(37)
    model = ist.simulate.discrete_network(dag, cardinalities=(2, 4), seed=4)
    page = asked(browser, tmp_path / "r.html", model)
    name = dag.nodes[20]
    card = page.locator(".card[data-node='20']")
    seen = card.locator(".level").nth(1)
    seen.click()
    assert seen.get_attribute("aria-pressed") == "true"
    page.locator(".card[data-node='3'] .level").first.click()
    answers = page.evaluate(ANSWERS)
    for own, peer in zip(answers, peer_answers(model, {20: 1, 3: 0}), strict=True):
        np.testing.assert_allclose(own, peer, rtol=0, atol=1e-9)
    known = {name: model.levels[name][1], dag.nodes[3]: model.levels[dag.nodes[3]][0]}
    shown = page.locator(".card[data-node='21'] .level .value").first.inner_text()
    assert shown == f"{100 * answers[21][0]:.1f} %"
    share = page.evaluate("Report.whatIf.answers().probability")
    first = model.query(name).values[1]
    assert share == pytest.approx(first * model.query(dag.nodes[3], {name: known[name]}).values[0])
    assert f"Such cases are {100 * share:.1f} % of all." in page.inner_text("#observed")
    assert np.median(page.evaluate(CLICKS)) < 100  # milliseconds
    answers = page.evaluate(ANSWERS)
    clicked = dict.fromkeys((7, 11, 15, 19, 23, 27, 31, 35, 36), 0)
    for own, peer in zip(answers, peer_answers(model, {20: 1, 3: 0, **clicked}), strict=True):
        np.testing.assert_allclose(own, peer, rtol=0, atol=1e-9)
    page.click("#observed button:has-text('Forget all')")
    page.select_option("#order", "change")
    np.testing.assert_allclose(page.evaluate(ANSWERS)[20], model.query(name).values, atol=1e-12)
    assert page.problems == []


def test_evidence_that_cannot_be_is_refused(browser: Any, tmp_path: Path) -> None:
    dag = ist.DAG(["a", "b"], [("a", "b")])
    levels = {"a": ("no", "yes"), "b": ("no", "yes")}
    tables = {"a": np.array([0.5, 0.5]), "b": np.array([[1.0, 0.0], [0.5, 0.5]])}
    page = asked(browser, tmp_path / "r.html", ist.networks.DiscreteNetwork(dag, levels, tables))
    page.locator(".card[data-node='0'] .level").nth(0).click()
    page.locator(".card[data-node='1'] .level").nth(1).click()
    assert "cannot have this value" in page.inner_text("#observed")
    assert page.evaluate(ANSWERS) == [[1, 0], [1, 0]]
    assert page.problems == []


def test_numbers_move_by_the_closed_form(browser: Any, tmp_path: Path) -> None:
    dag = network(40)
    rng = np.random.default_rng(1)
    model = ist.networks.GaussianNetwork(
        dag,
        {v: float(rng.normal()) for v in dag.nodes},
        {v: {p: float(rng.normal()) for p in dag.parents(v)} for v in dag.nodes},
        {v: float(rng.uniform(0.5, 2)) for v in dag.nodes},
    )
    page = asked(browser, tmp_path / "r.html", model, PHONE)
    known = {dag.nodes[39]: 2.5, dag.nodes[0]: -1.0}
    for node, value in known.items():
        field = page.locator(f".card[data-node='{dag.index(node)}'] [type=number]")
        field.fill(str(value))
        field.press("Enter")
    page.evaluate("document.activeElement.blur()")
    answers = page.evaluate(ANSWERS)
    for i, node in enumerate(dag.nodes):
        if node not in known:
            answer = model.query(node, known)
            assert answers[i]["mean"] == pytest.approx(float(answer.mean[0]), abs=1e-9)
            deviation = float(np.sqrt(answer.covariance[0, 0]))
            assert answers[i]["deviation"] == pytest.approx(deviation, abs=1e-9)
            mean, spread = page.text_content(f".card[data-node='{i}'] .value").split(" ± ")
            digits = max(0, 2 - int(np.floor(np.log10(1.96 * deviation))))
            assert spread == f"{1.96 * deviation:.{digits}f}"  # three digits
            assert float(mean) == pytest.approx(float(answer.mean[0]), abs=0.51 * 10.0**-digits)
    assert "± for the range of 95 %" in page.inner_text("#asked")
    assert page.problems == []


def test_networks_that_a_page_cannot_ask_say_how(browser: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    group = rng.choice(["x", "y"], 200)
    table = {"it's a group": group, "size": (group == "x") + rng.normal(size=200)}
    ist.learn(table).report(tmp_path / "r.html", command="isthmus learn t.csv -o r.html")
    page = opened(browser, tmp_path / "r.html")
    page.click("[data-view=whatif]")
    words = shlex.split(page.inner_text("#cards code"))
    assert words[:3] == ["isthmus", "query", "learned-network.json"]
    assert {words[4], words[6].removesuffix("=VALUE")} == set(table)
    # Clique tables of a complete graph would have 4 ** 12 cells.
    names = [f"v{i}" for i in range(12)]
    tables = "Object.fromEntries(nodes.map((v, i) => [v, []]))"
    found = page.evaluate(
        f"""() => {{ const nodes = {names};
        const edges = nodes.flatMap((to, i) => nodes.slice(0, i).map((from) => [from, to]));
        const levels = Object.fromEntries(nodes.map((v) => [v, ["a", "b", "c", "d"]]));
        return Report.inference.discrete({{ nodes, edges, levels, tables: {tables} }}); }}"""
    )
    assert found is None
    assert page.problems == []


def test_edges_are_forbidden_required_and_reversed_by_click(browser: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 3000))
    columns = np.stack(
        [a, b, a + b + 0.5 * rng.normal(size=3000), a + 2 * rng.normal(size=3000)], 1
    )
    names = ["first one", "b", "it's c", "d"]
    head = ",".join(names)
    np.savetxt(tmp_path / "t.csv", columns, delimiter=",", header=head, comments="")
    report, again = tmp_path / "r.html", tmp_path / "again.csv"
    command = ["learn", str(tmp_path / "t.csv"), "-q", "-o", str(report)]
    assert main(command) == 0
    page = opened(browser, report)
    assert "t.csv · 3,000 rows · " in page.inner_text("#facts")
    place = page.evaluate("Report.network.cy.edges('[edge = 0]').renderedMidpoint()")
    page.locator("#drawing").click(position=place)  # an edge of the collider
    page.click(".opinions button:has-text('Reverse')")
    edge = page.evaluate("[Report.edges[0].from, Report.edges[0].to]")
    page.locator("#edge-table tbody tr[data-edge='1'] .sign").click()
    page.click(".opinions button:has-text('Forbid')")
    other = page.evaluate("[Report.edges[1].from, Report.edges[1].to]")
    text = page.inner_text("#command")
    assert shlex.split(text)[:6] == ["isthmus", *command]
    page.click("#copy")
    wait_until(page, "document.querySelector('#copy').textContent === 'Copied'")
    assert main([*shlex.split(text)[1:], "-o", str(again)]) == 0
    learned = {tuple(line.split(",")) for line in again.read_text().splitlines()[1:]}
    assert (names[edge[1]], names[edge[0]]) in learned
    assert not {(names[u], names[v]) for u, v in (other, other[::-1])} & learned
    page.locator("#panel li button[aria-label^='Drop']").first.click()
    assert "--required" not in page.inner_text("#command")
    assert page.problems == []


AXE = Path(__file__).parents[2] / "build" / "assets" / "node_modules" / "axe-core" / "axe.min.js"


def test_axe_finds_no_violations(browser: Any, tmp_path: Path) -> None:
    """The page as it opens, with everything unfolded, and then the panel and the other views."""
    if not AXE.is_file():
        pytest.skip("axe-core is missing: run sh build_assets.sh")
    table = ist.datasets.sprinkler(rows=300)
    ist.learn(table).report(tmp_path / "r.html", certainty=ist.bootstrap(table, replicates=5))
    steps = {
        "light": ["document.querySelectorAll('details').forEach((one) => { one.open = true; })"],
        "dark": [
            "Report.change({ chosen: 0 })",
            "Report.change({ edge: 0 }), Report.edit.set(0, 1, 'require')",
            "Report.change({ view: 'matrix' })",
            "Report.change({ view: 'whatif' }), Report.whatIf.observe(0, 0)",
        ],
    }
    for scheme, actions in steps.items():
        page = browser.new_page(viewport=DESKTOP, color_scheme=scheme, bypass_csp=True)
        page.set_default_timeout(PATIENCE)
        page.goto((tmp_path / "r.html").as_uri())
        wait_until(page, "document.querySelector('#again').classList.contains('ready')")
        page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
        for action in actions:
            page.evaluate(action)
            found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")[
                "violations"
            ]
            assert [(rule["id"], [n["html"] for n in rule["nodes"]]) for rule in found] == []


def test_a_bootstrap_shows_shares_and_no_python(browser: Any, tmp_path: Path) -> None:
    table = ist.datasets.asia(rows=500)
    names = list(table)
    rows = zip(*(table[name] for name in names), strict=True)
    text = "\n".join(",".join(map(str, row)) for row in (names, *rows))
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    report = tmp_path / "r.html"
    options = [str(tmp_path / "t.csv"), "-q", "--replicates", "20", "-o", str(report)]
    assert main(["bootstrap", *options]) == 0
    page = opened(browser, report)
    ensemble = ist.bootstrap(table, replicates=20)
    either = ensemble.adjacency_probabilities()
    drawn = page.evaluate("Report.edges.filter((e) => e.inGraph).map((e) => [e.from, e.to])")
    assert {frozenset(pair) for pair in drawn} == {
        frozenset((ensemble.nodes.index(a), ensemble.nodes.index(b)))
        for a, b in ensemble.averaged_graph().edges
    }
    shares = page.evaluate("Report.edges.map((e) => [e.from, e.to, e.values[0]])")
    assert all(share == pytest.approx(either[a, b]) for a, b, share in shares)
    assert "Python" not in page.inner_text("body")
    assert "isthmus bootstrap" in page.inner_text("#again")
    assert page.locator("[data-view=whatif]").count() == 0  # there are no parameters
    assert page.inner_text("#facts").startswith("t.csv · 500 rows · ")
    solution = ist.learn(table)
    solution.report(report, certainty=ensemble, table="asia")
    page = opened(browser, report)
    sure = page.evaluate("Report.edges.map((e) => [e.from, e.to, ...e.values])")
    assert all(row[2] == pytest.approx(either[row[0], row[1]]) for row in sure)
    assert page.evaluate("Report.data.measures") == ["share", "share this way", "strength"]
    assert page.problems == []
