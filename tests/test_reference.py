"""The reference lists every public name once."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

import isthmus

PAGES = Path(__file__).parents[1] / "docs" / "reference"
LISTS = re.compile(
    r"^\.\. currentmodule:: (\S+)\n\.\. autosummary::\n(?:   :.*\n)*\n((?:   .*\n)+)", re.MULTILINE
)
ELSEWHERE = {"isthmus.samplers": {"Progress", "Run", "drive"}}  # of isthmus.searches, too


def listed(page: Path) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for module, lines in LISTS.findall(page.read_text(encoding="utf-8")):
        names.setdefault(module, []).extend(lines.split())
    return names


ALL = {
    module: names for page in sorted(PAGES.glob("*.md")) for module, names in listed(page).items()
}


def test_the_reference_has_its_pages() -> None:
    assert {"isthmus", "isthmus.scores", "isthmus.joint"} <= ALL.keys()


@pytest.mark.parametrize("module", sorted(ALL.keys() - {"isthmus"}))
def test_every_public_name_is_listed_once(module: str) -> None:
    public = {*importlib.import_module(module).__all__} - ELSEWHERE.get(module, set())
    assert Counter(ALL[module]) == Counter(public)


def test_what_the_package_exports_is_listed() -> None:
    names = {name for names in ALL.values() for name in names}
    pages = {page.stem for page in PAGES.glob("*.md")}
    assert {name for name in isthmus.__all__ if not name.startswith("_")} <= names | pages
