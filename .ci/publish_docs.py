"""Put built pages into the site: a folder per version, a list of them, and a first page.

    python .ci/publish_docs.py html site dev

`stable` is a copy of the latest release, and no release candidate ever is.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

FIRST = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Isthmus</title>
<meta http-equiv="refresh" content="0; url={version}/index.html">
</head><body><p><a href="{version}/index.html">The documentation of Isthmus</a></p></body></html>
"""


def publish(pages: Path, site: Path, version: str) -> None:
    """Copy pages into the folder of a version, and list all versions."""
    names = [version]
    released = [folder.name for folder in site.glob("v*") if folder.is_dir()]
    final = [name for name in (version, *released) if name.startswith("v") and "rc" not in name]
    if final and version == max(final, key=_order):
        names.append("stable")
    for name in names:
        shutil.rmtree(site / name, ignore_errors=True)
        shutil.copytree(pages, site / name)
    folders = [each.name for each in site.iterdir() if (each / "index.html").exists()]
    releases = sorted((name for name in folders if name.startswith("v")), key=_order, reverse=True)
    listed = [name for name in ("stable", "dev") if name in folders] + releases
    (site / "versions.js").write_text(f"window.isthmusVersions = {json.dumps(listed)};\n")
    (site / "index.html").write_text(FIRST.format(version=listed[0]))
    (site / ".nojekyll").touch()  # folders that begin with _ are pages, too


def _order(version: str) -> tuple[list[int], float]:
    """Sort as versions: v0.2.0rc1 before v0.2.0 before v0.10.0."""
    numbers, _, candidate = version.partition("rc")
    return [int(n) for n in re.findall(r"\d+", numbers)], float(candidate or "inf")


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
