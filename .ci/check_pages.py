"""Fail when a built page would load anything from elsewhere, or has a link to nowhere.

Docs must open from disk, without a network, within a second, and say everything aloud: pictures
have a text, and headings of tables are not empty.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# Times depend on the machine. These sizes do not; pages below them took less than a second.
KINDS = {".js": "scripts", ".css": "style sheets"}
MOST_ELEMENTS = 4_700
MOST_ELEMENTS_OF_SOURCES = 5_500  # a module of 750 lines, an element for each word
MOST_BYTES = {"page": 200_000, "scripts": 200_000, "style sheets": 500_000}
HARMLESS_LINKS = {"canonical", "license", "author", "next", "prev", "search"}


class Page(HTMLParser):
    """Collects what a page loads by itself, its links within the site, its anchors, and gaps."""

    def __init__(self) -> None:
        super().__init__()
        self.remote: list[str] = []
        self.loaded: list[str] = []
        self.elements = 0
        self.links: list[str] = []
        self.anchors: set[str] = {""}
        self.gaps: list[str] = []
        self.heading: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the address if the tag makes the browser load it, or a reader may follow it."""
        given = dict(attrs)
        self.elements += 1
        if tag == "img" and "alt" not in given:
            self.gaps.append(f"has no alt text for {given.get('src')}")
        if tag == "th":
            self.heading = ""
        self.anchors |= {given.get("id") or "", given.get("name") or ""}
        link = given.get("href") if tag == "a" else None
        if link and ":" not in link.partition("/")[0] and not link.startswith("//"):
            self.links.append(link)
        if tag == "link" and given.get("rel") in HARMLESS_LINKS:
            return
        address = given.get(LOADING.get(tag, "")) or ""
        if address.startswith(("http:", "https:", "//")):
            self.remote.append(address)
        elif address and not address.startswith("data:"):
            self.loaded.append(address)

    def handle_data(self, data: str) -> None:
        """Read the text of a heading of a table."""
        if self.heading is not None:
            self.heading += data.strip()

    def handle_endtag(self, tag: str) -> None:
        """Note a heading of a table that is empty."""
        if tag == "th":
            if self.heading == "":
                self.gaps.append(f"has an empty heading of a table in line {self.getpos()[0]}")
            self.heading = None


def read(file: Path) -> Page:
    """Read a page."""
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def dead_links(file: Path, pages: dict[Path, Page]) -> list[str]:
    """Return the links of a page that lead to no file, or to no place in it."""
    dead = []
    for link in pages[file].links:
        address, anchor = urldefrag(link)
        target = (file.parent / unquote(address)).resolve() if address else file
        target = target / "index.html" if target.is_dir() else target
        # From pages of sources, Sphinx links to a name in the first package that re-exports it, and
        # it does not write such pages again in a folder that has them.
        known = target not in pages or "_modules" in (*file.parts, *target.parts)
        if not target.exists() or not (known or unquote(anchor) in pages[target].anchors):
            dead.append(link)
    return dead


def weight(file: Path, page: Page) -> list[str]:
    """Return what is missing on disk, and what is too large to be loaded within a second."""
    most = MOST_ELEMENTS_OF_SOURCES if "_modules" in file.parts else MOST_ELEMENTS
    found = [f"has {page.elements} elements"] if page.elements > most else []
    sizes = {"page": file.stat().st_size, "scripts": 0, "style sheets": 0}
    for address in page.loaded:
        target = (file.parent / unquote(urlsplit(address).path)).resolve()
        if not target.is_file():
            found.append(f"loads {address}, which does not exist")
        elif target.suffix in KINDS:
            sizes[KINDS[target.suffix]] += target.stat().st_size
    return found + [
        f"has {size} bytes of {what}"
        for what, size in sizes.items()
        if size > MOST_BYTES[what] and file.stem != "search"
    ]


def main(folder: Path) -> int:
    """Check every page in a folder."""
    files = sorted(file.resolve() for file in folder.rglob("*.html"))
    # The theme leaves a template among its files.
    pages = {file: read(file) for file in files if file.name != "webpack-macros.html"}
    bad = 0
    for file, page in pages.items():
        problems = [f"loads {address}" for address in page.remote]
        problems += [f"has a dead link {link}" for link in dead_links(file, pages)]
        problems += page.gaps + weight(file, page)
        bad += len(problems)
        for problem in problems:
            print(f"{file.relative_to(folder.resolve())} {problem}")
    print(f"{len(pages)} pages, {bad} problems")
    return 1 if bad or not pages else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
