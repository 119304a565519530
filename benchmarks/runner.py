"""One form for experiments: a function, its cases, and a file of results that is continued.

An experiment is a script that ends with

    if __name__ == "__main__":
        Experiment("NAME", measure, cases(), code=("src/isthmus/searches",)).main(table)

`measure` gets a case, which is a dictionary of plain values, and returns what it found as another.
Each result is a line of `results/NAME.jsonl`, with the case, what was found, and a stamp: commit, a
digest of the code that was measured, versions, machine and date. Cases that are on file are not run
again, so a run that was stopped goes on where it was; `table` makes `results/NAME.md` from all.

    python benchmarks/SCRIPT.py                     # what is missing, then the table
    python benchmarks/SCRIPT.py seed=1 'method=boss|xges'   # of these cases only
    python benchmarks/SCRIPT.py --again             # also what is on file
    python benchmarks/runner.py                     # which results are older than their code
    python benchmarks/runner.py quick [NAME ...]    # the tables of quick.toml whose code changed

Scripts that print a table of their own are in `quick.toml`, at a size that takes a minute or two.
Each table is a file in `results/quick`, with its stamp; all together take less than twenty minutes
on one core.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
Values = dict[str, Any]


def digest(code: Iterable[str]) -> str:
    """Return a short hash of files and of the Python and C++ sources in folders."""
    found: list[Path] = []
    for name in code:
        path = ROOT / name
        inside = [f for f in path.rglob("*") if f.suffix in (".py", ".cpp", ".hpp")]
        found += inside if path.is_dir() else [path]
    total = hashlib.sha256()
    for file in sorted(set(found)):
        total.update(f"{file.relative_to(ROOT).as_posix()}\n".encode())
        total.update(file.read_bytes())
    return total.hexdigest()[:12]


def git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def stamp(code: Sequence[str], packages: Sequence[str] = ("numpy", "scipy")) -> Values:
    """What a result was made with. The commit is the last one that changed the code."""
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    commit = git("log", "-1", "--format=%h", "--", *code)
    if git("status", "--porcelain", "--", *code):
        commit += ", changed"
    return {
        "commit": commit, "code": list(code), "digest": digest(code),
        "python": platform.python_version(), **versions,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "date": datetime.now(UTC).date().isoformat(),
    }  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """A function of cases, and where its results are.

    Attributes
    ----------
    name
        Of the files under ``results``.
    measure
        Returns what a case gives; CPU seconds of the whole call are added as ``cpu``.
    cases
        What to measure; the seed is one of the values.
    code
        Files and folders whose change makes results old: the code measured, and the script.
    packages
        Whose versions are part of the stamp.
    """

    name: str
    measure: Callable[..., Values]
    cases: Iterable[Values]
    code: Sequence[str]
    packages: Sequence[str] = ("numpy", "scipy")

    @property
    def file(self) -> Path:
        return RESULTS / f"{self.name}.jsonl"

    def on_file(self) -> list[Values]:
        """Return the results: for each case the last one."""
        if not self.file.exists():
            return []
        rows = [json.loads(line) for line in self.file.read_text().splitlines()]
        return list({json.dumps(row["case"], sort_keys=True): row for row in rows}.values())

    def run(self, *, again: bool = False, only: Values | None = None) -> None:
        """Measure what is not on file; each result is written as soon as it is there."""
        mark = stamp(self.code, self.packages)
        done = [row["case"] for row in self.on_file()]
        for case in self.cases:
            unwanted = any(str(case.get(k)) not in v.split("|") for k, v in (only or {}).items())
            if unwanted or (case in done and not again):
                continue
            begin = time.process_time()
            try:
                found = self.measure(**case)
            except Exception as error:  # noqa: BLE001 - one cell is lost, and says why
                found = {"failed": f"{type(error).__name__}: {error}"[:200]}
            seconds = round(time.process_time() - begin, 3)
            row = {"case": case, "found": {**found, "cpu": seconds}, "stamp": mark}
            with self.file.open("a") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
            print(json.dumps({**case, **row["found"]}, ensure_ascii=False), flush=True)

    def main(self, table: Callable[[list[Values]], str] | None = None) -> None:
        """Run as the command line says, and write the table."""
        words = [word for word in sys.argv[1:] if word != "--again"]
        only = dict(word.split("=", 1) for word in words)
        self.run(again="--again" in sys.argv, only=only)
        if table is not None and (rows := self.on_file()):
            text = f"{table(rows)}\n\n{footnote(rows)}\n"
            (RESULTS / f"{self.name}.md").write_text(text)


def footnote(rows: Iterable[Values]) -> str:
    """Say what results were made with, for under a table."""
    marks = [row["stamp"] for row in rows]
    parts = []
    for key in sorted({key for mark in marks for key in mark} - {"code", "digest"}):
        values = Counter(str(mark[key]) for mark in marks if key in mark)
        parts.append(f"{key} {' or '.join(sorted(values))}")
    return f"Made with: {'; '.join(parts)}."


def quick(names: Sequence[str]) -> int:
    """Make the quick tables whose code changed, or those named; return how many failed."""
    tables = tomllib.loads((ROOT / "benchmarks" / "quick.toml").read_text())
    failed = 0
    for name in names or tables:
        script, *words = tables[name]["command"].split()
        code = (*tables[name]["code"], f"benchmarks/{script}")
        path, stamps = RESULTS / "quick" / f"{name}.md", RESULTS / "quick" / "stamps.jsonl"
        known = {}
        if stamps.exists():
            rows = [json.loads(line) for line in stamps.read_text().splitlines()]
            known = {row["case"]["table"]: row for row in rows}
        case = {"table": name, "command": f"python benchmarks/{tables[name]['command']}"}
        before = known.get(name)
        same = before is not None and before["case"] == case
        if before and same and not names and before["stamp"]["digest"] == digest(code):
            continue
        mark, begin = stamp(code), os.times()
        done = subprocess.run(
            [sys.executable, ROOT / "benchmarks" / script, *words],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        end = os.times()
        cpu = round(sum(end[2:4]) - sum(begin[2:4]), 1)
        if done.returncode:
            failed += 1
            print(f"{name}: failed\n{done.stderr[-2000:]}", flush=True)
            continue
        same = path.exists() and path.read_text() == done.stdout
        path.parent.mkdir(exist_ok=True)
        path.write_text(done.stdout)
        known[name] = {"case": case, "found": {"cpu": cpu}, "stamp": mark}
        lines = [json.dumps(known[key], ensure_ascii=False) for key in sorted(known)]
        stamps.write_text("\n".join(lines) + "\n")
        print(f"{name}: {cpu} CPU s, {'as before' if same else 'written'}", flush=True)
    return failed


def old() -> list[tuple[str, str]]:
    """Return files of results with why they may be old, of those that have a stamp."""
    found = []
    for path in sorted(RESULTS.rglob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        marks = {json.dumps(row["stamp"]): row["stamp"] for row in rows if "stamp" in row}
        for mark in marks.values():
            missing = [name for name in mark["code"] if not (ROOT / name).exists()]
            if missing:
                found.append((path.name, f"{', '.join(missing)} is gone"))
            elif digest(mark["code"]) != mark["digest"]:
                changes = git("rev-list", "--count", f"{mark['commit']}..", "--", *mark["code"])
                count = f"{changes} commits" if changes else f"unknown commit {mark['commit']}"
                found.append((path.name, f"code changed: {count}"))
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["quick"]:
        sys.exit(quick(sys.argv[2:]))
    for name, why in old():
        print(f"{name}: {why}")
