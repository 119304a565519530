"""How long a click on a level takes in the what-if view of a report, in headless Chromium.

    python benchmarks/report_clicks.py [NETWORK]        alarm unless told otherwise

Twenty clicks on random levels, with one to five observed variables at a time. Milliseconds from the
click until the last bar has its new width, and until that is painted; and the largest difference
from pyAgrum. Networks are looked for in ../shared/data, or under ISTHMUS_DATA.
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
CLICK = """([node, level]) => new Promise((done) => {
  const bar = document.querySelectorAll(`.card[data-node="${node}"] .level`)[level];
  const start = performance.now();
  bar.click();
  const moved = performance.now() - start;
  // Drawn in the next frame, which has been painted before the one after it.
  const painted = () => done([moved, performance.now() - start]);
  requestAnimationFrame(() => requestAnimationFrame(painted));
})"""


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


def main(name: str) -> None:
    rng = np.random.default_rng(1)
    table = read_bif(HOME / "networks" / f"{name}.bif.gz").sample(2_000, seed=1)
    solution = ist.learn(table, seed=1)
    model: Any = solution.fit()
    nodes = list(model.dag.nodes)
    times, gap = [], 0.0
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
        seen: dict[int, int] = {}
        for _ in range(20):
            if len(seen) == 5:
                page.click("#observed button:has-text('Forget all')")
                seen = {}
            node = int(rng.choice([v for v in range(len(nodes)) if v not in seen]))
            answers = page.evaluate("Report.whatIf.answers().marginals")
            seen[node] = level = int(np.argmax(answers[node]))
            times.append(page.evaluate(CLICK, [node, level]))
            engine.setEvidence({f"v{v}": code for v, code in seen.items()})
            engine.makeInference()
            answers = page.evaluate("Report.whatIf.answers().marginals")
            for v, own in enumerate(answers):
                theirs = engine.posterior(f"v{v}").toarray().ravel()
                gap = max(gap, float(np.abs(np.asarray(own) - theirs).max()))
        browser.close()
    moved, painted = np.array(times).T
    for text, values in (("bars moved", moved), ("painted", painted)):
        print(f"{text}: median {np.median(values):.1f} ms, worst {values.max():.1f} ms")
    print(f"largest difference from pyAgrum: {gap:.1e}")


if __name__ == "__main__":
    main(*sys.argv[1:2] or ["alarm"])
