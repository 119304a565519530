"""One party of the benchmarks: a process that holds its own columns and no others.

    python benchmarks/vertical/party.py JOBS.json RANK PORT0 PORT1 LOG

Reads jobs, each with a file of this party's columns, and prints one line of JSON per job.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from isthmus.sources.vertical.columns import Column, Columns
from isthmus.sources.vertical.engine import Engine, connect_local
from isthmus.sources.vertical.private_k2 import private_k2
from isthmus.sources.vertical.secret_scores import CountScore
from isthmus.sources.vertical.secret_tables import SecretTables
from isthmus.sources.vertical.structure_only import structure_only


def load(job: dict[str, Any], rank: int) -> Columns:
    described = [Column(*c) for c in job["columns"]]
    with np.load(job["files"][rank]) as file:
        own = {name: file[name] for name in file.files}
    return Columns(described, own, rank, job["rows"])


def compute(engine: Engine, columns: Columns, job: dict[str, Any]) -> dict[str, Any]:
    if job["task"] == "setup":  # the oblivious transfers that all later comparisons extend
        private_k2(engine, columns, columns.names, 1, CountScore())
        return {}
    if job["task"] == "product":
        first = [(i,) for i, c in enumerate(columns.columns) if c.owner == 0]
        second = [(i,) for i, c in enumerate(columns.columns) if c.owner == 1]
        SecretTables(engine, columns).prepare([tuple(sorted(a + b)) for a in first for b in second])
        return {}
    score = CountScore(job["score"])
    if job["task"] == "structure only":
        dag = structure_only(engine, columns, job["order"], job["parents"], score)
        return {"edges": sorted(map(list, dag.edges))}
    found = private_k2(engine, columns, job["order"], job["parents"], score)
    edges = sorted(map(list, found.dag.edges))
    return {"edges": edges, "steps": [[s.child, s.parent] for s in found.steps]}


def main() -> None:
    path, rank, first, second, log = sys.argv[1:]
    link = connect_local(int(rank), (int(first), int(second)), patience=600)
    engine = Engine(link, log=Path(log))
    for job in json.loads(Path(path).read_text()):
        columns = load(job, engine.rank)
        before = dict(vars(engine.costs))
        wall, cpu = time.perf_counter(), time.process_time()
        result = compute(engine, columns, job)
        costs = {k: v - before[k] for k, v in vars(engine.costs).items()}
        costs["seconds"] = time.perf_counter() - wall
        costs["cpu"] = time.process_time() - cpu
        print(json.dumps({"job": job["name"], **result, **costs}), flush=True)
    engine.close()


if __name__ == "__main__":
    main()
