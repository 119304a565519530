"""ADMM by the command line: real sites over TLS, a killed coordinator, what is told to whom."""

from __future__ import annotations

import importlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.processes.hospitals import Hospitals, run

import isthmus as ist
from isthmus.cli.strategies import admm_from
from isthmus.federated import learn_admm
from isthmus.federated.admm.model_choice import model_of
from isthmus.io import read_edge_list
from isthmus.parties import verify
from isthmus.parties.transport.flower import supernode

pytest.importorskip("flwr")
LONG = pytest.mark.skipif(
    "ISTHMUS_LONG" not in os.environ, reason="takes minutes; set ISTHMUS_LONG to run it"
)
QUICK = "LinearADMM(rounds=3, rho1=1.0, rho2=0.1)"
"""Weights move from the first step on."""
TIMES = ("--gather", "240", "--answer", "40", "--pause", "300")


def require_equal(world: Hospitals, model: str) -> None:
    """What arrived is what the same study gives within one process, to the last bit."""
    expected = learn_admm(world.inside(), admm_from(model))
    found: dict[str, Any] = json.loads((world.folder / "network.json").read_text())
    assert np.array(found["parameters"]).tobytes() == expected.parameters.tobytes()
    assert [tuple(e[:2]) for e in found["edges"]] == list(expected.dag.edges)
    assert found["disclosure"] == expected.to_dict()["disclosure"]


def test_admm_over_tls_with_a_killed_coordinator(
    hospitals: Callable[..., Hospitals], capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed in the second step; the same command goes on, and asks no step twice."""
    world = hospitals(60, 80, 70, method="admm")
    for name in world.names:
        world.start(name)
    command = [*TIMES, "--admm", QUICK]
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
        steps = [e for e in verify(world.home(name) / "ledger.jsonl") if e["event"] == "single"]
        assert [e["request"]["step"] for e in steps] == [1, 2, 3]
        assert steps[0]["sites"] == world.names
        run("site", "ledger", world.home(name))
        assert "3 × parameters of ADMM for 3 variables; sums of" in capsys.readouterr().out


def relayed(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the programs that stand beside Flower's."""
    monkeypatch.syspath_prepend(str(Path(supernode.__file__).parent / "relay"))
    return importlib.import_module(f"isthmus_relay.{name}")


def test_a_reply_does_not_wait_for_the_next_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reply to a killed coordinator's message is in the way of none that follows."""
    sent: list[str] = []
    replies = ["to the killed one"]

    class State:
        def get_messages_legacy(self, *, is_reply: bool) -> list[str]:
            assert is_reply
            found = replies.copy()
            replies.clear()
            return found

    def push(*, state: Any, send: Callable[[str], None]) -> None:
        while not (found := state.get_messages_legacy(is_reply=True)):
            replies.append("late")
        for reply in found:
            send(reply)

    def pull(*, state: Any) -> int | None:
        assert not replies  # nothing is left over
        return None

    loop, state = relayed("node", monkeypatch).Loop(pull, push), State()
    loop.push(state=state, send=sent.append)
    replies.append("to the next one")
    loop.pull(state=state)
    loop.pull(state=state)
    assert sent == ["to the killed one", "to the next one"]
    loop.push(state=state, send=sent.append)
    assert sent[2:] == ["late"]


def test_half_a_message_does_not_block_a_site(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed coordinator did not send in full is given up, and other tasks are taken."""
    runner = relayed("site_runner", monkeypatch)
    asked: list[bool] = []

    class Flaky:
        def PullObject(self, available: bool) -> Any:  # noqa: N802 - Flower's
            asked.append(available)
            return SimpleNamespace(object_available=available)

    client = runner.Impatient(Flaky(), seconds=0.2)
    client.PullObject(False)
    time.sleep(0.15)
    client.PullObject(True)
    time.sleep(0.15)
    client.PullObject(False)  # another part came meanwhile
    time.sleep(0.1)
    with pytest.raises(TimeoutError, match="completely"):
        client.PullObject(False)
    assert asked == [False, True, False, False]


def test_series_of_real_processes(hospitals: Callable[..., Hospitals]) -> None:
    """The study has earlier steps; each site makes them of its own table."""
    world = hospitals(60, 80, 70, method="admm", draft=["--lags", "1"])
    options = model_of(world.study, None)
    world.serve(*world.names)
    transport = world.transport()
    federation = ist.Federation(world.study, world.signatures, world.boss, transport)
    found = learn_admm(federation, options)
    assert found.weights.shape == (6, 3)
    expected = learn_admm(world.inside(), options)
    assert found.parameters.tobytes() == expected.parameters.tobytes()
    assert {("a", "b"), ("b", "c")} == set(found.dag.edges)
    opened = verify(world.home("s0") / "ledger.jsonl")[0]
    assert opened["request"] == {"totals": ["a", "b", "c", "a@1", "b@1", "c@1"]}


@LONG
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_networks_over_tls(hospitals: Callable[..., Hospitals]) -> None:
    pytest.importorskip("jax")
    world = hospitals(60, 80, 70, method="admm", draft=["--networks"])
    for name in world.names:
        world.start(name)
    model = "PerceptronADMM(rounds=3, hidden=3)"
    running = world.coordinate(*TIMES, "--admm", model, "-o", str(world.folder / "network.json"))
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
    assert world.coordinate(*TIMES, "--admm", "LinearADMM(rounds=2)", *out).wait(300) == 0
    other = (*TIMES, "--admm", QUICK, *out)
    assert world.coordinate(*other).wait(300) == 20
    assert "--restart" in world.log("coordinator")
    assert world.coordinate("--restart", *other).wait(300) == 0, world.log("coordinator")
    require_equal(world, QUICK)
    entries = verify(world.home("s0") / "ledger.jsonl")
    assert [e["event"] for e in entries].count("single") == 2 + 3
