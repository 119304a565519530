"""The bootstrap: cost beside single runs, and calibration of the shares of edges.

    OPENBLAS_NUM_THREADS=1 python benchmarks/bootstrap.py time   # needs alarm, see CONTRIBUTING.md
    OPENBLAS_NUM_THREADS=1 python benchmarks/bootstrap.py waiting
    OPENBLAS_NUM_THREADS=1 python benchmarks/bootstrap.py calibration 30 \\
        docs/_static/bootstrap-calibration.svg

Calibration uses the truths of ``posterior/calibration.py``: graphs and parameters from the prior of
the BGe score, 8 variables. Each replicate is the best graph under BGe, by exact search.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

import isthmus as ist

sys.path.insert(0, str(Path(__file__).parent / "posterior"))


def measured(action: Callable[[], object]) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.perf_counter()
    action()
    return time.process_time() - cpu, time.perf_counter() - wall


def cost(rounds: int = 7) -> None:
    import before_after

    rows = before_after.discrete_rows("alarm")
    kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
    ist.learn(rows, kinds=kinds)
    single, one, two = (
        "200 runs of learn",
        "bootstrap, 200 replicates, one thread",
        "bootstrap, 200 replicates, two threads",
    )
    actions: dict[str, Callable[[], object]] = {
        single: lambda: [ist.learn(rows, kinds=kinds) for _ in range(200)],
        one: lambda: ist.bootstrap(rows, kinds=kinds, jobs=1),
        two: lambda: ist.bootstrap(rows, kinds=kinds, jobs=2),
    }
    # In turn, so that other work on the machine meets all of them.
    found = {name: np.empty((rounds, 2)) for name in actions}
    for i in range(rounds):
        for name, action in actions.items():
            found[name][i] = measured(action)
    print("| alarm, 5,000 rows; medians | CPU s | wall s | cores used |")
    print("| --- | --- | --- | --- |")
    for name, times in found.items():
        cpu, wall = np.median(times, axis=0)
        cores = np.median(times[:, 0] / times[:, 1])
        print(f"| {name} | {cpu:.2f} | {wall:.2f} | {cores:.2f} |")
    for what, column, below, above in (
        ("CPU, bootstrap with two threads / 200 runs", 0, single, two),
        ("wall, two threads / one thread", 1, one, two),
    ):
        ratios = np.sort(found[above][:, column] / found[below][:, column])
        print(f"{what}: median {np.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def waiting() -> None:
    """Split the wall time of each thread into running, waiting for a core and the rest (Linux)."""
    import before_after

    rows = before_after.discrete_rows("alarm")
    kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
    ist.bootstrap(rows, kinds=kinds, replicates=4, jobs=1)
    print("| threads | wall s | of each thread: running s | waiting for a core s | other s |")
    print("| --- | --- | --- | --- | --- |")
    for jobs in (1, 2):
        times: dict[str, tuple[float, float]] = {}
        done = threading.Event()

        def watch(
            times: dict[str, tuple[float, float]] = times, done: threading.Event = done
        ) -> None:
            while not done.wait(0.02):
                for task in Path("/proc/self/task").iterdir():
                    with contextlib.suppress(OSError):
                        run, wait, _ = (task / "schedstat").read_text().split()
                        times[task.name] = int(run) / 1e9, int(wait) / 1e9

        before = {task.name for task in Path("/proc/self/task").iterdir()}
        watcher = threading.Thread(target=watch)
        watcher.start()
        before.add(str(watcher.native_id))
        _, wall = measured(partial(ist.bootstrap, rows, kinds=kinds, jobs=jobs))
        done.set()
        watcher.join()
        for task, (run, wait) in times.items():
            if task not in before:
                print(f"| {jobs} | {wall:.2f} | {run:.2f} | {wait:.2f} | {wall - run - wait:.2f} |")


def calibration(truths: int, picture: Path | None) -> None:
    import calibration as posterior

    heads = [f"{k / 10:.1f}-{(k + 1) / 10:.1f}" for k in range(10)]
    print("| rows | edges by | " + " | ".join(heads) + " |")
    print("| --- " * 12 + "|")
    off = ~np.eye(8, dtype=bool)
    score = ist.BGe(
        alpha_mu=posterior.ALPHA_MU, prior_mean=ist.PriorMean.ZERO, prior_scale=ist.PriorScale.UNIT
    )
    lines = []
    for rows in (50, 500):
        rng = np.random.default_rng(0)
        found: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {"bootstrap": [], "posterior": []}
        for dag in posterior.graphs(8, truths, 0):
            x, _ = posterior.simulate(dag, rows, rng, lambda r, n: r.normal(size=n), lambda z: z)
            table = {name: x[:, i] for i, name in enumerate(dag.nodes)}
            there = dag.adjacency()[off].astype(float)
            shares = ist.bootstrap(table, score=score, search=ist.SubsetDP(), replicates=200)
            exact = ist.sample(table, score=score, sampler=ist.ExactPosterior(), draws=1, chains=1)
            found["bootstrap"].append((shares.edge_probabilities()[off], there))
            found["posterior"].append((exact.edge_probabilities()[off], there))
        for name, parts in found.items():
            p, y = (np.concatenate(column) for column in zip(*parts, strict=True))
            line = posterior.bins(p, y)
            lines.append({"label": f"{name}, {rows} rows", **line})
            loss = float(np.square(p - y).mean())
            cells = " | ".join("-" if s is None else f"{s:.2f}" for s in line["share"])
            print(f"| {rows} | {name} (Brier score {loss:.3f}) | {cells} |", flush=True)
    if picture is not None:
        posterior.draw(lines, picture)


if __name__ == "__main__":
    if sys.argv[1:2] == ["calibration"]:
        calibration(
            int(sys.argv[2]) if len(sys.argv) > 2 else 30,
            Path(sys.argv[3]) if len(sys.argv) > 3 else None,
        )
    elif sys.argv[1:2] == ["waiting"]:
        waiting()
    else:
        cost()
