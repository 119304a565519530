"""One party of the benchmarks: a process that holds its own columns and no others.

    python benchmarks/vertical/party.py JOBS.json RANK PORT

Reads jobs, each with a file of this party's columns, and prints one line of JSON per job.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from isthmus_joint.shares.cost import Rehearsal
from isthmus_joint.shares.engine import SecretSharingRuntime
from isthmus_joint.shares.link import connect_local
from isthmus_joint.shares.private_k2 import private_k2, structure_only
from isthmus_joint.shares.secret_functions import CountScore
from isthmus_joint.shares.secret_moments import secret_gaussian_structure
from isthmus_joint.shares.secret_tables import SecretTables
from isthmus_joint.shares.terms import Columns, SharedColumn


def load(job: dict[str, Any], rank: int) -> Columns:
    described = [SharedColumn(*c) for c in job["columns"]]
    with np.load(job["files"][rank]) as file:
        own = {name: file[name] for name in file.files}
    return Columns(described, own, rank, job["rows"])


def compute(engine: SecretSharingRuntime, columns: Columns, job: dict[str, Any]) -> dict[str, Any]:
    if job["task"] == "product":
        first = [(i,) for i, c in enumerate(columns.columns) if c.owner == 0]
        second = [(i,) for i, c in enumerate(columns.columns) if c.owner == 1]
        SecretTables(engine, columns).prepare([tuple(sorted(a + b)) for a in first for b in second])
        return {}
    if job["task"] == "gaussian":
        dag = secret_gaussian_structure(engine, columns, job["order"], job["parents"])
        return {"edges": sorted(map(list, dag.edges))}
    score = CountScore(job["score"])
    if job["task"] == "structure only":
        dag = structure_only(engine, columns, job["order"], job["parents"], score)
        return {"edges": sorted(map(list, dag.edges))}
    dag, steps = private_k2(engine, columns, job["order"], job["parents"], score)
    edges = sorted(map(list, dag.edges))
    return {"edges": edges, "steps": [list(step) for step in steps]}


class CountedProducts:
    """Products that also add up their work, as the estimate of a run does."""

    def __init__(self, products: Any, rank: int, rows: int) -> None:
        self.rehearsal = Rehearsal(rank, rows)
        self._products = products

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._products, name)

        def counted(*arguments: Any) -> Any:
            getattr(self.rehearsal, name, lambda *_: None)(*arguments)
            return method(*arguments)

        return counted


class CountedLink:
    """A link that counts what is sent over it."""

    def __init__(self, link: Any) -> None:
        self.rank = link.rank
        self.costs = {"sent": 0, "messages": 0}
        self._link = link

    def send(self, data: bytes) -> None:
        self.costs["sent"] += len(data)
        self.costs["messages"] += 1
        self._link.send(data)

    def receive(self) -> bytes:
        return bytes(self._link.receive())


def main() -> None:
    path, rank, port = sys.argv[1:]
    link = CountedLink(connect_local(int(rank), int(port), message_timeout=600))
    for job in json.loads(Path(path).read_text()):
        engine: Any = SecretSharingRuntime(link)  # with new seeds, as in each run of a study
        columns = load(job, engine.rank)
        before = dict(link.costs)
        wall, cpu = time.perf_counter(), time.process_time()
        counted = CountedProducts(engine.products, engine.rank, job["rows"])
        engine._products = counted  # noqa: SLF001 - instead of those that do not count
        result = compute(engine, columns, job)
        costs: dict[str, Any] = {k: v - before[k] for k, v in link.costs.items()}
        costs["work"] = asdict(counted.rehearsal.work)
        costs["seconds"] = time.perf_counter() - wall
        costs["cpu"] = time.process_time() - cpu
        costs["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # so far, in kB
        print(json.dumps({"job": job["name"], **result, **costs}), flush=True)


if __name__ == "__main__":
    main()
