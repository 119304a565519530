"""How long a report takes to open from disk, in headless Chromium at 1280 by 800 pixels.

    python benchmarks/report_opening.py                    reports of 10, 100, 223 and 500 nodes
    python benchmarks/report_opening.py old.html new.html  these reports, opened in turn

Milliseconds after the start of the navigation, medians of five openings: when the first content is
painted, the load event, when a search that started as soon as the page had a search box shows its
variable in the panel, and when the network is painted and can be clicked.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

import isthmus as ist

OPENINGS = 5
COLUMNS = ("first paint", "load", "search answers", "network painted")
WATCH = """
const box = () => document.querySelector("#search");
const times = (window.times = {});
const every = (look) => { if (!look()) setTimeout(() => every(look), 5); };
if (location.hash === "#search") every(() => {
  if (document.querySelector("#panel h2:not(.list)")) return (times.answer = performance.now());
  const name = document.querySelector("#names option")?.value;
  if (name === undefined || document.readyState === "loading") return false;
  box().value = name;
  box().dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  return false;
});
every(() => {
  try { if (!Report.network.cy.nodes().length) return false; } catch { return false; }
  // Rendered in the next frame, which has been painted before the one after it.
  requestAnimationFrame(() => requestAnimationFrame(() => (times.drawn = performance.now())));
  return true;
});
"""


def report(count: int, folder: Path) -> Path:
    """Write the report of a network in which each variable has up to two parents nearby."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(400, count))
    for j in range(1, count):
        parents = rng.choice(np.arange(max(0, j - 40), j), min(j, 2), replace=False)
        table[:, j] += table[:, parents] @ rng.choice([-0.8, 0.8], len(parents))
        table[:, j] /= table[:, j].std()
    solution = ist.learn({f"gene_{j:03d}": table[:, j] for j in range(count)})
    path = folder / f"{count}.html"
    solution.report(path)
    return path


def opening(browser: Any, path: Path, search: bool) -> dict[str, float]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(WATCH)
    page.goto(path.resolve().as_uri() + ("#search" if search else ""))
    while not page.evaluate(f"times.drawn && ({str(not search).lower()} || times.answer)"):
        page.wait_for_timeout(50)
    times: dict[str, float] = page.evaluate(
        """() => ({ ...times, load: performance.getEntriesByType("navigation")[0].loadEventEnd,
        first: performance.getEntriesByName("first-contentful-paint")[0].startTime })"""
    )
    page.close()
    return times


def main(paths: list[Path]) -> None:
    rows: dict[Path, list[tuple[float, ...]]] = {path: [] for path in paths}
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        for _ in range(OPENINGS):
            for path in paths:
                plain = opening(browser, path, search=False)
                answer = opening(browser, path, search=True)["answer"]
                rows[path].append((plain["first"], plain["load"], answer, plain["drawn"]))
        browser.close()
    print("| report |", " | ".join(COLUMNS), "|")
    print("| --- |", " | ".join("---:" for _ in COLUMNS), "|")
    for path, own in rows.items():
        medians = [round(statistics.median(column)) for column in zip(*own, strict=True)]
        print(f"| {path.name} |", " | ".join(map(str, medians)), "|")


if __name__ == "__main__":
    if sys.argv[1:]:
        main([Path(name) for name in sys.argv[1:]])
    else:
        with tempfile.TemporaryDirectory() as made:
            main([report(count, Path(made)) for count in (10, 100, 223, 500)])
