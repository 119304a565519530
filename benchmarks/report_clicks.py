"""How long a click on a level takes in the what-if view of a report, in headless Chromium.

    python benchmarks/report_clicks.py [NETWORK]        alarm unless told otherwise

Twenty clicks of the mouse on random levels, with one to five observed variables at a time, each
followed by a click beside the levels, which changes nothing. Milliseconds from the click until the
last bar has its new width; until that is painted, by the event timing of the browser, which rounds
to 8 ms and reports nothing below 16 ms; and of the processor in the thread that runs the page,
which other programs do not stretch; and the largest difference from pyAgrum. Networks are looked
for in ../shared/data, or under ISTHMUS_DATA.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyagrum as gum
from playwright.sync_api import sync_playwright

import isthmus as ist
from isthmus.io import read_bif

HOME = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[2] / "shared" / "data"))
CLICKS = 20
LEAST = 16.0  # milliseconds; the shortest event that browsers report
WATCH = """() => {
  window.moved = [];
  window.painted = [];
  addEventListener("click", (event) => { event.start = performance.now(); }, true);
  addEventListener("click", (event) => moved.push(performance.now() - event.start));
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntriesByName("click")) painted.push(entry.duration);
  });
  observer.observe({ type: "event", durationThreshold: 16 }); }"""
# Two frames later the browser has reported the first one.
FRAMES = """() => new Promise((done) =>
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))"""


def peer(model: Any) -> Any:
    """Return the same network for pyAgrum; text files would round its probabilities."""
    made = gum.BayesNet()
    for i, name in enumerate(model.dag.nodes):
        labels = [str(k) for k in range(len(model.levels[name]))]
        made.add(gum.LabelizedVariable(f"v{i}", "", labels))
    for i, parents in enumerate(model.dag.parent_indices()):
        for p in reversed(parents):
            made.addArc(f"v{p}", f"v{i}")
        made.cpt(f"v{i}").fillWith(model.tables[model.dag.nodes[i]].ravel().tolist())
    return made


def clicked(page: Any, session: Any, place: Any) -> tuple[float, float, float]:
    """Click; return milliseconds until bars have moved, until they are painted, and of the CPU."""

    def processor() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return 1e3 * next(float(m["value"]) for m in metrics if m["name"] == "TaskDuration")

    place.scroll_into_view_if_needed()
    page.evaluate(FRAMES)
    page.evaluate("moved.length = painted.length = 0")
    before = processor()
    place.click()
    page.evaluate(FRAMES)
    spent = processor() - before
    moved, painted = page.evaluate("[moved[0], painted[0] ?? null]")
    return moved, LEAST if painted is None else painted, spent


def main(name: str) -> None:
    rng = np.random.default_rng(1)
    table = read_bif(HOME / "networks" / f"{name}.bif.gz").sample(2_000, seed=1)
    solution = ist.learn(table, seed=1)
    model: Any = solution.fit()
    nodes = list(model.dag.nodes)
    times: dict[str, list[tuple[float, float, float]]] = {"a level": [], "beside": []}
    gap = 0.0
    with tempfile.TemporaryDirectory() as made, sync_playwright() as started:
        path = Path(made) / "r.html"
        solution.report(path)
        engine = gum.LazyPropagation(peer(model))
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(path.as_uri())
        page.wait_for_selector("#waiting", state="detached")
        page.click("[data-view=whatif]")
        page.evaluate(WATCH)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        beside = page.locator("#asked .hint")
        seen: dict[int, int] = {}
        for _ in range(CLICKS):
            if len(seen) == 5:
                page.click("#observed button:has-text('Forget all')")
                seen = {}
            node = int(rng.choice([v for v in range(len(nodes)) if v not in seen]))
            answers = page.evaluate("Report.whatIf.answers().marginals")
            seen[node] = level = int(np.argmax(answers[node]))
            place = page.locator(f".card[data-node='{node}'] .level").nth(level)
            times["a level"].append(clicked(page, session, place))
            times["beside"].append(clicked(page, session, beside))
            engine.setEvidence({f"v{v}": code for v, code in seen.items()})
            engine.makeInference()
            answers = page.evaluate("Report.whatIf.answers().marginals")
            for v, own in enumerate(answers):
                theirs = engine.posterior(f"v{v}").toarray().ravel()
                gap = max(gap, float(np.abs(np.asarray(own) - theirs).max()))
        browser.close()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for where, rows in times.items():
        for text, values in zip(("moved", "painted", "processor"), np.array(rows).T, strict=True):
            print(
                f"{where}, {text}: median {np.median(values):.1f} ms, worst {values.max():.1f} ms"
            )
    print(f"largest difference from pyAgrum: {gap:.1e}")


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["alarm"])
