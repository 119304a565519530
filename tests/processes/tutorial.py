"""The three hospitals of the tutorial in folders, ready to join: tables, study, policies, extracts.

The commands are those of the page. Tests of the page itself are in test_horizontal_tutorial.py.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.processes.hospitals import COMMAND, environment, run

from isthmus_joint.transport.certificates import free_port

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "hospitals.md"
HOSPITALS = ("north", "east", "south")
BOUNDS = {
    "age": (0, 120),
    "weight": (0, 300),
    "pressure": (0, 300),
    "sugar": (-50, 50),
    "stay": (-100, 400),
}


def prepare(folder: Path, *options: str) -> None:
    """Do everything up to the signatures: folders of the hospitals, ``lead`` and ``study``.

    Parameters
    ----------
    options
        Further options of ``coordinator draft``.
    """
    table = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert table is not None
    cards: list[str | Path] = []
    for name in HOSPITALS:
        run("site", "new", folder / name, "--name", name, "--organisation", f"{name} hospital")
        cards += ["--card", folder / name / "card.toml"]
        subprocess.run([sys.executable, "-c", table[1], name], cwd=folder / name, check=True)
    bounds = [x for name, (low, high) in BOUNDS.items() for x in ("--continuous", name, low, high)]
    run("study", "variables", "-o", folder / "variables.toml", *bounds)
    run("coordinator", "new", folder / "lead", "--host", "127.0.0.1")
    run(
        *("coordinator", "draft", folder / "lead", folder / "study", "--exact", *cards),
        *("--author", folder / "north" / "identity.pem", "--title", "Pressure and stay"),
        *("--purpose", "What keeps patients with high pressure in hospital"),
        *("--variables", folder / "variables.toml", "--address", f"127.0.0.1:{free_port()}"),
        *options,
    )
    for name in HOSPITALS:
        home, study = folder / name, folder / "study"
        run("site", "policy", home, study, "--exact")
        run("site", "freeze", home, study, "--data", home / "table.csv")
        run("study", "sign", home, study)


def entries(folder: Path, name: str) -> int:
    """Return how many entries the ledger of a hospital has."""
    path = folder / name / "ledger.jsonl"
    return len(path.read_bytes().splitlines()) if path.exists() else 0


def seconds_per_exchange(folder: Path, name: str) -> float:
    """Return the mean over all exchanges from the first request to the shares for the last sum."""
    lines = (folder / name / "ledger.jsonl").read_text().splitlines()
    found = [(e["event"], datetime.fromisoformat(e["time"])) for e in map(json.loads, lines)]
    opened = [time for event, time in found if event == "opened"]
    (*_, last) = (time for event, time in found if event == "unmasked")
    return (last - opened[0]).total_seconds() / (5 * len(opened) - 1)


def learned_over_grpc(folder: Path) -> str:
    """Run the study over gRPC with copies of all folders; return the network as a list of edges."""
    copy = folder / "grpc"
    for name in (*HOSPITALS, "lead", "study"):
        shutil.copytree(folder / name, copy / name)
    log = (copy / "log").open("wb")
    with log, ExitStack() as stack:

        def start(*arguments: str) -> subprocess.Popen[bytes]:
            options: dict[str, Any] = {"stdout": log, "stderr": log, "env": environment()}
            process = subprocess.Popen([*COMMAND, *arguments], cwd=copy, **options)
            stack.callback(process.wait)
            stack.callback(process.terminate)
            return process

        for name in HOSPITALS:
            start("site", "join", name, "study")
        leading = start("coordinator", "run", "lead", "study", "-o", "network.csv")
        assert leading.wait(300) == 0, (copy / "log").read_text()
    return (copy / "network.csv").read_text()
