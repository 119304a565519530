"""The tutorial of three hospitals, run as it is written: three folders, every command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from tests.processes.hospitals import environment

from isthmus_joint.transport.certificates import free_port

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "hospitals.md"
NAMES = {"1": "north", "2": "east", "3": "south"}
CODE = re.compile(r"The code of this roster is (\S+)")
MOST = 12
"""Commands of a hospital, of all kinds, from an empty folder to its ledger."""
EXTRAS = "pip install --quiet 'isthmus[horizontal,cli]'"


class Terminals:
    """A terminal per hospital, in its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.before: dict[str, str] = {}
        self.sites: list[subprocess.Popen[bytes]] = []
        self.started: list[subprocess.Popen[bytes]] = []
        self.commands = dict.fromkeys(NAMES.values(), 0)
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

    def start(
        self, name: str, commands: str, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                ["bash", "-ec", f"{self.before[name]}\n{commands}"],
                cwd=self.folder / name,
                env=environment() | {"PATH": path},
                stdin=stdin,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.started.append(process)
        return process

    def run(self, where: str, commands: str) -> None:
        """Run a block in the terminals that its first line names."""
        numbers = re.findall(r"terminal (\d)", where)
        names = [NAMES[number] for number in numbers] or list(NAMES.values())
        for name in names:
            self.commands[name] += number_of(commands)
        if "keeps running" in where:
            self.sites += [self.start(name, f"exec {commands}") for name in names]
            return
        if "coordinator run" in commands:  # the person has read draft.log
            self.ended("north/draft", "All sites have signed")
        joined = "site join" in commands
        background, _, rest = commands.rpartition("&\n") if joined else ("", "", commands)
        if background:
            self.sites += [self.start(name, f"exec {background}") for name in names]
        asks = "asks" in where
        stdin = subprocess.PIPE if asks else subprocess.DEVNULL
        started = [(name, self.start(name, rest, stdin)) for name in names]
        if asks:
            self.call(started)
        for name, process in started:
            assert process.wait(180) == 0, self.log(name)

    def ended(self, name: str, line: str) -> None:
        """Wait until a log has a line."""
        end = time.monotonic() + 180
        while line not in self.log(name):
            assert time.monotonic() < end, self.log(name)
            time.sleep(0.1)

    def call(self, started: list[tuple[str, subprocess.Popen[bytes]]]) -> None:
        """All people read the code aloud; each types what the others read."""
        codes, end = dict[str, str](), time.monotonic() + 180
        while len(codes) < len(started):
            assert time.monotonic() < end, {name: self.log(name) for name, _ in started}
            found = {name: CODE.search(self.log(name)) for name, _ in started}
            codes = {name: code[1] for name, code in found.items() if code is not None}
            time.sleep(0.1)
        assert len(set(codes.values())) == 1
        for name, process in started:
            assert process.stdin is not None
            process.stdin.write(f"{codes[name]}\n".encode())
            process.stdin.close()

    def close(self) -> None:
        """Press Ctrl-C in the terminals where a site runs."""
        for site in self.sites:
            site.send_signal(signal.SIGINT)
        for site in self.sites:
            site.wait(30)


def number_of(commands: str) -> int:
    """Return how many commands a block has."""
    return len(commands.replace("\\\n", " ").strip().splitlines())


def test_the_tutorial(folder: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = re.search(r"```python\n(.*?)```", text, re.S)
    assert table is not None
    blocks = re.findall(r"```bash\n# ([^\n]*)\n(.*?)```", text, re.S)
    assert len(blocks) > 10
    terminals, port = Terminals(folder), f"--host 127.0.0.1 --port {free_port()}"
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
                for name in NAMES.values():
                    terminals.commands[name] += number_of(commands)
            elif "ledger show" in commands:
                terminals.close()
                terminals.run(where, commands)
            else:
                terminals.run(where, commands.replace("--host 127.0.0.1", port))
    finally:
        for process in terminals.started:
            with suppress(ProcessLookupError):  # with what it has left in the background
                os.killpg(process.pid, signal.SIGKILL)
    assert time.monotonic() - begun < 300
    assert max(terminals.commands.values()) <= MOST
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
