"""Two parties as real processes with the real engine: results, crashes, lies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.joint.shares import reference
from tests.processes.companies import ROOT, Companies, World
from tests.processes.faulty_engine import COMMAND
from tests.processes.hospitals import environment

import isthmus as ist
from isthmus.cli import ExitCode

MINUTE = 60.0
COLUMNS = {"bank": ("a", "c"), "shop": ("b", "e")}
ORDER = ("b", "a", "e", "c")
LEVELS = {"a": 2, "b": 3, "c": 2, "e": 3}
BANK, SHOP = range(260), range(60, 330)
COMMON = range(60, 260)


def categories(people: Sequence[int]) -> dict[str, Any]:
    """Levels of b → a → c ← e; a person always has the same ones."""
    rng = np.random.default_rng(14)
    size = 400
    b = rng.integers(0, 3, size)
    a = np.where(rng.random(size) < 0.8, b > 0, rng.integers(0, 2, size))
    e = rng.integers(0, 3, size)
    c = np.where(rng.random(size) < 0.8, (a + e) % 2, rng.integers(0, 2, size))
    return _rows(people, {"a": a, "b": b, "c": c, "e": e})


def measurements(people: Sequence[int]) -> dict[str, Any]:
    """Numbers of the same network; columns in different units."""
    rng = np.random.default_rng(15)
    noise = rng.normal(size=(4, 400))
    b, e = noise[0], noise[1]
    a = b + 0.7 * noise[2]
    c = a - e + noise[3]
    return _rows(people, {"a": a, "b": 10 * b, "c": c, "e": e / 10 + 30})


def _rows(people: Sequence[int], columns: dict[str, Any]) -> dict[str, Any]:
    chosen = {name: [values[i].item() for i in people] for name, values in columns.items()}
    return {"person": [f"p{i:04}" for i in people]} | {
        name: [int(v) if isinstance(v, bool) else v for v in values]
        for name, values in chosen.items()
    }


DISCRETE = World(COLUMNS, LEVELS, categories)
CONTINUOUS = World(COLUMNS, {}, measurements)


@pytest.fixture
def study(companies: Callable[..., Companies]) -> Callable[..., Companies]:
    """Makes a study of four variables with 200 common people."""

    def make(world: World, request: str, *more: str) -> Companies:
        draft = ["--request", request, "--order", *ORDER, "--parents", "2", *more]
        return companies(bank=BANK, shop=SHOP, draft=draft, world=world)

    return make


def edges_in(log: str) -> set[tuple[str, str]]:
    """The network that a party has printed; edges that can point either way follow the order."""
    directed = [line.split(" → ") for line in log.splitlines()]
    pairs = [line.split(" — ") for line in log.splitlines()]
    either = [sorted(pair, key=ORDER.index) for pair in pairs if {*pair} <= {*ORDER}]
    return {(e[0], e[1]) for e in directed + either if len(e) == 2 and {*e} <= {*ORDER}}


def expected_edges(sets: dict[int, set[int]]) -> set[tuple[str, str]]:
    names = sorted(ORDER)
    return {(names[p], names[i]) for i, parents in sets.items() for p in parents}


def common_rows(world: World) -> Any:
    """The joined table, in alphabetical order of its columns."""
    rows = world.table(COMMON)
    return np.column_stack([rows[name] for name in sorted(ORDER)])


def test_structure_only_is_the_best_network(study: Callable[..., Companies]) -> None:
    world = study(DISCRETE, "structure only")
    assert world.both(stand_in=False) == (ExitCode.DONE, ExitCode.DONE)
    data, levels = common_rows(DISCRETE), [LEVELS[name] for name in sorted(ORDER)]
    order = [sorted(ORDER).index(name) for name in ORDER]
    expected = expected_edges(reference.best_sets(data, levels, order, 2, "k2"))
    assert len(expected) >= 3
    for name in ("bank", "shop"):
        assert edges_in(world.log(name)) == expected
        assert world.revealed(name) == ["the parents of each of a, e, c"]
        assert "revealed is the network" in world.log(name)


def test_gaussian_structure_from_secret_moments(study: Callable[..., Companies]) -> None:
    world = study(CONTINUOUS, "structure only")
    assert world.both(stand_in=False) == (ExitCode.DONE, ExitCode.DONE)
    data, sets = common_rows(CONTINUOUS), {}
    order = [sorted(ORDER).index(name) for name in ORDER]
    for k, i in enumerate(order):
        choices = [s for size in range(3) for s in combinations(order[:k], size)]
        scores = [gaussian_bic(data, i, s) for s in choices]
        assert len(scores) < 2 or np.diff(np.sort(scores))[-1] > 0.01
        sets[i] = set(choices[int(np.argmax(scores))])
    for name in ("bank", "shop"):
        assert edges_in(world.log(name)) == expected_edges(sets)
        assert world.revealed(name) == ["the parents of each of a, e, c"]


def gaussian_bic(data: Any, child: int, parents: tuple[int, ...]) -> float:
    n = len(data)
    design = np.column_stack([np.ones(n), data[:, list(parents)]])
    residual = data[:, child] - design @ np.linalg.lstsq(design, data[:, child], rcond=None)[0]
    return float(-0.5 * n * np.log(residual @ residual / n) - 0.5 * np.log(n) * len(parents))


def test_moments_of_both_for_a_search_and_a_posterior(study: Callable[..., Companies]) -> None:
    world = study(CONTINUOUS, "cross moments", "--runs", "1")
    processes = []
    for name in ("bank", "shop"):
        paths = (world.home(name), world.study, world.data(name), world.folder / f"{name}.json")
        with (world.folder / f"{name}.log").open("wb") as log:
            command = [sys.executable, "-m", "tests.processes.two_party_posterior"]
            processes.append(
                subprocess.Popen(
                    [*command, *map(str, paths)],
                    cwd=ROOT,
                    env=environment(),
                    stdout=log,
                    stderr=log,
                )
            )
    assert [p.wait(4 * MINUTE) for p in processes] == [0, 0]
    bank, shop = (json.loads((world.folder / f"{n}.json").read_text()) for n in ("bank", "shop"))
    assert bank == shop
    rows = CONTINUOUS.table(COMMON)
    joined = {name: rows[name] for name in ORDER}
    plain = ist.learn(joined, score=ist.GaussianBIC(), progress=False)
    posterior = ist.sample(joined, draws=200, seed=3, progress=False)
    found = ist.DAG(
        ORDER, map(tuple, bank["edges"])
    )  # a member of the class that the data determine
    assert ist.metrics.shd_cpdag(found, plain.dag.reorder(ORDER)) == 0
    assert bank["score"] == pytest.approx(plain.score, abs=1e-3)
    order = [posterior.nodes.index(name) for name in bank["nodes"]]
    np.testing.assert_allclose(
        bank["edge probabilities"], posterior.edge_probabilities()[np.ix_(order, order)], atol=1e-3
    )
    assert sum("means and products" in what for what in bank["released"]) == 1  # computed once
    assert [event for event, _ in world.ledger("bank")].count("aligning") == 1


def attempt(world: Companies, fault: str) -> tuple[int, int]:
    """Run both parties, of which the shop has a fault; the bank ends within a minute of it."""
    at = world.folder / "fault"
    world.start("bank", "--message-timeout", "20", stand_in=False)
    world.start("shop", extra={"FAULT": fault, "FAULT_AT": str(at)}, command=COMMAND)
    bank = world.processes["bank"].wait(4 * MINUTE)
    assert time.time() - at.stat().st_mtime < MINUTE
    return bank, world.processes["shop"].wait(2 * MINUTE)


@pytest.mark.skipif("ISTHMUS_LONG" not in os.environ, reason="a minute: three runs")
def test_crashes_and_resumption(study: Callable[..., Companies]) -> None:
    """Each decision is revealed once, whichever process is killed when."""
    world = study(DISCRETE, "private k2", "--runs", "1")
    assert attempt(world, "engine dies") == (ExitCode.ABORTED, ExitCode.ABORTED)
    assert world.status("bank")["reason"] in ("ended: engine", "engine")
    assert spent(world, "bank") == spent(world, "shop") == []
    assert attempt(world, "party dies") == (ExitCode.PAUSED, -signal.SIGKILL)
    assert world.status("bank")["reason"] == "disconnected"
    (label,) = spent(world, "shop")
    assert label.startswith("step 1")
    assert set(spent(world, "bank")) <= {label}
    assert world.both(stand_in=False) == (ExitCode.DONE, ExitCode.DONE)
    data, levels = common_rows(DISCRETE), [LEVELS[name] for name in sorted(ORDER)]
    order = [sorted(ORDER).index(name) for name in ORDER]
    expected, _ = reference.greedy(data, levels, order, 2, "k2")
    for name in ("bank", "shop"):
        assert edges_in(world.log(name)) == expected_edges(expected)
        assert "resumed: 1 values are not opened in another way" in world.log(name)
        events = [event for event, _ in world.ledger(name)]
        assert events.count("aligning") == events.count("aligned") == 1
        assert world.revealed(name) == spent(world, name)
    assert spent(world, "bank") == spent(world, "shop")


def spent(world: Companies, name: str) -> list[str]:
    """The values whose shares have left a party, each only once."""
    labels = [r["opening"] for r in world.journal(name) if "commitment" in r]
    assert len(set(labels)) == len(labels)
    return labels


@pytest.mark.parametrize("fault", ["garbage", "fewer rows", "short share"])
def test_an_engine_that_lies(study: Callable[..., Companies], fault: str) -> None:
    world = study(DISCRETE, "private k2")
    assert attempt(world, fault)[0] == ExitCode.ABORTED
    assert world.status("bank")["state"] == "aborted"
    assert world.status("bank")["reason"] == ("other share" if fault == "short share" else "engine")
    assert "sharing" in [event for event, _ in world.ledger("bank")]
    assert len(spent(world, "bank")) == (fault == "short share")
