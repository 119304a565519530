"""How long the pages of the documentation take to open from disk, in headless Chromium.

    sphinx-build -b html docs build/html
    python benchmarks/docs_opening.py build/html

Opens every page once at 1280 by 800 pixels, and the slowest ones four more times, in turn. Prints
the median time from the start of the navigation to the end of the load event, by the clock, and the
number of elements.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, sync_playwright

SLOWEST, MORE_OPENINGS = 25, 4
FIGURES = """() => [
  performance.getEntriesByType("navigation")[0].loadEventEnd,
  document.getElementsByTagName("*").length,
]"""


def open_page(browser: Browser, file: Path) -> tuple[float, int]:
    """Return the milliseconds until a page was loaded, and its elements."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(file.resolve().as_uri(), wait_until="load")
    page.wait_for_function("performance.getEntriesByType('navigation')[0].loadEventEnd > 0")
    milliseconds, elements = page.evaluate(FIGURES)
    page.close()
    return milliseconds, elements


def main(folder: Path) -> None:
    """Open all pages of a folder."""
    files = [f for f in sorted(folder.rglob("*.html")) if "_static" not in f.parts]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        open_page(browser, files[0])  # starts the processes of the browser
        found = {file: [open_page(browser, file)] for file in files}
        slowest = sorted(files, key=lambda file: found[file][0], reverse=True)[:SLOWEST]
        for _ in range(MORE_OPENINGS):
            for file in slowest:
                found[file].append(open_page(browser, file))
        browser.close()
    times = {file: median(time for time, _ in opened) for file, opened in found.items()}
    print("| page | ms | elements |\n| --- | ---: | ---: |")
    for file in sorted(slowest, key=lambda file: times[file], reverse=True)[:10]:
        print(f"| {file.relative_to(folder)} | {times[file]:.0f} | {found[file][0][1]:,} |")
    slow = sum(time > 1000 for time in times.values())
    print(f"\n{len(files)} pages, {slow} of them above a second")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
