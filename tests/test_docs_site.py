"""The scripts that check the built pages and put them into the site of all versions."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent.parent / ".ci"


def script(name: str) -> dict[str, Any]:
    return runpy.run_path(str(SCRIPTS / name))


def pages(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "index.html").write_text(text, encoding="utf-8")
    return folder


def test_a_folder_per_version_and_the_latest_release_is_stable(tmp_path: Path) -> None:
    publish, site = script("publish_docs.py")["publish"], tmp_path / "site"
    site.mkdir()
    for version in ("dev", "v0.9.0", "v0.10.0", "v0.9.1", "v0.11.0rc1", "dev"):
        built = tmp_path / f"built-{version}-{len(list(tmp_path.iterdir()))}"
        publish(pages(built, version), site, version)
    listed = (site / "versions.js").read_text()
    assert json.loads(listed.partition("= ")[2].strip().rstrip(";")) == [
        *("stable", "dev", "v0.11.0rc1", "v0.10.0", "v0.9.1", "v0.9.0"),
    ]
    assert (site / "stable" / "index.html").read_text() == "v0.10.0"
    assert 'href="stable/index.html"' in (site / "index.html").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('<a href="index.html#here">x</a><p id="here">', "0 problems"),
        ('<a href="absent.html">x</a>', "dead link absent.html"),
        ('<a href="#nowhere">x</a>', "dead link #nowhere"),
        ('<script src="https://example.org/x.js"></script>', "loads https://example.org/x.js"),
        ('<img src="a.png"><p>', "no alt text for a.png"),
        ("<table><tr><th><p> </p></th><th>x</th></tr></table>", "empty heading of a table"),
        ('<img src="a.png" alt="x">', "loads a.png, which does not exist"),
        ("<br>" * 5000, "has 5000 elements"),
        ("x" * 300_000, "has 300000 bytes of page"),
        ("<table><tr><td></td><th><b>x</b></th></tr></table>", "0 problems"),
    ],
)
def test_dead_links_and_remote_loads_are_found(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = script("check_pages.py")["main"](pages(tmp_path / "html", text))
    out = capsys.readouterr().out
    assert said in out
    assert (code == 0) == (said == "0 problems")
