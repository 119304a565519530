"""Run every Python snippet of the README, the docs and the docstrings as a test.

Each page has a namespace of its own and runs in an empty directory of its own, so that a reader
who pastes one page from top to bottom sees what we saw.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import ExitStack, chdir
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser
from sybil.parsers.rest import DocTestParser
from sybil.sybil import SybilCollection

DOCTEST_FLAGS = ELLIPSIS | NORMALIZE_WHITESPACE
SANDBOX = "_sandbox"


def _enter_sandbox(namespace: dict[str, Any]) -> None:
    stack = ExitStack()
    stack.enter_context(chdir(stack.enter_context(TemporaryDirectory())))
    namespace[SANDBOX] = stack


def _leave_sandbox(namespace: dict[str, Any]) -> None:
    namespace.pop(SANDBOX).close()
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def _pages(path: str, *patterns: str) -> Sybil:
    return Sybil(
        path=path,
        patterns=patterns,
        excludes=["_build/*"],
        parsers=[PythonCodeBlockParser(doctest_optionflags=DOCTEST_FLAGS), SkipParser()],
        setup=_enter_sandbox,
        teardown=_leave_sandbox,
    )


def _docstrings(path: str) -> Sybil:
    return Sybil(
        path=path,
        patterns=["*.py"],
        parsers=[DocTestParser(DOCTEST_FLAGS)],
        setup=_enter_sandbox,
        teardown=_leave_sandbox,
    )


pytest_collect_file = SybilCollection(
    [_pages(".", "README.md", "CONTRIBUTING.md"), _pages("docs", "*.md"), _docstrings("src")]
).pytest()

# A busy machine must not fail a law: time is checked by pytest-timeout, not per example.
settings.register_profile("house", deadline=None, print_blob=True)
settings.load_profile("house")

ENGINE_MARKERS = {"1": ("spark", "postgres", "browser"), "spu": ("spu",)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give a test of time three attempts: another process may have had the machine."""
    for item in items:
        if item.get_closest_marker("timing"):
            item.add_marker(pytest.mark.flaky(reruns=2))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where all engines are promised to be installed, a skipped engine test is a failure."""
    report = yield
    promised = ENGINE_MARKERS.get(os.environ.get("ISTHMUS_NO_ENGINE_SKIPS", ""), ())
    if report.skipped and any(map(item.get_closest_marker, promised)):
        report.outcome = "failed"
        report.longrepr = f"skipped although the engine is promised: {report.longrepr}"
    return report
