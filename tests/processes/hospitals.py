"""A coordinator and sites in folders, made and run by the command line as users do it."""

from __future__ import annotations

import base64
import csv
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isthmus as ist
from isthmus.cli import main
from isthmus.io import read_edge_list
from isthmus.tables import Frame
from isthmus.testing.source import check_moments
from isthmus_joint import (
    AskMoments,
    Extract,
    ExtractStore,
    Federation,
    Identity,
    InProcess,
    MemoryLedger,
    Policy,
    Signature,
    SiteController,
    Study,
)
from isthmus_joint.agreement.cards import Folder
from isthmus_joint.federation.over_grpc import listen
from isthmus_joint.federation.requests.fixed_point import FixedPointEncoding
from isthmus_joint.secure_sum.terms import from_bytes
from isthmus_joint.transport.base import RemoteTransport, Timeouts, Watcher, ignore
from isthmus_joint.transport.certificates import free_port

COMMAND = [sys.executable, "-c", "from isthmus.cli import main; raise SystemExit(main())"]
PATIENCE = 60.0
RECONNECT = 2.0


NAMES = ("a", "b", "c")
CONTINUOUS = 'kind = "continuous"\nlow = -10.0\nhigh = 10.0'
SMALL_TABLES = {
    "minimum_cohort = 50": "minimum_cohort = 2",
    "minimum_cell = 5": "minimum_cell = 1",
    "columns_per_row = 0.33": "columns_per_row = 9.0",
    "largest_share = 0.5": "largest_share = 1.0",
    'persons = "rows"': 'persons = "none"',
}
"""Changes of the drafted policy, for the small tables of these tests."""


def rows(n: int, seed: int) -> NDArray[np.float64]:
    """Rows of a → b → c."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3))
    x[:, 1] += x[:, 0]
    x[:, 2] += x[:, 1]
    return np.clip(x, -9.0, 9.0)


def environment() -> dict[str, str]:
    """One thread a process."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    return os.environ | dict.fromkeys(threads, "1")


class Hospitals:
    """A study in a folder, with running sites; by default over continuous variables."""

    def __init__(
        self,
        folder: Path,
        sizes: Sequence[int],
        *,
        method: str = "secure sums",
        rounds: int = 1000,
        host: str = "127.0.0.1",
        draft: Sequence[str] = (),
        tables: Sequence[NDArray[np.float64]] | None = None,
        definition: str | Sequence[str] = CONTINUOUS,
    ) -> None:
        self.folder = folder
        self.study_folder = folder / "study"
        tables = [rows(size, i) for i, size in enumerate(sizes)] if tables is None else tables
        self.tables = {f"s{i}": values for i, values in enumerate(tables)}
        self.columns = (
            NAMES if len(tables[0].T) == 3 else [f"x{i}" for i in range(len(tables[0].T))]
        )
        self.definitions = (
            [definition] * len(self.columns) if isinstance(definition, str) else definition
        )
        self.names = list(self.tables)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.port = free_port()
        self._listening: RemoteTransport | None = None
        self._stack = ExitStack()
        self.host = host
        self._draft(method, rounds, draft)

    def _draft(self, method: str, rounds: int, more: Sequence[str]) -> None:
        run("coordinator", "new", self.folder / "board", "--host", self.host)
        cards: list[str | Path] = []
        for name in self.names:
            run("site", "new", self.home(name), "--name", name, "--organisation", f"Org {name}")
            cards += ["--card", self.home(name) / "card.toml"]
            write_csv(self.data(name), self.tables[name], self.columns)
        variables = self.folder / "variables.toml"
        variables.write_text(
            "\n".join(
                f'[[variables]]\nname = "{name}"\n{definition}\n'
                for name, definition in zip(self.columns, self.definitions, strict=True)
            )
        )
        run(
            *("coordinator", "draft", self.folder / "board", self.study_folder),
            *("--author", self.home("s0") / "identity.pem"),
            *("--title", "Test", "--purpose", "testing", "--variables", variables, *cards),
            *("--method", method, "--rounds", rounds, "--address", f"{self.host}:{self.port}"),
            *(() if "--epsilon" in more else ("--exact", "--pooled")),
            *more,
        )
        for name in self.names:
            policy = self.home(name) / "policy.toml"
            run("site", "policy", self.home(name), self.study_folder, "--exact")
            text = policy.read_text()
            if "--networks" in more:  # which are not for persons
                text = text.replace('persons = "rows"', 'persons = "none"')
            for old, new in SMALL_TABLES.items():
                text = text.replace(old, new)
            policy.write_text(text)
            run("study", "sign", self.home(name), self.study_folder)
            self.freeze(name)

    def freeze(self, name: str) -> None:
        """Freeze the table of a site for the study."""
        run("site", "freeze", self.home(name), self.study_folder, "--data", self.data(name))

    def resign(self) -> None:
        """Sign a changed study as its author and, where policies exist, as all sites."""
        author = Identity.load(self.home("s0") / "identity.pem")
        Folder(self.study_folder).sign(self.study.sign(author))
        for name in self.names:
            if (self.home(name) / "policy.toml").exists():
                self.sign(name)

    def sign(self, name: str) -> None:
        """Sign a study for a site whose officer allows its exact sums."""
        run("site", "policy", self.home(name), self.study_folder, "--exact")
        run("study", "sign", self.home(name), self.study_folder)

    def home(self, name: str) -> Path:
        return self.folder / name

    def data(self, name: str) -> Path:
        return self.folder / f"{name}.csv"

    @property
    def study(self) -> Study:
        return Folder(self.study_folder).study()

    @property
    def signatures(self) -> list[Signature]:
        return Folder(self.study_folder).signatures()

    @property
    def boss(self) -> Identity:
        return Identity.load(self.folder / "board" / "identity.pem")

    def pooled(self, names: Sequence[str] | None = None) -> NDArray[np.float64]:
        """The frozen rows of sites."""
        rows = [self.extract(n).values for n in names or self.names]
        return np.concatenate([values for values in rows if values is not None])

    def extract(self, name: str) -> Extract:
        return ExtractStore(self.home(name)).read(self.study)

    def inside(self) -> Federation:
        """The same study and data within this process."""
        study, signatures = self.study, self.signatures
        handlers = {}
        for name in self.names:
            identity = Identity.load(self.home(name) / "identity.pem")
            policy = Policy.read(self.home(name) / "policy.toml")
            extract = self.extract(name)
            station = SiteController(study, signatures, identity, extract, policy, MemoryLedger())
            handlers[name] = station.site().handle
        return Federation(study, signatures, self.boss, InProcess(handlers))

    # --- processes ----------------------------------------------------------------------------

    def start(
        self, name: str, *more: str, before: Sequence[str] = (), extra: Mapping[str, str] = {}
    ) -> subprocess.Popen[bytes]:
        """Start a site as a process."""
        command = ["site", "join", name, "study"]
        with (self.folder / f"{name}.log").open("ab") as log:
            found = subprocess.Popen(
                [*before, *COMMAND, *command, *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment() | dict(extra),
                cwd=self.folder,
                start_new_session=True,
            )
        self.processes[name] = found
        return found

    def coordinate(self, *more: str, before: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start the coordinator as a process; it listens on this machine only."""
        command = ["coordinator", "run", "board", "study"]
        with (self.folder / "coordinator.log").open("ab") as log:
            found = subprocess.Popen(
                [*before, *COMMAND, *command, "--listen", "127.0.0.1", *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(),
                cwd=self.folder,
                start_new_session=True,
            )
        self.processes["coordinator"] = found
        return found

    def records(self) -> list[dict[str, Any]]:
        """What is in the coordinator's journal."""
        (path,) = (self.folder / "board").glob("study-*/journal")
        lines = path.read_bytes().splitlines()
        return [json.loads(line[65:]) for line in lines]

    def serve(self, *names: str, extra: Mapping[str, str] = {}) -> None:
        """Start sites that connect to this process, and wait until they answer."""
        for name in names:
            self.await_gone(name)  # the connection of a killed one ends a moment later
            self.start(name, extra=extra)
        for name in names:
            self.await_site(name)

    def await_site(self, name: str) -> None:
        self._await(name, online=True)

    def await_gone(self, name: str) -> None:
        """Wait until the coordinator's end has noticed that a site is gone."""
        self._await(name, online=False)

    def _await(self, name: str, *, online: bool) -> None:
        end = time.monotonic() + PATIENCE
        while self._is_online(name) is not online:
            assert not online or self.processes[name].poll() is None, self.log(name)
            assert time.monotonic() < end, self.log(name)
            time.sleep(0.05)

    def _is_online(self, name: str) -> bool:
        return name in self._listener()._online()

    def status(self) -> dict[str, Any]:
        """How the coordinator's run stands."""
        (path,) = (self.folder / "board").glob("study-*/status.json")
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def await_text(self, name: str, text: str, seconds: float = 300.0) -> None:
        """Wait until a process has said this."""
        end = time.monotonic() + seconds
        while text not in self.log(name):
            assert time.monotonic() < end, self.log(name)
            time.sleep(0.1)

    def log(self, name: str) -> str:
        path = self.folder / f"{name}.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to a site; after a deadly one it is gone."""
        process = self.processes[name]
        os.killpg(process.pid, how)
        if how in (signal.SIGKILL, signal.SIGTERM):
            process.wait(PATIENCE)

    def _listener(self) -> RemoteTransport:
        """The coordinator's end in this process."""
        if self._listening is None:
            board, shared = self.folder / "board", Folder(self.study_folder)
            made = listen(board, shared, "127.0.0.1", Timeouts(), ignore)
            self._listening = self._stack.enter_context(made)
        return self._listening

    def transport(
        self,
        timeouts: Timeouts = Timeouts(20.0, 20.0, 0.0, RECONNECT),
        watch: Watcher = ignore,
    ) -> RemoteTransport:
        listener = self._listener()
        listener._timeouts, listener._watch = timeouts, watch
        return listener

    def ask(self, name: str, frame: bytes) -> bytes | None:
        """Return the answer of a site to one message, if there is any."""
        return next(iter(self.transport().exchange({name: frame})), None)

    def stop_listening(self) -> None:
        """Leave the port to another process."""
        self._stack.close()
        self._listening = None

    def close(self) -> None:
        for process in self.processes.values():
            for how in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, signal.SIGCONT)
                    os.killpg(process.pid, how)
                    process.wait(20)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    continue
        self.stop_listening()


def run(*arguments: str | Path | int) -> None:
    """Run a command of Isthmus in this process; it must succeed."""
    assert main([str(a) for a in arguments]) == 0


def write_csv(path: Path, values: NDArray[np.float64], names: Sequence[str] = NAMES) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        cells = ([("" if np.isnan(v) else repr(v.item())) for v in row] for row in values)
        writer.writerows(cells)


def require_pooled(world: Hospitals) -> None:
    """The sum that arrived is that of the pooled rows to the last bit; the graph is pooled."""
    request, grid = AskMoments(NAMES), FixedPointEncoding.of(world.study)
    (record,) = [r for r in world.records() if r["event"] == "sum"]
    words = from_bytes(base64.b64decode(record["sum"]), request.limbs)
    pooled = Frame(world.pooled(), names=NAMES)
    assert (words == request.encode(pooled, grid)).all()
    check_moments(request.decode(words, grid), pooled.moments(), 1e-9)
    found = read_edge_list(world.folder / "network.csv", nodes=NAMES)
    assert isinstance(found, ist.DAG)
    assert found.cpdag() == ist.learn(pooled).cpdag
