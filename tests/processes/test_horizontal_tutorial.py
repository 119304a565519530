"""The tutorial of three hospitals, run as it is written: three folders, every command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.processes.hospitals import environment

from isthmus.joint.transport.child_process import free_port

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "hospitals.md"
NAMES = {"1": "north", "2": "east", "3": "south"}
EXTRAS = "pip install --quiet 'isthmus[horizontal,cli]'"


class Terminals:
    """A terminal per hospital, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.before: dict[str, str] = {}
        self.sites: list[subprocess.Popen[bytes]] = []
        command = folder / "bin" / "isthmus"
        command.parent.mkdir()
        # The extras that the page installs are all that it may need.
        command.write_text(
            f"#!{sys.executable}\nimport sys\nsys.modules['opendp'] = None\n"
            "from isthmus.cli import main\nraise SystemExit(main())\n"
        )
        command.chmod(0o755)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def start(self, name: str, commands: str) -> subprocess.Popen[bytes]:
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                ["bash", "-ec", f"{self.before[name]}\n{commands}"],
                cwd=self.folder / name,
                env=environment() | {"PATH": path},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def run(self, where: str, commands: str) -> None:
        """Run a block in the terminals that its first line names."""
        numbers = re.findall(r"terminal (\d)", where)
        names = [NAMES[number] for number in numbers] or list(NAMES.values())
        if "keeps running" in where:
            self.sites += [self.start(name, f"exec {commands}") for name in names]
            return
        background, _, rest = commands.rpartition("&\n")
        if background:
            self.sites += [self.start(name, f"exec {background}") for name in names]
        for name, process in [(name, self.start(name, rest)) for name in names]:
            assert process.wait(180) == 0, self.log(name)

    def close(self) -> None:
        """Press Ctrl-C in the terminals where a site runs."""
        for site in self.sites:
            site.send_signal(signal.SIGINT)
        for site in self.sites:
            site.wait(30)


def test_the_tutorial(folder: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = re.search(r"```python\n(.*?)```", text, re.S)
    assert table is not None
    blocks = re.findall(r"```bash\n# ([^\n]*)\n(.*?)```", text, re.S)
    assert len(blocks) > 15
    terminals, address = Terminals(folder), f"--address 127.0.0.1:{free_port()}"
    begun = time.monotonic()
    try:
        for where, commands in blocks:
            if commands.startswith("NAME="):
                name = NAMES[where[-1]]
                terminals.before[name] = commands
                (folder / name).mkdir()
                (folder / name / "table.py").write_text(table[1])
            elif "venv" in commands:
                assert EXTRAS in commands
            elif "ledger show" in commands:
                terminals.close()
                terminals.run(where, commands)
            else:
                terminals.run(where, commands.replace("--exact", f"--exact {address}"))
    finally:
        for site in terminals.sites:
            site.kill()
    assert time.monotonic() - begun < 300
    shown = terminals.log("north")
    for a, b in (
        ("age", "pressure"),
        ("weight", "pressure"),
        ("pressure", "stay"),
        ("sugar", "stay"),
    ):
        assert re.search(rf"^{a} [→—] {b}$|^{b} [→—] {a}$", shown, re.MULTILINE)
    assert (folder / "north" / "network.html").exists()
    for name in NAMES.values():
        assert "would send 22 numbers" in terminals.log(name)
        assert "The ledger has 5 entries and is intact." in terminals.log(name)
        assert len(list((folder / name / "home").glob("result-*.json"))) == 1
