"""Fail when a built page would load anything from elsewhere: docs must open without a network."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
HARMLESS_LINKS = {"canonical", "license", "author", "next", "prev", "search"}


class Loads(HTMLParser):
    """Collects the addresses a page loads by itself, not the links a reader may follow."""

    def __init__(self) -> None:
        super().__init__()
        self.remote: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the address if the tag makes the browser load it."""
        given = dict(attrs)
        if tag == "link" and given.get("rel") in HARMLESS_LINKS:
            return
        address = given.get(LOADING.get(tag, "")) or ""
        if address.startswith(("http:", "https:", "//")):
            self.remote.append(address)


def main(folder: Path) -> int:
    """Check every page in a folder."""
    pages = sorted(folder.rglob("*.html"))
    bad = 0
    for page in pages:
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        for address in loads.remote:
            bad += 1
            print(f"{page.relative_to(folder)} loads {address}")
    print(f"{len(pages)} pages, {bad} remote loads")
    return 1 if bad or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
