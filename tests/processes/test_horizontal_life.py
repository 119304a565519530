"""Years of a federation of four real processes: each event ends with the next study running."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from tests.processes.hospitals import (
    COMMAND,
    NAMES,
    SMALL_TABLES,
    environment,
    rows,
    run,
    write_csv,
)
from tests.processes.test_horizontal_faults import SHIFTED

from isthmus.cli import ExitCode, main
from isthmus_joint import verify
from isthmus_joint.agreement.study import package_folders
from isthmus_joint.transport.certificates import free_port

PATIENT = ("--gather", "200", "--answer", "60", "--pause", "200")
QUICK = ("--gather", "60", "--answer", "20", "--reconnect", "3", "--pause", "5")
PRINTED = "from isthmus_joint import code_hash; print(code_hash())"


class Federated:
    """Sites, a coordinator, and their studies one after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = ["s0", "s1", "s2", "s3"]
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        run("coordinator", "new", folder / "board", "--host", "127.0.0.1")
        for name in self.names:
            self.found(name)
        text = "\n".join(
            f'[[variables]]\nname = "{n}"\nkind = "continuous"\nlow = -10.0\nhigh = 10.0\n'
            for n in NAMES
        )
        (folder / "variables.toml").write_text(text)

    def found(self, name: str) -> None:
        """A new site with its table and keys."""
        run("site", "new", self.home(name), "--name", name, "--organisation", f"Org {name}")
        write_csv(self.folder / f"{name}.csv", rows(60 + int(name[1:]), int(name[1:])))

    def home(self, name: str) -> Path:
        return self.folder / name

    def draft(self, title: str, *more: str, names: Sequence[str] = ()) -> None:
        """Draft a study, and let each site check, freeze and sign it."""
        study, names = self.folder / title, names or self.names
        cards = [x for n in names for x in ("--card", self.home(n) / "card.toml")]
        run(
            *("coordinator", "draft", self.folder / "board", study, "--title", title),
            *("--author", self.home("s0") / "identity.pem", "--purpose", "testing", "--exact"),
            *("--variables", self.folder / "variables.toml", *cards, *more),
            *("--address", f"127.0.0.1:{free_port()}"),
        )
        for name in names:
            policy = self.home(name) / "policy.toml"
            if not policy.exists():
                run("site", "policy", self.home(name), study)
                text = policy.read_text()
                for old, new in SMALL_TABLES.items():
                    text = text.replace(old, new)
                policy.write_text(text)
            run("site", "policy", self.home(name), study, "--exact")
            run("site", "freeze", self.home(name), study, "--data", self.folder / f"{name}.csv")
            run("study", "sign", self.home(name), study)

    def start(
        self, log: str, *command: str, before: Sequence[str] = COMMAND, path: str = ""
    ) -> subprocess.Popen[bytes]:
        more: Mapping[str, str] = {"PYTHONPATH": path} if path else {}
        with (self.folder / f"{log}.log").open("ab") as file:
            found = subprocess.Popen(
                [*before, *command],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=environment() | dict(more),
                cwd=self.folder,
                start_new_session=True,
            )
        self.processes[log] = found
        return found

    def join(
        self, title: str, *names: str, before: Sequence[str] = COMMAND, path: str = ""
    ) -> None:
        for name in names:
            self.start(name, "site", "join", name, title, before=before, path=path)

    def coordinate(self, title: str, *options: str) -> tuple[int, str]:
        """The exit code of a run and its last line."""
        log = self.folder / "coordinator.log"
        log.unlink(missing_ok=True)
        code = self.start("coordinator", "coordinator", "run", "board", title, *options).wait(400)
        return code, log.read_text().strip().splitlines()[-1]

    def study(self, title: str, *options: str, names: Sequence[str] = ()) -> None:
        """Draft a study and run it: it must end with a result over all of its sites."""
        self.draft(title, *options, names=names)
        self.run(title, names or self.names)

    def run(self, title: str, names: Sequence[str]) -> None:
        self.join(title, *names)
        code, last = self.coordinate(title, *PATIENT)
        assert (code, last) == (0, f"The result is over all {len(names)} sites of the study."), last
        self.stop()
        for name in names:
            verify(self.home(name) / "ledger.jsonl")

    def stop(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(60)
        self.processes.clear()

    def await_text(self, log: str, text: str) -> None:
        end = time.monotonic() + 200
        path = self.folder / f"{log}.log"
        while not path.exists() or text not in path.read_text():
            assert time.monotonic() < end, path.read_text() if path.exists() else log
            time.sleep(0.05)


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Federated]:
    found = Federated(tmp_path)
    yield found
    found.stop()


def test_a_machine_is_restored_from_a_backup(life: Federated) -> None:
    """b03: the others remember what it lacks; it counts that, and the next study runs."""
    life.study("first")
    backup = life.folder / "backup"
    shutil.copytree(life.home("s1"), backup)
    life.study("second")
    shutil.rmtree(life.home("s1"))
    shutil.copytree(backup, life.home("s1"))
    life.draft("third")
    life.join("third", *life.names)
    code, last = life.coordinate("third", *QUICK)
    assert code == ExitCode.ABORTED, last
    life.stop()
    assert main(["ledger", "verify", str(life.home("s1"))]) == ExitCode.LEDGER
    statements = []
    for peer in ("s0", "s2", "s3"):
        statements.append(life.folder / f"{peer}-about-s1.json")
        run("ledger", "testify", life.home(peer), "s1", "-o", statements[-1])
    some = ["ledger", "restore", str(life.home("s1")), str(statements[0])]
    assert main(some) == ExitCode.STUDY  # the others may know more
    run("ledger", "restore", life.home("s1"), *statements)
    run("ledger", "verify", life.home("s1"))
    assert [
        e["study"] for e in verify(life.home("s1") / "ledger.jsonl") if e["event"] == "restored"
    ]
    life.run("third", life.names)
    life.study("fourth")


def test_a_key_is_rotated_and_a_machine_is_lost(life: Federated) -> None:
    """b03: a new key, vouched for by the old one or confirmed by people, is the same member."""
    life.study("first")
    run("site", "rotate", life.home("s2"))
    for peer in ("s0", "s1", "s3"):
        run("site", "accept", life.home(peer), life.home("s2") / "succession.toml")
    life.study("second")
    shutil.rmtree(life.home("s3"))  # without a backup
    life.found("s3")
    for peer in ("s0", "s1", "s2"):
        card = str(life.home("s3") / "card.toml")
        assert main(["site", "pin", str(life.home(peer)), card]) == ExitCode.STUDY
        run("site", "pin", life.home(peer), card, "--replace")
    life.study("third")


def test_a_hospital_joins_and_another_one_leaves(life: Federated) -> None:
    """b03: a fifth hospital, over the same patients of the others."""
    life.study("first")
    life.found("s4")
    for peer in life.names:
        run("site", "pin", life.home(peer), life.home("s4") / "card.toml")
    life.study("second", names=[*life.names, "s4"])
    life.study("third", names=["s0", "s2", "s3", "s4"])


def test_a_pause_in_the_first_sum_excludes_nobody(life: Federated) -> None:
    """b04: a site is stopped for 12 s, for longer than the coordinator waits for an answer."""
    life.draft("first")
    life.join("first", *life.names)
    coordinator = life.start(
        *("coordinator", "coordinator", "run", "board", "first", "--gather", "200"),
        *("--answer", "3", "--reconnect", "2", "--pause", "200"),
    )
    life.await_text("s3", "opened")
    os.killpg(life.processes["s3"].pid, signal.SIGSTOP)
    time.sleep(12.0)
    os.killpg(life.processes["s3"].pid, signal.SIGCONT)
    assert coordinator.wait(300) == 0
    text = (life.folder / "coordinator.log").read_text()
    assert text.strip().endswith("The result is over all 4 sites of the study."), text
    life.stop()
    life.study("second")


def test_a_site_is_left_out_only_by_name(life: Federated) -> None:
    """b04: a stop file ends the first sum; with --without, the last line says who is missing."""
    life.draft("first")
    (life.home("s3") / "STOP").touch()
    life.join("first", "s0", "s1", "s2")
    code, _ = life.coordinate("first", "--gather", "5")
    assert code == ExitCode.PAUSED  # s3 does not start
    code, last = life.coordinate("first", *QUICK, "--without", "s3")
    assert code == 0
    assert last == "The result is over 3 of 4 sites. Missing: ['s3']"
    life.stop()
    (life.home("s3") / "STOP").unlink()
    life.study("second")


def test_a_stop_file_in_the_first_sum_is_named(life: Federated) -> None:
    life.draft("first")
    life.join("first", *life.names)
    for name in life.names:
        life.await_text(name, "connected")
    (life.home("s3") / "STOP").touch()
    code, _ = life.coordinate("first", *QUICK)
    assert code == ExitCode.ABORTED
    assert "'s3': 'refused'" in (life.folder / "coordinator.log").read_text()
    (life.home("s3") / "STOP").unlink()
    code, last = life.coordinate("first", *QUICK)
    assert (code, last) == (0, "The result is over all 4 sites of the study.")
    life.stop()
    life.study("second")


def test_an_absence_of_a_month(life: Federated) -> None:
    """The coordinator waits, and is run again; the site is back, its clock a month later."""
    life.draft("first")
    life.join("first", "s0", "s1", "s2")
    code, last = life.coordinate("first", "--gather", "5")
    assert code == ExitCode.PAUSED
    assert "s3" in last
    life.join("first", "s3", before=[*COMMAND[:2], SHIFTED, "720"])
    code, last = life.coordinate("first", *PATIENT)
    assert (code, last) == (0, "The result is over all 4 sites of the study.")
    life.stop()
    life.study("second")


def test_the_software_is_upgraded(life: Federated) -> None:
    """b08: a change of plots needs nothing; a change of the protocol is admitted by the study."""
    other = life.folder / "other"
    for name, folder in package_folders().items():
        shutil.copytree(folder, other / name, ignore=shutil.ignore_patterns("__pycache__"))
    plots = other / "isthmus" / "plots" / "graph.py"
    plots.write_text(plots.read_text() + "\n# changed\n")
    life.draft("first")
    life.join("first", "s0", "s2", "s3")
    life.join("first", "s1", path=str(other))
    code, last = life.coordinate("first", *PATIENT)
    assert (code, last) == (0, "The result is over all 4 sites of the study.")
    life.stop()
    masks = other / "isthmus_joint" / "secure_sum" / "masks.py"
    masks.write_text(masks.read_text() + "\n# changed\n")
    life.draft("second")
    life.join("second", "s1", path=str(other))
    assert life.processes["s1"].wait(100) == ExitCode.REFUSED
    life.stop()
    code_of = [*COMMAND, "study", "code"]
    env = environment() | {"PYTHONPATH": str(other)}
    done = subprocess.run(code_of, env=env, capture_output=True, text=True, check=True)
    life.draft("third", "--admit", done.stdout.strip())
    life.join("third", "s0", "s2", "s3")
    life.join("third", "s1", path=str(other))
    code, last = life.coordinate("third", *PATIENT)
    assert (code, last) == (0, "The result is over all 4 sites of the study.")


def test_the_coordinator_is_lost_and_restored(life: Federated) -> None:
    """Its keys are in a backup from before the first study; its journals are lost."""
    backup = life.folder / "backup"
    shutil.copytree(life.folder / "board", backup)
    life.study("first")
    life.draft("second")
    life.join("second", *life.names)
    log = life.start("coordinator", "coordinator", "run", "board", "second", *PATIENT)
    life.await_text("s3", "opened")
    os.killpg(log.pid, signal.SIGKILL)
    log.wait(60)
    life.stop()
    shutil.rmtree(life.folder / "board")
    shutil.copytree(backup, life.folder / "board")
    life.study("third")
