"""The reference lists every public name once."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import Counter
from pathlib import Path

import pytest

import isthmus

PAGES = Path(__file__).parents[1] / "docs" / "reference"
LISTS = re.compile(
    r"^\.\. currentmodule:: (\S+)\n\.\. autosummary::\n(?:   :.*\n)*\n((?:   .*\n)+)", re.MULTILINE
)
MODULES = {module.name for module in pkgutil.iter_modules(isthmus.__path__)}


def listed(page: Path) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for module, lines in LISTS.findall(page.read_text(encoding="utf-8")):
        names.setdefault(module, []).extend(lines.split())
    return names


ALL = {
    module: names for page in sorted(PAGES.glob("*.md")) for module, names in listed(page).items()
}


def test_the_reference_has_its_pages() -> None:
    assert {"isthmus", "isthmus.scores", "isthmus_joint"} <= ALL.keys()


@pytest.mark.parametrize("module", sorted(ALL.keys() - {"isthmus"}))
def test_every_public_name_is_listed_once(module: str) -> None:
    public = {*importlib.import_module(module).__all__}
    assert Counter(ALL[module]) == Counter(public)


def test_the_package_offers_what_is_documented() -> None:
    """Functions and modules have pages of their own, classes are listed with their families."""
    classes = {
        name
        for module, names in ALL.items()
        for name in names
        if getattr(isthmus, name, None) is getattr(importlib.import_module(module), name)
    }
    modules = {page.stem for page in PAGES.glob("*.md")} & MODULES - {"sklearn"}  # of an extra
    public = {name for name in dir(isthmus) if not name.startswith("__")}
    assert public == classes | modules
    assert {*isthmus.__all__} == classes | (modules & {"datasets"})


def test_promised_names_are_public() -> None:
    """About 150 names are promised; more would be hard to keep, and fewer of little use."""
    page = (PAGES.parent / "explanation" / "stability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(isthmus\.\w+)` \| (.+) \|$", page, flags=re.MULTILINE)
    promised = {(module, name) for module, names in rows for name in re.findall(r"`(\w+)`", names)}
    public = {(module, name) for module, names in ALL.items() for name in names}
    assert promised <= public | {("isthmus.sklearn", "BayesianNetwork")}
    assert not {name for _, name in promised} & {*isthmus.__all__}  # they are promised anyway
    assert 100 <= len(promised) + len(isthmus.__all__) <= 160
