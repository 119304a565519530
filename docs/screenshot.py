"""Make the picture of a report: python docs/screenshot.py (needs Chromium and playwright)."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import isthmus as ist

TARGET = Path(__file__).parent / "_static" / "report.png"


def main() -> None:
    """Learn a network, open its report, select a variable, and take the picture."""
    data = ist.datasets.asia(rows=1000)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        path = Path(folder) / "report.html"
        ist.learn(data).report(path, title="Lung diseases", reference=data.dag)
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 880})
        page.goto(path.as_uri())
        page.fill("#search", "either")
        page.press("#search", "Enter")
        page.wait_for_timeout(500)
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
