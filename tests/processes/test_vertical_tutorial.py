"""The tutorial of two companies, run as it is written: two folders, every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from tests.processes.companies import ROOT

from isthmus_joint.transport.certificates import free_port

PAGE = ROOT / "docs" / "tutorials" / "two-companies.md"
NAMES = {"1": "bank", "2": "shop"}


def blocks() -> list[tuple[str, str]]:
    """The shell commands of the page, each with the terminals that it is for."""
    found = re.findall(r"```bash\n# ([^\n]*)\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert len(found) > 10
    return found


def terminals(where: str) -> list[str]:
    number = re.match(r"terminal (\d)", where)
    return [NAMES[number[1]]] if number else list(NAMES.values())


def start(folder: Path, name: str, before: str, commands: str) -> subprocess.Popen[bytes]:
    """Run commands in the terminal of a company."""
    environment = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    with (folder / f"{name}.log").open("ab") as log:
        return subprocess.Popen(
            ["bash", "-ec", f"{before}\n{commands}"],
            cwd=folder / name,
            env=environment | {"OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def test_the_tutorial(folder: Path) -> None:
    command = folder / "bin" / "isthmus"
    command.parent.mkdir()
    command.write_text(
        f"#!{sys.executable}\nfrom isthmus.cli import main\nraise SystemExit(main())\n"
    )
    command.chmod(0o755)
    table = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert table is not None
    before = {}
    for name in NAMES.values():
        (folder / name).mkdir()
        (folder / name / "table.py").write_text(table[1])
    begun = time.monotonic()
    for where, commands in blocks():
        if commands.startswith("NAME="):
            (name,) = terminals(where)
            before[name] = re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{free_port()}", commands)
            continue
        if "venv" in commands:
            continue  # this environment is one
        started = [(n, start(folder, n, before[n], commands)) for n in terminals(where)]
        for name, process in started:
            assert process.wait(180) == 0, (folder / f"{name}.log").read_text()
    assert time.monotonic() - begun < 300
    for name in NAMES.values():
        shown = (folder / f"{name}.log").read_text()
        for edge in ("age → income", "income → debt", "debt → visits", "visits → returns"):
            assert edge in shown
        assert "2000 people in common" in shown
        assert "entries and is intact" in shown
        assert len((folder / name / "network.csv").read_text().splitlines()) >= 4
