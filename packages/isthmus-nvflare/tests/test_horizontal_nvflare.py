"""The hospitals of the tutorial in NVFlare's own deployment for trials (POC), with mutual TLS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.processes.hospitals import environment
from tests.processes.tutorial import (
    HOSPITALS,
    entries,
    learned_over_grpc,
    prepare,
    seconds_per_exchange,
)

if find_spec("nvflare") is None:
    pytest.skip("needs NVFlare", allow_module_level=True)
from isthmus_nvflare.job import write_job

BIN = Path(sys.executable).parent
NODES = {"server": "lead", "site-1": "north", "site-2": "east", "site-3": "south"}
CLASSES = {"server": "isthmus_nvflare.StudyController"}
SLOW = 3.0
"""Seconds of an exchange on a machine that is busy with other tests; the page has the figure."""


class Deployment:
    """A server and three sites of NVFlare, with a start-up kit each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kits = folder / "poc" / "example_project" / "prod_00"
        self._environment = environment() | {
            "HOME": str(folder),
            "NVFLARE_POC_WORKSPACE": str(folder / "poc"),
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }
        self.command("poc", "prepare", "-n", "3")
        for node, home in NODES.items():
            settings = {"home": str(folder / home), "study": str(folder / "study")}
            (self.kits / node / "local" / "isthmus.json").write_text(json.dumps(settings))
            self.allow(node, CLASSES.get(node, "isthmus_nvflare.SiteExecutor"))

    def command(self, *arguments: str, fails: bool = False) -> dict[str, Any]:
        """Run a command of NVFlare and return what it answers."""
        path = self.folder / "answer"
        with path.open("w+b") as output:  # no pipe: the processes of the deployment would keep it
            done = subprocess.run(
                [BIN / "nvflare", "--format", "json", "--connect-timeout", "30", *arguments],
                env=self._environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=200,
                check=False,
            )
        said = path.read_text()
        assert fails or done.returncode == 0, said
        lines = [line for line in said.splitlines() if line.startswith("{")]
        answer: dict[str, Any] = json.loads(lines[-1])
        return answer

    def allow(self, node: str, *classes: str) -> None:
        """Do what the officer of a site does: allow classes besides those of NVFlare."""
        local = self.kits / node / "local"
        resources = json.loads((local / "resources.json.default").read_text())
        kept = local / "resources.json"
        if kept.exists():  # the server's has paths of its own
            resources = json.loads(kept.read_text())
        ours = [c for c in resources["class_allow_list"] if not c.startswith("isthmus")]
        kept.write_text(json.dumps(resources | {"class_allow_list": [*ours, *classes]}))

    def run(self, name: str, gather: int, *, fails: bool = False, **options: str) -> str:
        """Submit a job and wait until it ends; return its identifier."""
        job = self.folder / "jobs" / name
        write_job(job, name, len(HOSPITALS), ["network.csv"], {"gather": str(gather)} | options)
        submit = "job", "submit", "-j", str(job)
        end = time.monotonic() + 120
        while "job_id" not in (answer := self.command(*submit, fails=True).get("data") or {}):
            assert time.monotonic() < end, answer  # the server is still starting
        number: str = answer["job_id"]
        ended = self.command("job", "wait", number, "--interval", "0.5", fails=True)
        assert (ended["status"] != "ok") is fails, ended
        return number

    def status(self) -> dict[str, Any]:
        """How the run of the coordinator stands."""
        (path,) = (self.folder / "lead").glob("study-*/status.json")
        found: dict[str, Any] = json.loads(path.read_text())
        return found


@contextmanager
def deployed(folder: Path) -> Iterator[Deployment]:
    """Start the deployment, and stop it at the end."""
    made = Deployment(folder)
    try:
        made.command("poc", "start", "--no-wait")
        yield made
    finally:
        made.command("poc", "stop")


@pytest.fixture
def deployment(folder: Path) -> Iterator[Deployment]:
    prepare(folder)
    with deployed(folder) as made:
        yield made


def test_the_hospitals_of_the_tutorial(deployment: Deployment, folder: Path) -> None:
    """A job that a site does not allow, a study that a policy refuses, then the same network."""
    deployment.allow("site-2")
    number = deployment.run("not-allowed", 30, fails=True)
    log = deployment.kits / "site-2" / number / "error_log.txt"
    assert "'isthmus_nvflare.SiteExecutor'" in log.read_text()
    assert "is not in allow_list" in log.read_text()
    assert [entries(folder, name) for name in HOSPITALS] == [0, 0, 0]

    deployment.allow("site-2", "isthmus_nvflare.SiteExecutor")
    policy = folder / "south" / "policy.toml"
    text = policy.read_text()
    policy.write_text(text.replace("minimum_cohort = 50", "minimum_cohort = 5000"))
    assert policy.read_text() != text
    number = deployment.run("refused", 5, fails=True)
    assert deployment.status()["why"].startswith("The sites ['south'] did not connect")
    assert "cannot take part" in (folder / "south" / "nvflare.log").read_text()
    for log in (deployment.kits / "site-3" / number).glob("*log*"):  # some of them leave the site
        assert "cannot take part" not in log.read_text(errors="replace")
    assert [entries(folder, name) for name in HOSPITALS] == [0, 0, 0]

    policy.write_text(text)
    expected = learned_over_grpc(folder)
    number = deployment.run("study", 120)
    deployment.command("job", "download", number, "-o", str(folder / "results"))
    (network,) = (folder / "results").rglob("network.csv")
    assert network.read_text() == expected
    assert expected.count("\n") > 4
    assert [entries(folder, name) for name in HOSPITALS] == [5, 5, 5]


@pytest.mark.skipif("ISTHMUS_LONG" not in os.environ, reason="takes minutes; set ISTHMUS_LONG")
def test_the_seconds_of_an_exchange(folder: Path) -> None:
    """Print them for 20 rounds of ADMM, each of which has five exchanges."""
    prepare(folder, "--method", "admm")
    with deployed(folder) as deployment:
        deployment.run("study", 120, search="ADMM(rounds=20)")
    seconds = seconds_per_exchange(folder, "north")
    print(f"{seconds:.3f} s per exchange over NVFlare")
    assert seconds < SLOW
