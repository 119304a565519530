"""Write the version of a release into every file that names it.

    python packaging/set_version.py 0.1.0          # or 0.2.0.dev0, 0.1.0rc1
    python packaging/set_version.py --check 0.1.0  # fail if a file names another one

pyproject.toml is the place of the version; the other files have copies, since their formats cannot
read it from there.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
DISTRIBUTION = (
    (r'^version = "(.*)"$', "{version}"),
    (r'"isthmus[-\w]*(?:\[[\w,]*\])?==([^"]*)"', "{version}"),  # pins of each other
)
COPIES = {
    "CITATION.cff": [(r'^version: "(.*)"$', "{version}")],
    # These name releases only.
    "containers/Containerfile": [(r"isthmus\[[\w,]*\]==([\d.]+\d)", "{release}")],
    "containers/chart/Chart.yaml": [(r"^version: (.*)$", "{release}")],
    "containers/chart/values.yaml": [(r'^  tag: "(.*)"$', "{release}")],
    "packages/isthmus-r/DESCRIPTION": [(r"^Version: (.*)$", "{release}")],
    "packaging/conda/recipe.yaml": [(r'^  version: "(.*)"$', "{release}")],
}


def edited(version: str) -> dict[Path, str]:
    """Return the text that each file has for a version."""
    if not re.fullmatch(r"\d+\.\d+\.\d+(rc\d+|\.dev\d+)?", version):
        sys.exit(f"'{version}' is no version such as 0.1.0, 0.1.0rc1 or 0.2.0.dev0.")
    release = re.match(r"[\d.]*\d", version.partition(".dev")[0].partition("rc")[0])
    assert release is not None
    rules = {ROOT / name: patterns for name, patterns in COPIES.items()}
    for file in (ROOT / "pyproject.toml", *ROOT.glob("packages/*/pyproject.toml")):
        rules[file] = list(DISTRIBUTION)
    texts = {}
    for file, patterns in rules.items():
        text = file.read_text("utf-8")
        for number, (pattern, form) in enumerate(patterns):
            new = form.format(version=version, release=release[0])
            text, count = re.subn(
                pattern,
                lambda m, new=new: (
                    m[0][: m.start(1) - m.start()] + new + m[0][m.end(1) - m.start() :]
                ),
                text,
                flags=re.MULTILINE,
            )
            if not count and number == 0:
                sys.exit(f"{file.relative_to(ROOT)} names no version where one was expected.")
        texts[file] = text
    return texts


def main(arguments: list[str]) -> int:
    """Write or check a version."""
    if len(arguments) not in (1, 2) or (len(arguments) == 2 and arguments[0] != "--check"):
        sys.exit(__doc__)
    wrong = {f: t for f, t in edited(arguments[-1]).items() if f.read_text("utf-8") != t}
    for file, text in wrong.items():
        if len(arguments) == 2:
            print(f"{file.relative_to(ROOT)} names another version.", file=sys.stderr)
        else:
            file.write_text(text, "utf-8")
            print(file.relative_to(ROOT))
    return 1 if wrong and len(arguments) == 2 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
