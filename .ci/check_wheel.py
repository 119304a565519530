"""Fail when a wheel or a source distribution must not be published.

    python .ci/check_wheel.py dist/*

Built where npm is missing, it has no libraries for the interactive drawing of reports.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

ASSETS = ("cytoscape.min.js", "dagre.min.js", "licences.txt")


def missing(path: Path) -> list[str]:
    """Return the libraries of the report that a distribution lacks."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    else:
        with tarfile.open(path) as archive:
            names = archive.getnames()
    return [a for a in ASSETS if not any(n.endswith(f"isthmus/report/assets/{a}") for n in names)]


def main(paths: list[Path]) -> int:
    """Check distributions."""
    for path in paths:
        lacking = missing(path)
        print(f"{path.name}, {path.stat().st_size} bytes")
        if lacking:
            print(
                f"{path.name} lacks {', '.join(lacking)}: reports would have no interactive "
                "drawing. Install Node.js 20 or newer, run `sh build_assets.sh`, build again.",
                file=sys.stderr,
            )
            return 1
    return 0 if paths else 1


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
