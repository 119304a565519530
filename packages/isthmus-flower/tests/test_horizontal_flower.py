"""The hospitals of the tutorial in a SuperLink and SuperNodes of Flower, with TLS."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.processes.hospitals import COMMAND, environment
from tests.processes.tutorial import (
    HOSPITALS,
    entries,
    learned_over_grpc,
    prepare,
    seconds_per_exchange,
)

from isthmus.cli.parsing import ExitCode
from isthmus_joint.transport.certificates import ChildProcess, free_port, own_certificate

if find_spec("flwr") is None:
    pytest.skip("needs Flower", allow_module_level=True)
import isthmus_flower

BIN = Path(sys.executable).parent
APP = Path(isthmus_flower.__file__).parent / "app"


class Deployment:
    """A SuperLink and three SuperNodes, each with a folder of its own for Flower."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self._stack = folder, stack
        self.address = f"127.0.0.1:{free_port()}"
        self._certificate = folder / "flower.crt"
        certificate, key = own_certificate("superlink", ["127.0.0.1"])
        self._certificate.write_bytes(certificate)
        (folder / "flower.pem").write_bytes(key)
        port = self.address.rpartition(":")[2]
        self._start(
            *("lead", "flower-superlink", "--host", "127.0.0.1", "--port", port),
            *("--ssl-ca-certfile", str(self._certificate), "--ssl-certfile"),
            *(str(self._certificate), "--ssl-keyfile", str(folder / "flower.pem")),
        )
        for name in HOSPITALS:
            socket = folder / f"{name}.socket"
            self._start(
                *(name, "flower-supernode", "--node-config", f'isthmus-socket="{socket}"'),
                *("--superlink", self.address, "--root-certificates"),
                *(str(self._certificate), "--host", "127.0.0.1", "--port", str(free_port())),
            )

    def _environment(self, name: str) -> dict[str, str]:
        home = self.folder / f"flower of {name}"
        home.mkdir(exist_ok=True)
        inherited = environment()
        inherited.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of its processes compiles Flower
        return inherited | {
            "FLWR_SUPEREXEC_TASK_POLL_INTERVAL": "0.1",
            "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"),
            "FLWR_HOME": str(home),
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        }

    def _start(self, name: str, program: str, *arguments: str) -> None:
        variables = self._environment(name)
        settings = {"home": str(self.folder / name), "study": str(self.folder / "study")}
        (Path(variables["FLWR_HOME"]) / "isthmus.json").write_text(json.dumps(settings))
        process = ChildProcess([str(BIN / program), *arguments], variables, self._log(name))
        self._stack.callback(process.stop)

    def join(self, name: str) -> subprocess.Popen[bytes]:
        """Start the own process of a site."""
        command = [*COMMAND, "site", "join", name, "study", "--socket", f"{name}.socket"]
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment(), stdout=log, stderr=log
            )
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        return process

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.flower.log"

    def flwr(self, *arguments: str) -> dict[str, Any]:
        """Run a command of Flower, as anyone who may submit runs; return what it answers."""
        variables = self._environment("submitter")
        (Path(variables["FLWR_HOME"]) / "config.toml").write_text(
            f'[superlink.consortium]\naddress = "{self.address}"\n'
            f'root-certificates = "{self._certificate}"\n'
        )
        done = subprocess.run(
            [BIN / "flwr", *arguments, "--format", "json"],
            env=variables,
            cwd=self.folder,
            capture_output=True,
            timeout=200,
            check=False,
        )
        answer: dict[str, Any] = json.loads(done.stdout or "{}")
        return answer

    def run(self, gather: int) -> tuple[str, str]:
        """Submit a run and wait until it ends; return its number and its status."""
        options = f'gather={gather} outputs="network.csv"'
        submit = "run", str(APP), "consortium", "--run-config", options
        end = time.monotonic() + 200
        while "run-id" not in (answer := self.flwr(*submit)):
            assert time.monotonic() < end, self.said()  # the SuperLink is still starting
            time.sleep(2)
        end = time.monotonic() + gather + 900
        while time.monotonic() < end:
            listed = self.flwr("list", "consortium", "--run-id", answer["run-id"])
            if (status := str(listed["runs"][0]["status"])).startswith("finished"):
                return answer["run-id"], status
            time.sleep(2)
        raise AssertionError(self.said())

    def said(self) -> str:
        """The end of the logs of all processes."""
        return "\n".join(self._log(n).read_text()[-3000:] for n in ("lead", *HOSPITALS))


@pytest.fixture
def deployment(folder: Path) -> Iterator[Deployment]:
    prepare(folder)
    (folder / "expected.csv").write_text(learned_over_grpc(folder))
    with ExitStack() as stack:
        yield Deployment(folder, stack)


@pytest.mark.skipif("ISTHMUS_LONG" not in os.environ, reason="takes minutes; set ISTHMUS_LONG")
@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_hospitals_of_the_tutorial(deployment: Deployment, folder: Path) -> None:
    """A study that a policy refuses, then the same network as over gRPC."""
    expected = (folder / "expected.csv").read_text()
    policy = folder / "south" / "policy.toml"
    text = policy.read_text()
    policy.write_text(text.replace("minimum_cohort = 50", "minimum_cohort = 5000"))
    assert policy.read_text() != text
    for name in ("north", "east"):
        deployment.join(name)
    assert deployment.join("south").wait(300) == ExitCode.REFUSED
    assert "cannot take part" in (folder / "south.log").read_text()
    _, status = deployment.run(120)
    (path,) = (folder / "lead").glob("study-*/status.json")
    assert json.loads(path.read_text())["why"].startswith("The sites ['south'] did not connect")
    assert status == "finished:failed"
    assert [entries(folder, name) for name in HOSPITALS] == [0, 0, 0]

    policy.write_text(text)
    deployment.join("south")
    number, status = deployment.run(600)
    assert status == "finished:completed", deployment.said()
    network = folder / "lead" / f"flower-{number}" / "network.csv"
    assert network.read_text() == expected
    assert expected.count("\n") > 4
    assert [entries(folder, name) for name in HOSPITALS] == [5, 5, 5]
    print(f"{seconds_per_exchange(folder, 'north'):.1f} s per exchange over Flower")
