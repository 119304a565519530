"""Missing values in a federation by the command line: real sites over TLS."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import pytest
from tests.processes.hospitals import NAMES, Hospitals, run, write_csv

import isthmus as ist
from isthmus.cli import main
from isthmus.io import read_edge_list
from isthmus_joint import verify

TIMES = ("--gather", "240", "--answer", "120", "--pause", "300")
EM = "ExpectationMaximisation"


@pytest.mark.skipif(
    "ISTHMUS_LONG" not in os.environ, reason="takes half a minute; set ISTHMUS_LONG to run it"
)
def test_three_sites_with_missing_values(
    hospitals: Callable[..., Hospitals], capsys: pytest.CaptureFixture[str]
) -> None:
    """The result is that of the pooled table, and every step is in the ledgers."""
    world = hospitals(60, 80, 70, draft=["--missing", EM])
    for name, values in world.tables.items():
        values[::3, 2] = np.nan
        values[1::4, 0] = np.nan
        write_csv(world.data(name), values)
        world.freeze(name)
    run("site", "dry-run", world.home("s0"), world.study_folder)
    assert "Up to 60 steps follow" in capsys.readouterr().out
    for name in world.names:
        world.start(name)
    out = world.folder / "network.csv"
    assert world.coordinate(*TIMES, "-o", str(out)).wait(300) == 0, world.log("coordinator")
    pooled = dict(zip(NAMES, world.pooled().T, strict=True))
    wanted = ist.learn(pooled, missing=ist.ExpectationMaximisation())
    graph = read_edge_list(out, nodes=NAMES)
    assert isinstance(graph, ist.DAG)
    assert graph.cpdag() == wanted.dag.cpdag()
    (record,) = [r for r in world.records() if r["event"] == "sum"][-1:]
    assert record["transcript"]
    assert "one step of expectation-maximisation" in world.log("coordinator")
    for name in world.names:
        entries = verify(world.home(name) / "ledger.jsonl")
        steps = [e for e in entries if e["event"] == "unmasked"]
        assert [e["sites"] for e in steps] == [world.names] * len(steps)
        assert len(steps) > 3
    places = [str(world.folder / "board"), str(world.study_folder)]
    assert main(["coordinator", "run", *places, "--missing", "DropRows"]) != 0
    assert "Federations offer ExpectationMaximisation" in capsys.readouterr().err
