"""Tables on demand over gRPC: real processes, a drafted study, and the result of pooled rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from tests.processes.hospitals import Hospitals

import isthmus as ist
from isthmus.io import read_edge_list
from isthmus_joint import verify

VARIABLES, ROWS = 105, 300
"""More variables than planned tables of three fit into one round."""


def test_a_search_asks_for_tables_on_demand(hospitals: Callable[..., Hospitals]) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(3, size=(3, ROWS, VARIABLES))
    for i in range(VARIABLES - 2):
        if i % 3:
            changed = rng.random((3, ROWS)) < 0.5
            codes[..., i] = np.where(changed, codes[..., i], (codes[..., i - 1] + i) % 3)
    definition = 'kind = "discrete"\nlevels = [0, 1, 2]'
    world = hospitals(tables=list(codes), definition=definition)
    assert world.study.requests == {"counts"}
    for name in world.names:
        world.start(name)
    out = world.folder / "network.csv"
    running = world.coordinate("--gather", "240", "--answer", "120", "-o", str(out))
    assert running.wait(300) == 0, world.log("coordinator")
    columns = np.concatenate(codes).T
    pooled = ist.learn(
        dict(zip(world.columns, columns, strict=True)),
        search=ist.XGES(max_parents=2),
        kinds=dict.fromkeys(world.columns, "discrete"),
    )
    learned = read_edge_list(out, nodes=pooled.dag.nodes)
    assert isinstance(learned, ist.DAG)
    assert len(learned.edges) > 50
    assert learned.cpdag() == pooled.cpdag
    sums = [record for record in world.records() if record["event"] == "sum"]
    for name in world.names:
        entries = verify(world.home(name) / "ledger.jsonl")
        asked = [e["request"]["cores"] for e in entries if e["event"] == "opened"]
        assert len(asked) == len(sums) <= 10
        assert {len(core) for core in asked[0]} == {1}
        assert {len(core) for cores in asked[1:] for core in cores} == {2}
