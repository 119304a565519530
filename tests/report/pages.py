"""Pages for tests of reports in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import isthmus as ist
from isthmus.report import Measure
from isthmus.report.page import EdgeRow, Page
from isthmus.report.rendering import render

PATIENCE = 240_000  # milliseconds; a busy machine takes its time
DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


def network(count: int) -> ist.DAG:
    """Return a graph of so many nodes in which each has two parents nearby."""
    names = [f"gene_{i:03d}" for i in range(count)]
    pairs = [(i - step, i) for i in range(count) for step in (1 + i % 7, 11) if i >= step]
    return ist.DAG(names, [(names[a], names[b]) for a, b in pairs])


def write(path: Path, dag: ist.DAG, parameters: Any = "No parameters.", **more: Any) -> Path:
    page = Page(
        title="A test",
        nodes=dag.nodes,
        summary=("Made for a test.",),
        notes=(),
        measures=(Measure("strength", "Strength is what it is."),),
        edges=tuple(EdgeRow(a, b, True, (1.0 + i,)) for i, (a, b) in enumerate(dag.edges)),
        network=parameters,
        releases=(),
        **more,
    )
    path.write_text(render(page), encoding="utf-8")
    return path


def opened(browser: Any, path: Path, size: dict[str, int] = DESKTOP) -> Any:
    """Open a page; whatever it requests beyond itself, and every error, fails the test."""
    page = browser.new_page(viewport=size)
    page.set_default_timeout(PATIENCE)
    page.problems = []
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda m: page.problems.append(m.text) if m.type == "error" else None)
    page.on("request", lambda r: page.problems.append(r.url) if "file:" not in r.url else None)
    page.goto(path.as_uri())
    wait_until(page, "Report.network.cy?.nodes().length > 0")
    return page


def wait_until(page: Any, condition: str) -> None:
    """Wait for a condition in the page, whose policy forbids wait_for_function to try twice."""
    page.evaluate(
        f"""() => new Promise((done, fail) => {{
          setTimeout(() => fail(new Error({condition!r})), {PATIENCE});
          const look = () => ({condition} ? done() : requestAnimationFrame(look));
          look(); }})"""
    )
