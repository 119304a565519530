"""What is written for programs that read: its links and names exist."""

from __future__ import annotations

import re
from pathlib import Path

import isthmus as ist

HOUSE = Path(__file__).parents[1]


def test_links_of_the_list_of_pages_exist() -> None:
    text = (HOUSE / "docs/llms.txt").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    pages = [link for link in links if link.endswith(".html")]
    assert len(pages) > 15
    assert set(links) - set(pages) == {"SKILL.md"}
    for page in pages:
        assert (HOUSE / "docs" / page).with_suffix(".md").exists(), page
    assert text.startswith("# Isthmus\n\n> ")


def test_names_of_the_page_of_uses_exist() -> None:
    text = (Path(ist.__file__).parent / "SKILL.md").read_text(encoding="utf-8")
    names = set(re.findall(r"ist\.(\w+)", text))
    assert {"learn", "sample", "validate", "changes", "Federation"} <= names
    assert all(hasattr(ist, name) for name in names)
    front = text.split("---")[1]
    assert front.startswith("\nname: isthmus\ndescription: ")
    assert len(text.splitlines()) < 60  # one page
