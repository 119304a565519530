"""Run one method on one data set in its own process, with a time-out; keep the figures."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
PACKAGES = (
    "causal-learn", "dagma", "isthmus", "numpy", "pandas", "pgmpy", "pyagrum",
    "pybnesian", "scipy", "torch",
)  # fmt: skip
ONE_THREAD = dict.fromkeys(
    (
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "MKL_NUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NUMBA_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)
Run = dict[str, Any]


def call(method: str, arrays: dict[str, Any], *, seed: int, timeout: float, again: float) -> Run:
    """Run a method of `worker` on arrays and give what it measured.

    Parameters
    ----------
    timeout
        CPU seconds, start-up included; wall seconds are allowed six times that, for busy machines.
    again
        Call a second time in the same process, warm, when the first took less CPU time than this.

    Returns
    -------
    dict
        ``status`` is ``ok``, ``time-out`` or ``failed``; with ``ok`` also ``edges`` (pairs of
        indices), ``undirected``, and CPU and wall seconds of the first and the warm call.
    """
    with tempfile.TemporaryDirectory() as folder:
        given, answer = Path(folder, "in.npz"), Path(folder, "out.json")
        np.savez(given, **arrays)
        command = [
            sys.executable, str(HERE / "worker.py"), method, str(given), str(answer),
            "--seed", str(seed), "--again", str(again),
            "--limit", str(int(np.ceil(timeout))),
        ]  # fmt: skip
        environment = {
            **os.environ,
            **ONE_THREAD,
            "PYTHONHASHSEED": "0",
            "PYTHONWARNINGS": "ignore",
        }
        try:
            done = subprocess.run(
                command,
                env=environment,
                timeout=6 * timeout,
                capture_output=True,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"status": "time-out", "timeout": timeout}
        if done.returncode == -signal.SIGXCPU:
            return {"status": "time-out", "timeout": timeout}
        if done.returncode != 0 or not answer.exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return {"status": "failed", "exit": done.returncode, "message": last[:300]}
        result: Run = json.loads(answer.read_text())
        return {"status": "ok", **result}


def about() -> Run:
    """Say where and when the figures were taken."""
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": 1,
        "packages": versions,
    }


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


class Ledger:
    """The runs of one benchmark, kept in a JSON file after each; a run replaces its elder."""

    def __init__(self, name: str, keys: Sequence[str]) -> None:
        self.path = RESULTS / f"{name}.json"
        self.keys = tuple(keys)
        self.runs: list[Run] = []
        if self.path.exists():
            self.runs = json.loads(self.path.read_text())["runs"]

    def has(self, **key: Any) -> bool:
        return any(all(run[k] == key[k] for k in self.keys) for run in self.runs)

    def add(self, run: Run) -> None:
        same = [r for r in self.runs if all(r[k] == run[k] for k in self.keys)]
        self.runs = [r for r in self.runs if r not in same] + [run]
        self.runs.sort(key=lambda r: tuple(str(r[k]).zfill(8) for k in self.keys))
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join(json.dumps(r, ensure_ascii=False) for r in self.runs)
        text = f'{{"about": {json.dumps(about())},\n"runs": [\n{lines}\n]}}\n'
        self.path.write_text(text)

    def write_table(self, text: str) -> None:
        self.path.with_suffix(".md").write_text(text)


def seconds(value: float) -> str:
    """Give seconds with two or three figures."""
    digits = 0 if value >= 10 else 1 if value >= 1 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f}"


def footnote() -> str:
    facts = about()
    packages = ", ".join(f"{k} {v}" for k, v in facts["packages"].items())
    return (
        f"Taken on {facts['date']}, {facts['processor']}, {facts['cores']} cores, one thread, "
        f"Python {facts['python']}; {packages}.\n"
    )
