"""Two companies in folders, made and run by the command line as users do it."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from tests.processes.hospitals import COMMAND, environment, run

from isthmus_joint import verify
from isthmus_joint.agreement.cards import Folder
from isthmus_joint.transport.certificates import free_port

ROOT = Path(__file__).parents[2]
COLUMNS = {"bank": ("a", "b"), "shop": ("c", "d")}
LEVELS = {"a": 2, "b": 2, "c": 3, "d": 2}
STAND_IN = """
import os, sys
from isthmus_joint.transport import pinned_channel, pinned_connection
from isthmus_joint.shares import party_controller, requests, two_party
two_party.ENGINE = (sys.executable, "-m", "tests.processes.stand_in_engine")
pinned_connection.STRANGERS = float(os.environ.get("STRANGERS", "30"))
send = pinned_channel.PinnedChannel.send
def lying(self, message):
    change = os.environ.get("LIE", "")
    key = next(iter(message))
    if key == change.partition("=")[0]:
        message = {key: eval(change.partition("=")[2], {}, {"x": message[key]})}
    send(self, message)
pinned_channel.PinnedChannel.send = lying
claims = party_controller.PartyController.claims
def claimed(self):
    text = os.environ.get("CLAIM", "{}")
    return {**claims(self), **eval(text)}
party_controller.PartyController.claims = claimed
requests.PrivateK2Request.openings = lambda self, study: 6
from isthmus.cli import main
raise SystemExit(main())
"""
"""The command with an engine that stands in, and with lies: LIE is "key=expression in x", for
messages; CLAIM has other claims, which are signed."""


def table(people: Sequence[int], seed: int = 0) -> dict[str, list[Any]]:
    """Rows of a → b → c → d for these people; a person always has the same values."""
    rng = np.random.default_rng(seed)
    n = max(people) + 1
    a = rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.85, a, 1 - a)
    c = np.where(rng.random(n) < 0.85, b, rng.integers(0, 3, n))
    d = np.where(rng.random(n) < 0.85, c % 2, rng.integers(0, 2, n))
    columns: dict[str, Any] = {
        "person": [f"p{i:04}" for i in range(n)],
        "a": a,
        "b": b,
        "c": c,
        "d": d,
    }
    return {name: [values[i] for i in people] for name, values in columns.items()}


@final
@dataclass(frozen=True)
class World:
    """What the companies hold.

    Attributes
    ----------
    columns
        The variables of each company.
    levels
        The number of levels of each variable; none of continuous ones.
    table
        The rows of people, in the columns of both companies.
    """

    columns: Mapping[str, Sequence[str]]
    levels: Mapping[str, int]
    table: Callable[[Sequence[int]], Mapping[str, Sequence[Any]]]

    def variables(self, name: str) -> str:
        """The file that describes the variables of a company."""
        entries = []
        for column in self.columns[name]:
            kind = (
                f'"discrete"\nlevels = {list(range(self.levels[column]))}'
                if column in self.levels
                else '"continuous"\nlow = -1000.0\nhigh = 1000.0'
            )
            entries.append(f'[[variables]]\nname = "{column}"\nkind = {kind}\n')
        return "\n".join(entries)


class Companies:
    """A bank with a and b, and a shop with c and d, unless another world is given."""

    def __init__(
        self,
        folder: Path,
        *,
        bank: Sequence[int] = range(300),
        shop: Sequence[int] = range(100, 400),
        draft: Sequence[str] = (),
        world: World | None = None,
    ) -> None:
        self.folder = folder
        self.world = world or World(COLUMNS, LEVELS, table)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.people = {"bank": list(bank), "shop": list(shop)}
        parties: list[str | Path] = []
        for name in COLUMNS:
            run(
                *("party", "new", self.home(name), "--name", name, "--organisation", name.title()),
                *("--address", f"127.0.0.1:{free_port()}"),
            )
            variables = folder / f"{name}.toml"
            variables.write_text(self.world.variables(name))
            parties += ["--party", self.home(name) / "card.toml", variables]
            self.write(name, self.world.table(self.people[name]))
        run(
            *("party", "draft", self.home("bank"), self.study, "--title", "Test"),
            *("--purpose", "testing", *parties, "--identifier", "person"),
            *("--people", "2000", "2000", *draft),
        )
        for name in COLUMNS:
            run("party", "policy", self.home(name), self.study)
            run("study", "sign", self.home(name), self.study)

    @property
    def study(self) -> Path:
        return self.folder / "study"

    def home(self, name: str) -> Path:
        return self.folder / f"{name}-home"

    def data(self, name: str) -> Path:
        return self.folder / f"{name}.csv"

    def write(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        kept = ["person", *self.world.columns[name]]
        with self.data(name).open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(kept)
            rows.writerows(zip(*(columns[k] for k in kept), strict=True))

    def start(
        self,
        name: str,
        *more: str,
        extra: Mapping[str, str] = {},
        stand_in: bool = True,
        data: Path | None = None,
        command: Sequence[str] | None = None,
    ) -> subprocess.Popen[bytes]:
        command = command or ([sys.executable, "-c", STAND_IN] if stand_in else COMMAND)
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        arguments = ["party", "run", str(self.home(name)), str(self.study)]
        arguments += ["--data", str(data or self.data(name)), "--gather", "60", *more]
        with (self.folder / f"{name}.log").open("ab") as log:
            found = subprocess.Popen(
                [*command, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment() | {"PYTHONPATH": path} | dict(extra),
                cwd=self.folder,
                start_new_session=True,
            )
        self.processes[name] = found
        return found

    def both(
        self, *more: str, shop: Mapping[str, str] = {}, stand_in: bool = True
    ) -> tuple[int, int]:
        """Run both parties to their ends and return their exit codes."""
        self.start("bank", *more, stand_in=stand_in)
        self.start("shop", *more, stand_in=stand_in, extra=shop)
        return self.ends()

    def ends(self, seconds: float = 120.0) -> tuple[int, int]:
        """Return the exit codes of the bank and the shop."""
        return self.processes["bank"].wait(seconds), self.processes["shop"].wait(seconds)

    def await_text(self, name: str, text: str, seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while text not in self.log(name):
            assert time.monotonic() < end, self.log(name)
            assert self.processes[name].poll() is None, self.log(name)
            time.sleep(0.05)

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def state(self, name: str) -> Path:
        (path,) = self.home(name).glob("study-*")
        return path

    def status(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.state(name) / "status.json").read_text())
        return found

    def ledger(self, name: str) -> list[tuple[str, str]]:
        entries = verify(self.home(name) / "ledger.jsonl")
        return [(e["event"], e.get("what", e.get("why"))) for e in entries]

    def revealed(self, name: str) -> list[str]:
        return [what for event, what in self.ledger(name) if event == "revealing"]

    def journal(self, name: str) -> list[dict[str, Any]]:
        lines = (self.state(name) / "journal").read_bytes().splitlines()
        return [json.loads(line[65:]) for line in lines]

    def identity(self) -> str:
        return Folder(self.study).study().identity.hex()

    def show(self) -> None:
        """Print what both wrote, for a test that fails."""
        for name in COLUMNS:
            engine = [path.read_text() for path in self.home(name).glob("study-*/engine.log")]
            print(f"--- {name}", self.log(name), *engine, sep="\n")

    def close(self) -> None:
        for process in self.processes.values():
            for how in (signal.SIGCONT, signal.SIGTERM):
                try:
                    os.killpg(process.pid, how)
                except ProcessLookupError:
                    break
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(20)
