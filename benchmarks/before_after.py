"""CPU time of two versions of the library on the same tasks, in turn, in one run.

Each version runs in a worker process of its own, with its own interpreter and source folder. A
task is run once to warm up, then in turn by both; the table gives the smallest CPU time of each,
their ratio, and whether both returned the same graph.

    python benchmarks/before_after.py --before ../old/src --after src
    python benchmarks/before_after.py --before ../old/src --before-python ../old/.venv/bin/python \
        --tasks house --repeats 5 --output benchmarks/results/before-after.md

With ``--fail-below 0.8`` it ends with an error if a task became slower than that ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HOUSE = ("xges andes", "boss 200", "federation 10")
CORE = (
    "xges alarm", "xges hailfinder", "xges hepar2", "xges pathfinder", "xges andes",
    "hill climb alarm", "boss 20", "boss 50", "boss 100", "boss 200", "boss 500",
    "local scores alarm", "counting", "exact alarm", "notears 50", "notears 200", "large 5000",
)  # fmt: skip
MINUTES = ("boss 500", "large 5000")
"""Tasks that are not warmed up, because others compile the same code and these take minutes."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def data_folder() -> Path:
    default = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    return Path(os.environ.get("ISTHMUS_DATA", default)) / "networks"


# --- what a worker does ----------------------------------------------------------------------


def discrete_rows(network: str, n: int = 5000) -> dict[str, Any]:
    from isthmus import simulate
    from isthmus.io import read_bif

    return dict(simulate.discrete(read_bif(data_folder() / f"{network}.bif.gz"), n, seed=0).data)


def linear_rows(d: int, n: int = 1000) -> dict[str, Any]:
    """Erdős–Rényi graph with 2d edges, weights ±[0.5, 2], unit noise."""
    import numpy as np

    rng = np.random.default_rng(d)
    x = np.empty((n, d))
    order = rng.permutation(d)
    for i, v in enumerate(order):
        parents = order[:i][rng.random(i) < 4.0 / max(d - 1, 1)]
        weights = rng.uniform(0.5, 2.0, len(parents)) * rng.choice([-1.0, 1.0], len(parents))
        x[:, v] = rng.normal(size=n) + (x[:, parents] @ weights if len(parents) else 0.0)
    x /= x.std(axis=0)
    return {f"v{i}": x[:, i] for i in range(d)}


def task(name: str) -> Callable[[], Any]:
    """Prepare a task and return the function to be timed."""
    import isthmus as ist

    word, _, size = name.rpartition(" ")
    if word in ("xges", "hill climb"):
        rows = discrete_rows(size)
        kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
        counts = ist.summarise(rows, plan=ist.CountPlan.everything(), kinds=kinds)
        # One climb, as before there were restarts.
        once = {"restarts": 0} if hasattr(ist.HillClimb, "restarts") else {}
        search = ist.XGES() if word == "xges" else ist.HillClimb(**once)
        return lambda: ist.learn(counts, score=ist.BIC(), search=search)
    if word == "boss":
        moments = ist.summarise(linear_rows(int(size)))
        return lambda: ist.learn(moments, score=ist.GaussianBIC(), search=ist.Boss(starts=1))
    if word == "large":  # as in benchmarks/large.py
        from isthmus import simulate

        dag = simulate.erdos_renyi([f"x{i}" for i in range(int(size))], 2 * int(size), seed=1)
        moments = ist.summarise(simulate.linear(dag, 2000, seed=2).data)
        return lambda: ist.learn(moments, score=ist.GaussianEBIC(), search=ist.Boss(starts=1))
    if word == "notears":
        moments = ist.summarise(linear_rows(int(size)))
        return lambda: ist.learn(moments, search=ist.Notears(penalty=0.1))
    if word == "exact":
        table = ist.parent_sets(discrete_rows(size), score=ist.BIC())
        return lambda: ist.solve(table)
    if word == "local scores":
        rows = discrete_rows(size)
        kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
        counts = ist.summarise(rows, plan=ist.CountPlan.everything(), kinds=kinds)
        return lambda: ist.parent_sets(counts, score=ist.BIC(), max_parents=3)
    if word == "federation":
        rows = linear_rows(20)
        sites = {
            f"site {k}": {n: v[k :: int(size)] for n, v in rows.items()} for k in range(int(size))
        }
        return lambda: ist.learn(
            ist.Federation.simulate(sites), score=ist.GaussianBIC(), search=ist.Boss()
        )
    if name == "counting":
        rows = discrete_rows("alarm", 200_000)
        kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
        names = list(rows)
        plan = ist.CountPlan.sets([names[i : i + 3] for i in range(len(names) - 3)])
        frame = ist.Frame(rows, kinds=kinds)
        return lambda: frame.counts(plan)
    raise SystemExit(f"There is no task {name!r}.")


def serve() -> None:
    """Answer one line per command: prepare a task, or time it."""
    warnings.simplefilter("ignore")
    ready: dict[str, Callable[[], Any]] = {}
    for line in sys.stdin:
        name = json.loads(line)
        if name not in ready:
            ready[name] = task(name)
            if name not in MINUTES:
                ready[name]()
        start = time.process_time()
        result = ready[name]()
        seconds = time.process_time() - start
        edges = sorted(map(list, result.dag.edges)) if hasattr(result, "dag") else None
        score = float(result.score) if hasattr(result, "dag") else None
        print(json.dumps({"seconds": seconds, "edges": edges, "score": score}), flush=True)


# --- what the driver does --------------------------------------------------------------------


def worker(python: str, source: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(source).resolve())}
    environment |= dict.fromkeys(THREADS, "1")
    return subprocess.Popen(
        [python, __file__, "--serve"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def ask(process: subprocess.Popen[str], name: str) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(name) + "\n")
    process.stdin.flush()
    answer: dict[str, Any] = json.loads(process.stdout.readline())
    return answer


def compare(before: Any, after: Any, name: str, repeats: int) -> tuple[str, float]:
    """Return the row of a task, and the ratio of its times."""
    first, second = [], []
    for _ in range(repeats):
        first.append(ask(before, name))
        second.append(ask(after, name))
    old, new = (min(a["seconds"] for a in answers) for answers in (first, second))
    if first[0]["edges"] is None:
        same = ""
    elif first[0]["edges"] == second[0]["edges"]:
        same = "same graph"
    else:
        same = f"score {second[0]['score'] - first[0]['score']:+.6g}"
    return f"| {name} | {old:.4f} | {new:.4f} | {old / new:.2f} | {same} |", old / new


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--before", help="source folder of the old version")
    parser.add_argument("--after", default="src", help="source folder of the new version")
    parser.add_argument("--before-python", default=sys.executable)
    parser.add_argument("--after-python", default=sys.executable)
    parser.add_argument("--tasks", nargs="*", default=["house"], help="house, core, or names")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--output", type=Path)
    parser.add_argument("--fail-below", type=float, default=0.0, metavar="RATIO")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    names: list[str] = []
    for word in options.tasks:
        names += {"house": HOUSE, "core": CORE}.get(word, (word,))
    before = worker(options.before_python, options.before)
    after = worker(options.after_python, options.after)
    lines = [
        "| task | before, CPU s | after, CPU s | before / after | result |",
        "| --- | --- | --- | --- | --- |",
    ]
    slower = []
    for name in names:
        line, ratio = compare(before, after, name, options.repeats)
        lines.append(line)
        print(line, flush=True)
        if ratio < options.fail_below:
            slower.append(name)
    for process in (before, after):
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    if slower:
        sys.exit(f"Slower than before: {', '.join(slower)}.")


if __name__ == "__main__":
    main()
