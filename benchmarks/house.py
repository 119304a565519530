"""How large the house is: files and lines of each package, and what one call of `learn` crosses.

    python benchmarks/house.py           # prints the tables of results/house.md

Lines are of Python files, with blank lines, comments and docstrings. A call is traced by the
interpreter's profiler: files and functions of the project that run, and the deepest chain of calls.
Words are those of Markdown that is not a result, tables and code included.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from threading import get_ident
from types import FrameType

import numpy as np

import isthmus as ist

ROOT = Path(__file__).parents[1]
PACKAGES = {
    "isthmus": ROOT / "src/isthmus",
    "isthmus-joint": ROOT / "packages/isthmus-joint/src/isthmus_joint",
    "isthmus-flower": ROOT / "packages/isthmus-flower/src",
    "isthmus-nvflare": ROOT / "packages/isthmus-nvflare/src",
}


def kinds_of_lines(path: Path) -> Counter[str]:
    """Count the lines of a file: blank, comments, docstrings, imports and the rest."""
    text = path.read_text("utf-8")
    lines = text.splitlines()
    kinds = ["code" if line.strip() else "blank" for line in lines]
    for number, line in enumerate(lines):
        if line.strip().startswith("#"):
            kinds[number] = "comments"
    for node in ast.walk(ast.parse(text)):
        kind = ""
        if isinstance(node, ast.Import | ast.ImportFrom):
            kind = "imports"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            kind = "docstrings" if isinstance(node.value.value, str) else ""
        if kind:
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            kinds[first:last] = [kind] * (last - first)
    return Counter(kinds)


def crossed(call: Callable[[], object]) -> tuple[int, int, int]:
    """Return the files and functions of the project that a call runs, and its depth."""
    folders = tuple(str(folder) for folder in PACKAGES.values())
    seen: set[tuple[str, str]] = set()
    depth, deepest = Counter[int](), 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal deepest
        code = frame.f_code
        if not code.co_filename.startswith(folders) or code.co_name.startswith("<"):
            return
        if event == "call":
            seen.add((code.co_filename, code.co_qualname))
            depth[get_ident()] += 1
            deepest = max(deepest, depth[get_ident()])
        elif event == "return":
            depth[get_ident()] -= 1

    call()  # imports and caches are not what is traced
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return len({file for file, _ in seen}), len(seen), deepest


def table(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Three hundred rows of a chain of five variables."""
    columns = {"a": rng.normal(size=300)}
    for before, name in zip("abcd", "bcde", strict=True):
        columns[name] = 0.7 * columns[before] + rng.normal(size=300)
    return columns


def main() -> None:
    """Print all tables."""
    names = ("code", "imports", "docstrings", "comments", "blank")
    print("| package | files | lines |", " | ".join(names), "|\n| --- |", " ---: |" * 7)
    for package, folder in PACKAGES.items():
        files = list(folder.rglob("*.py"))
        kinds = sum(map(kinds_of_lines, files), Counter[str]())
        counts = " | ".join(f"{kinds[name]:,}" for name in names)
        print(f"| {package} | {len(files)} | {kinds.total():,} | {counts} |")
    native = [f for f in (ROOT / "src/native").rglob("*") if f.suffix in {".cpp", ".hpp"}]
    lines = sum(len(f.read_text("utf-8").splitlines()) for f in native)
    print(f"| compiled core | {len(native)} | {lines:,} |")
    frame = table(np.random.default_rng(1))
    sites = {name: table(np.random.default_rng(2)) for name in ("north", "east", "south")}
    print("\n| call | files | functions | depth |\n| --- | ---: | ---: | ---: |")
    for label, call in {
        "learn(table)": lambda: ist.learn(frame),
        "learn(Federation.simulate(…))": lambda: ist.learn(ist.Federation.simulate(sites)),
    }.items():
        print(f"| `{label}` |", " | ".join(map(str, crossed(call))), "|")
    rooms = [p.parent.name for p in sorted((ROOT / "src/isthmus").glob("*/__init__.py"))]
    modules = ["isthmus", *(f"isthmus.{room}" for room in rooms), "isthmus_joint"]
    exported = {name: len(getattr(import_module(name), "__all__", ())) for name in modules}
    print(f"\nExported names: {sum(exported.values())}, of them {exported['isthmus']} at the top.")
    verbs = "".join(f.read_text() for f in (ROOT / "src/isthmus/verbs").glob("*.py"))
    print(f"`isinstance` in verbs: {verbs.count('isinstance(')}.")
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    pages = [name for name in listed if not name.startswith(("benchmarks/", "src/"))]
    words = {name: len((ROOT / name).read_text("utf-8").split()) for name in pages}
    docs = sum(count for name, count in words.items() if name.startswith("docs/"))
    print(f"Words in docs: {docs:,}, and in other pages: {sum(words.values()) - docs:,}.")


if __name__ == "__main__":
    main()
