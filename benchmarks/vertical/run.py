"""Computations of two processes: cost, growth, latency, and equality with the joined table.

    python benchmarks/vertical/run.py costs        # n = 1,000 to 100,000 and 8, 20, 37 variables
    python benchmarks/vertical/run.py parents      # at most 1, 2, 3 parents
    python benchmarks/vertical/run.py large        # n = 10^7 and 5 variables, 10^6 and 37
    python benchmarks/vertical/run.py latency      # with 40 ms per round trip and 100 Mbit/s
    python benchmarks/vertical/run.py problems     # private K2: 100 random problems
    python benchmarks/vertical/run.py best-sets    # structure only: 50 random problems
    python benchmarks/vertical/run.py gaussian     # secret moments: 50 random problems
    python benchmarks/vertical/run.py networks     # asia, sachs, child, alarm
    python benchmarks/vertical/run.py paillier     # the paper's scalar product beside ours

Needs the extra vertical. Results are appended to benchmarks/results/vertical.jsonl; what is there
already is not run again. Networks are read from ../shared/data/networks, or under ISTHMUS_DATA.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import best_sets
import numpy as np
from pairs import measured_round_trip, run_jobs, written
from plain import greedy, random_network

RESULTS = Path(__file__).parents[1] / "results" / "vertical.jsonl"
DATA = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[3] / "shared" / "data"))
PARENTS = 2


def done() -> set[str]:
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return {json.loads(line)["name"] for line in lines}


def keep(record: dict[str, Any]) -> None:
    print(json.dumps(record), flush=True)
    with RESULTS.open("a") as file:
        file.write(json.dumps(record) + "\n")


def cost(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Costs of both parties together, except the time that passed."""
    return {
        "seconds": round(max(r["seconds"] for r in reports), 2),
        "cpu": round(sum(r["cpu"] for r in reports), 2),
        "megabytes": round(sum(r["sent"] for r in reports) / 1e6, 2),
        "messages": sum(r["messages"] for r in reports),
        "gigabytes": round(max(r["memory"] for r in reports) / 1e6, 2),
        "work": reports[0]["work"],
    }


def owners_of(levels: list[int]) -> list[int]:
    return [i % 2 for i in range(len(levels))]


def search_job(
    name: str,
    data: Any,
    levels: list[int],
    order: list[int],
    limit: int,
    folder: Path,
    task: str = "k2",
) -> Any:
    names = [f"x{i}" for i in range(len(levels))]
    job = {"name": name, "task": task, "score": "k2", "parents": limit}
    job["order"] = [names[i] for i in order]
    return written(job, names, data, levels, owners_of(levels), folder)


def simulated(rows: int, m: int) -> tuple[Any, list[int]]:
    rng = np.random.default_rng([rows, m])
    levels = [int(k) for k in rng.integers(2, 4, m)]
    return random_network(rng, rows, levels), levels


def costs(
    sizes: list[tuple[int, int]],
    limits: tuple[int, ...] = (PARENTS,),
    round_trip: float = 0.0,
    bandwidth: float = math.inf,
) -> None:
    """Measure, with a connection of this round trip (s) and bandwidth (bytes/s)."""
    label = f", {round(1000 * round_trip)} ms" if round_trip else ""
    label += f", {round(8e-6 * bandwidth)} Mbit/s" if bandwidth < math.inf else ""
    wanted = {f"k2 n={n} m={m} u={u}{label}": (n, m, u) for n, m in sizes for u in limits}
    wanted = {name: size for name, size in wanted.items() if name not in done()}
    measured = {"round trip": measured_round_trip(round_trip)} if round_trip else {}
    for name, (n, m, u) in wanted.items():
        data, levels = simulated(n, m)
        with tempfile.TemporaryDirectory() as folder:  # new engines, as in each run of a study
            jobs = [search_job(name, data, levels, list(range(m)), u, Path(folder))]
            (reports,) = run_jobs(jobs, round_trip, bandwidth)
        found = verdict(data, levels, list(range(m)), u, reports)
        assert found["same network"], found
        keep({"name": name, "kind": "cost", **cost(reports), **measured})


def verdict(
    data: Any, levels: list[int], order: list[int], limit: int, reports: list[dict[str, Any]]
) -> dict[str, Any]:
    """Compare every decision that was revealed with exact scores."""
    steps = {}
    for child, parent in reports[0]["steps"]:
        steps.setdefault(child, []).append(parent)
    equal, margins, differences = 0, [], []
    decisions = greedy(data, levels, order, limit)
    for d in decisions:
        taken = steps.get(f"x{d['child']}", [])
        place = len(d["parents"])
        found = taken[place] if place < len(taken) else "missing"
        best = None if d["best"] is None else f"x{d['best']}"
        ranked = sorted(d["options"].values())
        margins.append(ranked[-1] - ranked[-2])
        if found == best:
            equal += 1
        else:
            score = d["options"].get(None if found is None else int(str(found)[1:]), -np.inf)
            differences.append(ranked[-1] - score)
    return {
        "decisions": len(decisions),
        "equal": equal,
        "differences": differences,
        "closest": min(margins, default=None),
        "same network": reports[0]["edges"] == reports[1]["edges"] and not differences,
    }


def problems() -> Iterator[tuple[str, Any, list[int], list[int], int]]:
    for k in range(100):
        rng = np.random.default_rng([14, k])
        m = int(rng.integers(4, 7))
        rows = [200, 500, 2_000, 5_000, 20_000][k % 5]
        levels = [int(x) for x in rng.integers(2, 5, m)]
        yield (
            f"problem {k}",
            random_network(rng, rows, levels),
            levels,
            list(rng.permutation(m)),
            2 + k % 2,
        )


def networks() -> Iterator[tuple[str, Any, list[int], list[int], int]]:
    from isthmus.io.bif import read_bif

    for name, limit in (("asia", 3), ("sachs", 3), ("child", 2), ("alarm", 2)):
        network = read_bif(DATA / "networks" / f"{name}.bif.gz")
        sample = network.sample_codes(5_000, seed=14)
        names = list(network.dag.nodes)
        levels = [len(network.levels[n]) for n in names] if hasattr(network, "levels") else []
        data = np.column_stack([sample[n] for n in names])
        if not levels:
            levels = [int(x) for x in data.max(0) + 1]
        order = [names.index(n) for n in network.dag.topological_order()]
        yield name, data.astype(np.int64), levels, order, limit


def compare(cases: Iterator[tuple[str, Any, list[int], list[int], int]], kind: str) -> None:
    finished = done()
    todo = [case for case in cases if case[0] not in finished]
    if not todo:
        return
    with tempfile.TemporaryDirectory() as folder:
        jobs = [search_job(*case, Path(folder)) for case in todo]
        for case, reports in zip(todo, run_jobs(jobs), strict=True):
            name, data, levels, order, limit = case
            found = verdict(data, levels, order, limit, reports)
            size = {"rows": len(data), "variables": len(levels), "parents": limit}
            keep({"name": name, "kind": kind, **size, **found, **cost(reports)})


def compare_best_sets(problems: Iterator[best_sets.Problem], task: str) -> None:
    """Compare the best parents in secret with those on the joined table."""
    finished = done()
    todo = [problem for problem in problems if problem[0] not in finished]
    if not todo:
        return
    with tempfile.TemporaryDirectory() as folder:
        jobs = [search_job(*problem, Path(folder), task) for problem in todo]
        for problem, reports in zip(todo, run_jobs(jobs), strict=True):
            name, data, levels, _, limit = problem
            found = best_sets.verdict(problem, owners_of(levels), reports)
            size = {"rows": len(data), "variables": len(levels), "parents": limit}
            keep({"name": name, "kind": task, **size, **found, **cost(reports)})


def paillier() -> None:
    """One column of Alice with ten of Bob, and beside it all tables of ten variables with ten."""
    from paillier import scalar_products

    n, width, name = 10_000, 20, "products side by side"
    if name in done():
        return
    codes = np.random.default_rng(14).integers(0, 2, (n, width))
    others = codes[:, width // 2 :]
    names = [f"x{i}" for i in range(width)]
    owners = [int(i >= width // 2) for i in range(width)]
    with tempfile.TemporaryDirectory() as folder:
        jobs = [
            written({"name": k, "task": "product"}, names, codes, [2] * width, owners, Path(folder))
            for k in ("keys", "again")
        ]
        *_, ours = run_jobs(jobs)  # the first one makes keys
    started = time.process_time()
    assert scalar_products(codes[:, 0], others) == (codes[:, 0] @ others).tolist()
    theirs = time.process_time() - started
    # Alice encrypts each of her ten columns once, and Bob answers with each of his.
    record = {"paillier cpu, one column": round(theirs, 1), **cost(ours)}
    ratio = theirs * (width // 2) / record["cpu"]
    keep({"name": name, "kind": "product", **record, "ratio for ten columns": round(ratio)})


def main(what: str) -> None:
    if what == "costs":
        costs([(n, m) for m in (8, 20, 37) for n in (1_000, 10_000, 100_000)])
    elif what == "parents":
        costs([(1_000, 8)], (1, 2, 3))
    elif what == "latency":
        costs([(10_000, 8), (100_000, 20)], round_trip=0.04, bandwidth=100e6 / 8)
    elif what == "large":
        costs([(10_000_000, 5), (1_000_000, 37)])
    elif what == "best-sets":
        compare_best_sets(best_sets.discrete_problems(), "structure only")
    elif what == "gaussian":
        compare_best_sets(best_sets.gaussian_problems(), "gaussian")
    elif what == "problems":
        compare(problems(), "problem")
    elif what == "networks":
        compare(networks(), "network")
    else:
        paillier()


if __name__ == "__main__":
    main(sys.argv[1])
