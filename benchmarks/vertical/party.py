"""One party of the benchmarks: a process that holds its own columns and no others.

    python benchmarks/vertical/party.py JOBS.json RANK PORT0 PORT1 LOG

Reads jobs, each with a file of this party's columns, and prints one line of JSON per job.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np

from isthmus.joint.methods.private_k2 import private_k2, structure_only
from isthmus.joint.shares.columns import Columns, SharedColumn
from isthmus.joint.shares.cost import Work, work_of, work_of_products
from isthmus.joint.shares.engine import SecretSharingRuntime, connect_local
from isthmus.joint.shares.secret_moments import secret_gaussian_structure
from isthmus.joint.shares.secret_scores import CountScore
from isthmus.joint.shares.secret_tables import SecretTables


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


def count_work(engine: SecretSharingRuntime) -> list[Work]:
    """Add up the work of all programs and products that run, in a list of one element."""
    done = [Work()]
    run, counts = engine.run, engine.products.counts

    def counted(program: Any, *inputs: Any) -> Any:
        done[0] += work_of(program.__name__, [value.shape for value in inputs])
        return run(program, *inputs)

    def counted_products(wanted: Any, rows: int) -> Any:
        done[0] += work_of_products(wanted, rows)
        return counts(wanted, rows)

    engine.run = counted  # type: ignore[method-assign]
    engine.products.counts = counted_products  # type: ignore[method-assign]
    return done


class CountedLink:
    """A link that counts what products send and receive over it."""

    def __init__(self, link: Any) -> None:
        self.costs = dict.fromkeys(("sent", "received", "messages"), 0)
        self._link = link

    def __getattr__(self, name: str) -> Any:
        return getattr(self._link, name)

    def send(self, to: int, data: bytes) -> None:
        self.costs["sent"] += len(data)
        self.costs["messages"] += 1
        self._link.send(to, data)

    def recv(self, other: int) -> bytes:
        data = bytes(self._link.recv(other))
        self.costs["received"] += len(data)
        return data


def traffic(log: Path, link: CountedLink) -> dict[str, int]:
    """Return bytes and messages so far, of products and from the statistics of programs."""
    costs = dict(link.costs)
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    for line in text.splitlines():
        _, found, figures = line.partition("Link details: ")
        if found:
            words = figures.replace(",", "").split()
            new = int(words[3]), int(words[6]), int(words[9])
            costs = {k: v + more for (k, v), more in zip(costs.items(), new, strict=True)}
    return costs


def main() -> None:
    path, rank, first, second, log = sys.argv[1:]
    link = CountedLink(connect_local(int(rank), (int(first), int(second)), message_timeout=600))
    engine = SecretSharingRuntime(cast("Any", link), log=Path(log))
    work = count_work(engine)
    for job in json.loads(Path(path).read_text()):
        columns = load(job, engine.rank)
        work[0] = Work()
        before = traffic(Path(log), link)
        wall, cpu = time.perf_counter(), time.process_time()
        result = compute(engine, columns, job)
        costs = {k: v - before[k] for k, v in traffic(Path(log), link).items()} | asdict(work[0])
        costs["seconds"] = time.perf_counter() - wall
        costs["cpu"] = time.process_time() - cpu
        costs["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # so far, in kB
        print(json.dumps({"job": job["name"], **result, **costs}), flush=True)
    engine.close()


if __name__ == "__main__":
    main()
