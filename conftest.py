"""What all tests share: snippets of pages and docstrings as tests, markers, and promised engines.

Every Python snippet of the README, the docs and the docstrings is a test. Each page has a namespace
of its own and runs in an empty directory of its own, so that a reader who pastes one page from top
to bottom sees what we saw.

Only pytest itself is needed. Without sybil, snippets are not collected; without Hypothesis, files
of laws are not; without pytest-timeout and pytest-rerunfailures, their markers do nothing.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, chdir
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

DOCTEST_FLAGS = ELLIPSIS | NORMALIZE_WHITESPACE
SANDBOX = "_sandbox"
JOINT = "packages/isthmus-joint/src"
HAS_HYPOTHESIS = find_spec("hypothesis") is not None

ENGINE_MARKERS = ("spark", "postgres", "browser")

NOT_FAST = ("slow", "long", "timing", *ENGINE_MARKERS)
"""Markers of tests that are not `fast`."""

LONG_FOLDERS = (
    *(
        "docs/",
        "src/",
        "README.md",
        "CONTRIBUTING.md",
        "packages/",
        "tests/calibration/",
        "tests/gp/",
        "tests/laws/",
    ),
    *("tests/matrix/", "tests/neural/", "tests/processes/", "tests/published/"),
)
"""Folders of which no test is `fast`; elsewhere, one that takes long is marked `long`."""


def _enter_sandbox(namespace: dict[str, Any]) -> None:
    stack = ExitStack()
    stack.enter_context(chdir(stack.enter_context(TemporaryDirectory())))
    namespace[SANDBOX] = stack


def _leave_sandbox(namespace: dict[str, Any]) -> None:
    namespace.pop(SANDBOX).close()
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def _snippets() -> Callable[..., Any]:
    """Return the hook that collects the snippets of pages and docstrings."""
    from sybil import Sybil
    from sybil.parsers.myst import PythonCodeBlockParser, SkipParser
    from sybil.parsers.rest import DocTestParser
    from sybil.sybil import SybilCollection

    alone: dict[str, Any] = {"setup": _enter_sandbox, "teardown": _leave_sandbox}
    pages: list[Any] = [PythonCodeBlockParser(doctest_optionflags=DOCTEST_FLAGS), SkipParser()]
    docstrings: list[Any] = [DocTestParser(DOCTEST_FLAGS)]
    return SybilCollection(
        [
            Sybil(path=".", patterns=["README.md", "CONTRIBUTING.md"], parsers=pages, **alone),
            Sybil(path="docs", patterns=["*.md"], excludes=["_build/*"], parsers=pages, **alone),
            Sybil(path="src", patterns=["*.py"], parsers=docstrings, **alone),
            Sybil(path="src", patterns=["*.md"], parsers=pages, **alone),
            Sybil(path=JOINT, patterns=["*.py"], parsers=docstrings, **alone),
        ]
    ).pytest()


if find_spec("sybil") is not None:
    pytest_collect_file = _snippets()

if HAS_HYPOTHESIS:
    from hypothesis import HealthCheck, settings

    # The same examples in every run, so that a change fails for what it changes; with ISTHMUS_LONG,
    # as every night, others. A busy machine must not fail a law: pytest-timeout checks time.
    settings.register_profile(
        "house",
        deadline=None,
        max_examples=100 if "ISTHMUS_LONG" in os.environ else 25,
        derandomize="ISTHMUS_LONG" not in os.environ,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("house")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Accept the settings of plugins that are not installed."""
    if find_spec("pytest_timeout") is None:
        parser.addini("timeout", "of pytest-timeout, which is not installed")


def pytest_configure(config: pytest.Config) -> None:
    """Accept the markers of plugins that are not installed."""
    for plugin, marker in (("pytest_timeout", "timeout"), ("pytest_rerunfailures", "flaky")):
        if find_spec(plugin) is None:
            config.addinivalue_line("markers", f"{marker}: of {plugin}, which is not installed")


def pytest_report_header() -> list[str]:
    """Say which tests are left out because a library of the group `bare` is missing."""
    left_out = {"sybil": "snippets of pages and docstrings", "hypothesis": "files with laws"}
    return [
        f"left out: {what} ({name} is not installed)"
        for name, what in left_out.items()
        if find_spec(name) is None
    ]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files of laws where Hypothesis is not installed, and folders that are not fast."""
    if config.option.markexpr == "fast" and collection_path.is_relative_to(config.rootpath):
        name = collection_path.relative_to(config.rootpath).as_posix()
        if f"{name}/".startswith(LONG_FOLDERS) or name in LONG_FOLDERS:
            return True
    if HAS_HYPOTHESIS or collection_path.suffix != ".py":
        return None
    return True if "from hypothesis import" in collection_path.read_text("utf-8") else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark fast tests, and give a test of time five attempts: others may have had the machine."""
    for item in items:
        if item.get_closest_marker("timing"):
            item.add_marker(pytest.mark.flaky(reruns=4))
        if not _takes_long(item):
            item.add_marker(pytest.mark.fast)


def _takes_long(item: pytest.Item) -> bool:
    marked = any(map(item.get_closest_marker, NOT_FAST))
    return marked or item.nodeid.startswith(LONG_FOLDERS)


def pytest_collection_finish() -> None:
    """Spare the garbage collector all modules: thousands of tests would look through them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where all engines are promised to be installed, a skipped engine test is a failure."""
    report = yield
    promised = bool(os.environ.get("ISTHMUS_NO_ENGINE_SKIPS"))
    if promised and report.skipped and any(map(item.get_closest_marker, ENGINE_MARKERS)):
        report.outcome = "failed"
        report.longrepr = f"skipped although the engine is promised: {report.longrepr}"
    return report
