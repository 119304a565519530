"""A browser for tests of reports."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from tests.report.pages import PATIENCE

from isthmus.report.rendering import _libraries

FLAGS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("Chromium is not installed")
    if not _libraries():
        pytest.skip("the libraries of the report are missing: run sh build_assets.sh")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=path, args=list(FLAGS), timeout=PATIENCE)
        yield opened
        opened.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """Yield a browser whose pages are closed after the test."""
    yield chromium
    for context in chromium.contexts:
        context.close()
