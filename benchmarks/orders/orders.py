"""Tables 2 to 4 of the RBNets paper on the data at hand: BIC and time of searches over orders.

    python benchmarks/orders/orders.py run --peers PYTHON     # goes on where it was stopped
    python benchmarks/orders/orders.py render

All times and all budgets are CPU seconds of one thread: the clock that budgets are read from is
that of the process. The same listed parent sets go to all searches over tables. The BIC of every
graph is computed here, by a function that knows nothing of any search.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import numpy as np
from data import SAMPLED, SIZES, UCI, Codes, load

RESULTS = Path(__file__).parents[1] / "results"
LEDGER = RESULTS / "orders.jsonl"
SMALL = ("shuttle", "adult", "voting", "segment", "horse colic", "water*", "alarm*", "sponge")
MEDIUM = ("hailfinder*", "hepar2*", "ozone", "insurance", "pathfinder*", "gas sensor")
LARGE = ("semeion", "madelon", "isolet", "parkinson", "androgen")
HALVES = [n for n in UCI if n not in LARGE]
OVER_TABLES = ("OBS", "ASOBS", "BOSS", "RBNets", "RBNets improved")
FROM_DATA = ("ASOBS from data", "BOSS from data")


class Budget(NamedTuple):
    """CPU seconds: to list parent sets, and for each search over them; "from data" has the sum."""

    listing: float
    search: float


PYAGRUM = """
import json, sys, time
import numpy as np, pandas as pd, pyagrum as gum
codes = np.load(sys.argv[1])["codes"]
names = [f"v{j}" for j in range(codes.shape[1])]
frame = pd.DataFrame({
    name: pd.Categorical.from_codes(column, [f"s{k:03d}" for k in range(column.max() + 1)])
    for name, column in zip(names, codes.T)
})
learner = gum.BNLearner(frame)
learner.setNumberOfThreads(1)
learner.useScoreBIC()
learner.useNoPrior()
learner.useGreedyHillClimbing()
begun = time.process_time()
dag = learner.learnDAG()
seconds = time.process_time() - begun
place = {name: j for j, name in enumerate(names)}
arcs = [[place[learner.names()[a]], place[learner.names()[b]]] for a, b in dag.arcs()]
print(json.dumps({"seconds": seconds, "edges": arcs}))
"""


def bic(codes: np.ndarray[Any, Any], edges: list[Any]) -> float:
    n, d = codes.shape
    sizes = codes.max(axis=0) + 1
    parents: list[list[int]] = [[] for _ in range(d)]
    for tail, head in edges:
        parents[head].append(tail)
    total = 0.0
    for child in range(d):
        group = np.zeros(n, dtype=np.int64)
        rows = 1.0
        for parent in parents[child]:
            _, group = np.unique(group * sizes[parent] + codes[:, parent], return_inverse=True)
            rows *= sizes[parent]
        joint = np.unique(group * sizes[child] + codes[:, child], return_counts=True)[1]
        margin = np.unique(group, return_counts=True)[1]
        total += float((joint * np.log(joint)).sum() - (margin * np.log(margin)).sum())
        total -= 0.5 * np.log(n) * rows * (sizes[child] - 1)
    return float(total)


def searches(method: str) -> Any:
    import isthmus as ist

    forever = 10**9
    return {
        "OBS": ist.OBS(starts=forever),
        "ASOBS": ist.ASOBS(starts=forever),
        "BOSS": ist.Boss(starts=forever),
        "RBNets": ist.RBNets(),
        "RBNets improved": ist.RBNets.improved(episodes=forever),
        "A*": ist.AStar(),
        "HC": ist.HillClimb(),
        "XGES": ist.XGES(),
        "BOSS from data": ist.Boss(starts=forever),
        "ASOBS from data": ist.ASOBS(starts=forever, max_parent_sets=2000),
    }[method]


def pyagrum(codes: np.ndarray[Any, Any], python: str, limit: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        np.savez(f"{home}/x.npz", codes=codes)
        try:
            done = subprocess.run(
                ["bash", "-c", f'ulimit -t {int(limit) + 20}; exec "$@"', "-", python, "-c",
                 PYAGRUM, f"{home}/x.npz"],
                capture_output=True, text=True, check=True, timeout=20 * limit,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return {"status": f"over {limit:.0f} s"}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def tasks() -> Iterator[tuple[str, str, Budget, int]]:
    """Give table, data set, seconds, number of seeds; what matters most first."""
    small, medium, large, short = Budget(2, 8), Budget(4, 10), Budget(10, 15), Budget(1, 2.5)
    halves = [f"{name}/{half}" for name in HALVES for half in "01"]
    samples = [f"{name}*{size}" for size in SIZES for name in SAMPLED]
    for seeds in (1, 3):
        for table, names, budget in (
            ("2", SMALL, small), ("2", MEDIUM, medium), ("2", LARGE, large),
            ("3", halves, short), ("4", samples, short),
        ):  # fmt: skip
            for name in names:
                yield table, name, budget, seeds


def run(python: str | None, only: list[str], methods: list[str]) -> None:
    time.monotonic = time.process_time  # type: ignore[assignment]
    import isthmus as ist

    warnings.simplefilter("ignore")
    done = {tuple(one["key"]) for one in read()}
    compiled = False
    for table, name, budget, seeds in tasks():
        if only and table not in only:
            continue
        wanted = [(m, s) for s in range(seeds) for m in (*FROM_DATA, *OVER_TABLES)]
        wanted += [(m, 0) for m in ("HC", "XGES", "A*")] + ([("pyagrum HC", 0)] if python else [])
        missing = [w for w in wanted if (table, name, *w) not in done]
        missing = [w for w in missing if not methods or w[0] in methods]
        if not missing:
            continue
        if not compiled:
            warm_up()
            compiled = True
        rows = load(name)
        kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
        begun = time.process_time()
        over = any(method in (*OVER_TABLES, "A*") for method, _ in missing)
        listed = ist.parent_sets(rows, kinds=kinds, time_limit=budget.listing) if over else None
        pops = time.process_time() - begun
        for method, seed in missing:
            one = measure(method, seed, rows, listed, budget, python)
            done.add((table, name, method, seed))
            add({
                "key": [table, name, method, seed], "d": len(rows), "budget": budget.search,
                "n": len(next(iter(rows.values()))), **one,
                **({} if listed is None else {
                    "pops": round(pops, 3), "sets": len(listed), "complete": listed.complete,
                }),
            })  # fmt: skip


def exact(limit: float) -> None:
    """List all parent sets where that ends in time, and solve by A*."""
    time.monotonic = time.process_time  # type: ignore[assignment]
    import isthmus as ist
    from isthmus.errors import MismatchError
    from isthmus.objectives.table import TableBuilder

    warm_up()
    done = {tuple(one["key"]) for one in read()}
    for name in (*SMALL, *MEDIUM):
        if ("2", name, "A*", 1) in done:
            continue
        rows = load(name)
        codes = np.column_stack(list(rows.values()))
        place = {node: j for j, node in enumerate(rows)}
        kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
        counts: Any = ist.summarise(rows, plan=ist.CountPlan.everything(), kinds=kinds)
        begun = time.process_time()
        builder = TableBuilder(ist.BIC().bind(counts))
        while not (finished := builder.step()) and time.process_time() - begun < limit:
            pass
        one: dict[str, Any] = {"key": ["2", name, "A*", 1], "scored": builder.scored}
        one["listing"] = round(time.process_time() - begun, 3)
        if finished:
            table = builder.table()
            begun = time.process_time()
            try:
                solution = ist.solve(table, search=ist.AStar(), time_limit=limit)
            except MismatchError as error:
                add({**one, "status": str(error)[:60]})
                continue
            edges = [(place[a], place[b]) for a, b in solution.dag.edges]
            one |= {
                "seconds": round(time.process_time() - begun, 3), "bic": bic(codes, edges),
                "ending": str(solution.status.ending), "gap": solution.details.gap,
                "listed": len(table),
            }  # fmt: skip
        else:
            one["status"] = f"parent sets not listed in {limit:.0f} s: {builder.done:.0%}"
        add(one)


def warm_up() -> None:
    """Compile everything before the clock counts."""
    import isthmus as ist

    rows = load("voting")
    kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
    listed = ist.parent_sets(rows, kinds=kinds, time_limit=0.5)
    for method in OVER_TABLES:
        ist.solve(listed, search=searches(method), time_limit=0.5)
    for method in ("HC", "XGES", *FROM_DATA):
        ist.learn(rows, score=ist.BIC(), search=searches(method), kinds=kinds, time_limit=0.5)


def measure(
    method: str, seed: int, rows: Codes, listed: Any, budget: Budget, python: Any
) -> dict[str, Any]:
    import isthmus as ist
    from isthmus.errors import MismatchError

    codes = np.column_stack(list(rows.values()))
    place = {name: j for j, name in enumerate(rows)}
    if method == "pyagrum HC":
        found = pyagrum(codes, python, 60.0)
        if "edges" in found:
            return {"seconds": found["seconds"], "bic": bic(codes, found["edges"])}
        return found
    kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
    search = searches(method)
    begun = time.process_time()
    if method in (*OVER_TABLES, "A*"):
        if method == "A*" and (not listed.complete or len(rows) > 64):
            return {"status": "parent sets not complete"}
        limit = 30.0 if method == "A*" else budget.search
        try:
            solution = ist.solve(listed, search=search, seed=seed, time_limit=limit)
        except MismatchError as error:
            return {"status": str(error)[:60]}
    else:
        limit = budget.listing + budget.search if method in FROM_DATA else 40.0
        solution = ist.learn(
            rows, score=ist.BIC(), search=search, kinds=kinds, seed=seed, time_limit=limit
        )
    seconds = time.process_time() - begun
    edges = [(place[a], place[b]) for a, b in solution.dag.edges]
    kept = ("episodes", "learned", "policy", "best_walk", "warm_start", "starts", "climbs", "gap")
    return {
        "seconds": round(seconds, 3),
        "bic": bic(codes, edges),
        "said": solution.score,
        "ending": str(solution.status.ending),
        **{k: v for k, v in solution.details.items() if k in kept},
    }


def read(ledger: Path = LEDGER) -> list[dict[str, Any]]:
    if not ledger.exists():
        return []
    return [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]


def add(one: dict[str, Any]) -> None:
    with LEDGER.open("a", encoding="utf-8") as file:
        file.write(json.dumps(one) + "\n")
    print(one, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["run", "exact", "render"])
    parser.add_argument("--peers", help="a Python that has pyagrum")
    parser.add_argument("--only", nargs="*", default=[], help="tables: 2, 3, 4")
    parser.add_argument("--methods", nargs="*", default=[])
    options = parser.parse_args()
    if options.what == "run":
        run(options.peers, options.only, options.methods)
    elif options.what == "exact":
        exact(12.0)
    else:
        from render import render

        large = RESULTS / "orders-large.jsonl"
        print(render(read(), read(large)), end="")


if __name__ == "__main__":
    sys.exit(main())
