"""How long a report takes to open from disk, in headless Chromium at 1280 by 800 pixels.

    python benchmarks/report_opening.py                    reports of 10, 100, 223 and 500 nodes
    python benchmarks/report_opening.py old.html new.html  these reports, opened in turn

From the start of the navigation until the first content is painted, the load event, a search that
starts as soon as the page has a search box shows its variable in the panel, and the network is
painted and can be clicked: milliseconds by the clock and, in brackets, of the processor in the
thread that runs the page, which other programs do not stretch. The least of three openings each.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from report_pictures import genes

import isthmus as ist

OPENINGS = 3
MOMENTS = {
    "firstContentfulPaint": "first paint",
    "loadEventEnd": "load",
    "answer": "search answers",
    "drawn": "network painted",
}
WATCH = """
const box = () => document.querySelector("#search");
const every = (look) => { if (!look()) setTimeout(() => every(look), 5); };
if (location.hash === "#search") every(() => {
  if (document.querySelector("#panel h2:not(.list)")) return performance.mark("answer");
  const name = document.querySelector("#names option")?.value;
  if (name === undefined || document.readyState === "loading") return false;
  box().value = name;
  box().dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  return false;
});
every(() => {
  try { if (!Report.network.cy.nodes().length) return false; } catch { return false; }
  // Rendered in the next frame, which has been painted before the one after it.
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("drawn")));
  return true;
});
"""


def report(count: int, folder: Path) -> Path:
    """Write the report of a network in which each variable has up to two parents nearby."""
    solution = ist.learn(genes(count))
    path = folder / f"{count}.html"
    solution.report(path)
    return path


def opening(browser: Any, path: Path, *, search: bool) -> dict[str, tuple[float, float]]:
    """Open a report; return milliseconds, by the clock and of the processor, until each moment."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.add_init_script(WATCH)
    browser.start_tracing(page=page, categories=["-*", "toplevel", "loading", "blink.user_timing"])
    page.goto(path.resolve().as_uri() + ("#search" if search else ""))
    for mark in ["drawn", "answer"] if search else ["drawn"]:
        while not page.evaluate(f"performance.getEntriesByName({mark!r}).length"):
            page.wait_for_timeout(100)
    events = json.loads(browser.stop_tracing())["traceEvents"]
    page.close()
    begin = next(
        e
        for e in events
        if e["name"] == "navigationStart" and path.name in json.dumps(e.get("args", {}))
    )
    own = [e for e in events if (e["pid"], e["tid"]) == (begin["pid"], begin["tid"])]
    tasks = [
        (e["ts"], e["dur"], e["tdur"])
        for e in own
        if e["name"].endswith("RunTask") and e.get("tdur") and e["ts"] >= begin["ts"]
    ]
    return {
        e["name"]: (
            (e["ts"] - begin["ts"]) / 1000,
            sum(cpu * min(1.0, (e["ts"] - at) / long) for at, long, cpu in tasks if at < e["ts"])
            / 1000,
        )
        for e in own
        if e["name"] in MOMENTS
    }


def main(paths: list[Path]) -> None:
    """Open each report in turn, and print the least times as a table."""
    rows: dict[Path, list[dict[str, tuple[float, float]]]] = {path: [] for path in paths}
    with sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for _ in range(OPENINGS):
            for path in paths:
                answer = opening(browser, path, search=True)["answer"]
                rows[path].append({**opening(browser, path, search=False), "answer": answer})
        browser.close()
    print("| report |", " | ".join(MOMENTS.values()), "|")
    print("| --- |", " | ".join("---:" for _ in MOMENTS), "|")
    for path, own in rows.items():
        least = [[min(row[m][i] for row in own) for i in (0, 1)] for m in MOMENTS]
        print(f"| {path.name} |", " | ".join(f"{a:.0f} ({b:.0f})" for a, b in least), "|")


if __name__ == "__main__":
    if sys.argv[1:]:
        main([Path(name) for name in sys.argv[1:]])
    else:
        with tempfile.TemporaryDirectory() as made:
            main([report(count, Path(made)) for count in (10, 100, 223, 500)])
