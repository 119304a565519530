"""Run every Python snippet of the README, the docs and the docstrings as a test.

Each file has a namespace of its own and runs in an empty directory of its own, so that a reader
who pastes one page from top to bottom sees what we saw.
"""

from __future__ import annotations

from contextlib import ExitStack, chdir
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from tempfile import TemporaryDirectory
from typing import Any

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
