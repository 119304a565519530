"""Fail when a wheel or a source distribution must not be published.

    python .ci/check_wheel.py dist/*

Built where npm is missing, it has no libraries for the interactive drawing of reports. A wheel must
also list what it contains of others (PEP 770), and have the licences of that.
"""

from __future__ import annotations

import json
import sys
import tarfile
import zipfile
from pathlib import Path

ASSETS = ("cytoscape.min.js", "dagre.min.js", "licences.txt")
COMPONENTS = {"nanobind", "robin-map", "cytoscape", "@dagrejs/dagre", "@dagrejs/graphlib"}
LICENCES = ("LICENSE", "nanobind.txt", "robin-map.txt")


def missing(path: Path) -> list[str]:
    """Return what a distribution lacks of the libraries of the report, licences and components."""
    if path.suffix != ".whl":
        with tarfile.open(path) as archive:
            return lacks_assets(archive.getnames())
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        lacking = lacks_assets(names)
        licences = {name.rpartition("/")[2] for name in names if ".dist-info/licenses/" in name}
        lacking += [f"the licence {name}" for name in LICENCES if name not in licences]
        bills = [name for name in names if name.endswith(".dist-info/sboms/isthmus.cdx.json")]
        if not bills:
            return [*lacking, "its bill of materials"]
        bill = json.loads(archive.read(bills[0]))
    version = path.name.split("-")[1]
    if bill["metadata"]["component"]["version"] != version:
        lacking.append(f"a bill of materials of version {version}")
    listed = {component["name"] for component in bill["components"]}
    return lacking + [f"{name} in its bill of materials" for name in sorted(COMPONENTS - listed)]


def lacks_assets(names: list[str]) -> list[str]:
    """Return the libraries of the report that are not among these files."""
    return [a for a in ASSETS if not any(n.endswith(f"isthmus/report/assets/{a}") for n in names)]


def main(paths: list[Path]) -> int:
    """Check distributions."""
    for path in paths:
        lacking = missing(path)
        print(f"{path.name}, {path.stat().st_size} bytes")
        if lacking:
            print(
                f"{path.name} lacks {', '.join(lacking)}. For the libraries of the report, install "
                "Node.js 20 or newer, run `sh build_assets.sh`, and build again.",
                file=sys.stderr,
            )
            return 1
    return 0 if paths else 1


if __name__ == "__main__":
    sys.exit(main([Path(name) for name in sys.argv[1:]]))
