"""ADMM by the command line: real sites over TLS, a killed coordinator, what is told to whom."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.processes.hospitals import Hospitals, run

import isthmus as ist
import isthmus_joint
from isthmus.cli.inputs import search_from
from isthmus.io import read_edge_list
from isthmus_joint import ADMM, verify

LONG = pytest.mark.skipif(
    "ISTHMUS_LONG" not in os.environ, reason="takes minutes; set ISTHMUS_LONG to run it"
)
QUICK = "ADMM(rounds=3, rho1=1.0, rho2=0.1)"
"""Weights move from the first step on."""
TIMES = ("--gather", "240", "--answer", "40", "--pause", "300")


def require_equal(world: Hospitals, model: str) -> None:
    """What is published is what the same study gives within one process, to the last bit."""
    expected = ist.learn(world.inside(), search=search_from(model, [isthmus_joint])).published()
    found: dict[str, Any] = json.loads((world.folder / "network.json").read_text())
    parameters = np.array(found["details"]["parameters"])
    assert parameters.tobytes() == expected.details.parameters.tobytes()
    assert list(map(tuple, found["edges"])) == list(expected.dag.edges)
    assert found["disclosure"] == expected.to_dict()["disclosure"]


def test_admm_over_tls_with_a_killed_coordinator(
    hospitals: Callable[..., Hospitals], capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed in the second step; the same command goes on, and repeats only this step."""
    world = hospitals(60, 80, 70, method="admm")
    for name in world.names:
        world.start(name)
    command = [*TIMES, "--search", QUICK]
    for ending in ("json", "csv", "html"):
        command += ["-o", str(world.folder / f"network.{ending}")]
    first = world.coordinate(*command)
    world.await_text("s1", "'step': 2")
    os.killpg(first.pid, signal.SIGKILL)
    first.wait(60)
    assert world.status()["state"] == "running"
    assert world.coordinate(*command).wait(300) == 0, world.log("coordinator")
    assert world.status()["state"] == "done"
    require_equal(world, QUICK)
    graph = read_edge_list(world.folder / "network.csv", nodes=tuple("abc"))
    assert graph == ist.DAG(tuple("abc"), [("b", "a"), ("b", "c")])  # so far: it was cut short
    said, page = world.log("coordinator"), (world.folder / "network.html").read_text()
    for text in (said, page):  # what it tells stands in each result
        assert "can reveal single sites" in text
        assert "3 × parameters of ADMM for 3 variables" in text
        assert "may not have converged" in text
    for name in world.names:
        entries = verify(world.home(name) / "ledger.jsonl")
        steps = [e["request"].get("step", 0) for e in entries if e["event"] == "opened"]
        assert steps in ([0, 1, 2, 3], [0, 1, 2, 2, 3])
        results = [e["sites"] for e in entries if e["event"] == "unmasked"]
        assert results == [world.names] * len(results)
        run("ledger", "show", world.home(name))
        sent = len([e for e in entries if e["event"] == "sent"]) - 1  # step 2 may leave twice
        shown = f"{sent} × parameters of ADMM for 3 variables; sums of"
        assert shown in capsys.readouterr().out


@LONG
def test_admm_goes_on_when_a_site_comes_back(hospitals: Callable[..., Hospitals]) -> None:
    """A site that was killed computes its steps again from the sums that it has kept."""
    world = hospitals(60, 80, 70, method="admm")
    for name in world.names:
        world.start(name)
    search = "ADMM(rounds=6, rho1=1.0, rho2=0.1)"
    out = ("-o", str(world.folder / "network.json"))
    running = world.coordinate(*TIMES, "--search", search, *out)
    for step in (2, 4):
        world.await_text("s1", f"'step': {step}")
        world.kill("s1")
        world.start("s1")
    assert running.wait(300) == 0, world.log("coordinator")
    require_equal(world, search)
    verify(world.home("s1") / "ledger.jsonl")


@LONG
def test_series_of_real_processes(hospitals: Callable[..., Hospitals]) -> None:
    """The study has earlier steps; each site makes them of its own table."""
    world = hospitals(60, 80, 70, method="admm", draft=["--lags", "1"])
    world.serve(*world.names)
    transport = world.transport()
    federation = ist.Federation(world.study, world.signatures, world.boss, transport)
    found = ist.learn(federation)
    assert found.details.weights.shape == (6, 3)
    expected = ist.learn(world.inside(), search=ADMM())
    assert found.details.parameters.tobytes() == expected.details.parameters.tobytes()
    assert {("a", "b"), ("b", "c")} == set(found.dag.edges)
    opened = verify(world.home("s0") / "ledger.jsonl")[0]
    assert opened["request"]["consensus"] == ["a", "b", "c", "a@1", "b@1", "c@1"]


@LONG
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_networks_over_tls(hospitals: Callable[..., Hospitals]) -> None:
    pytest.importorskip("jax")
    world = hospitals(60, 80, 70, method="admm", draft=["--networks"])
    for name in world.names:
        world.start(name)
    model = "ADMM(rounds=3, hidden=3)"
    running = world.coordinate(*TIMES, "--search", model, "-o", str(world.folder / "network.json"))
    assert running.wait(800) == 0, world.log("coordinator")
    require_equal(world, model)


@LONG
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_other_options_restart(hospitals: Callable[..., Hospitals]) -> None:
    """A run is not resumed with other options; a restart is possible, and earlier rounds count."""
    world = hospitals(60, 80, 70, method="admm")
    for name in world.names:
        world.start(name)
    out = ("-o", str(world.folder / "network.json"))
    assert world.coordinate(*TIMES, "--search", "ADMM(rounds=2)", *out).wait(300) == 0
    other = (*TIMES, "--search", QUICK, *out)
    assert world.coordinate(*other).wait(300) == 20
    assert "--restart" in world.log("coordinator")
    assert world.coordinate("--restart", *other).wait(300) == 0, world.log("coordinator")
    require_equal(world, QUICK)
    entries = verify(world.home("s0") / "ledger.jsonl")
    assert [e["event"] for e in entries].count("unmasked") == 1 + 2 + 1 + 3
