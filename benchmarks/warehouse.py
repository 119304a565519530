"""Statistics of a table in Parquet through DuckDB: ours against the bare SQL for the same numbers.

    python benchmarks/warehouse.py --rows 1e8 --kind discrete
    python benchmarks/warehouse.py --rows 1e8 --kind continuous
    python benchmarks/warehouse.py --rows 5e7 --copies 20 --kind continuous --ways bare learn

Each run is a process of its own, bare SQL and ours in turn, so that the peak of resident memory
belongs to it alone. The file is written to a temporary directory and deleted; with ``--copies`` it
is linked so many times, and DuckDB reads every link as a file of its own. On a busy machine read
the ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Any

COLUMNS = 12
LEVELS = [2, 3, 4, 2, 3, 2, 3, 2, 4, 2, 2, 2]
MEMORY = "1GB"


def connect() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET memory_limit = '{MEMORY}'")
    return connection


def names() -> list[str]:
    return [f"v{i}" for i in range(COLUMNS)]


def write(path: str, rows: int, kind: str) -> None:
    """A chain of dependent columns, half of the discrete ones text and half small integers."""
    inner, outer = [], []
    for i, name in enumerate(names()):
        if kind == "continuous":
            before = f"0.5 * n{i - 1} + " if i else ""
            inner.append(f"random() + random() + random() - 1.5 AS n{i}")
            outer.append(f"{100 * i} + {before}n{i} AS {name}")
            continue
        before = f"u{i - 1} * 0.3 + " if i else ""
        inner.append(f"random() AS u{i}")
        code = f"least(floor(({before}u{i} * {0.7 if i else 1.0}) * {LEVELS[i]}), {LEVELS[i] - 1})"
        code = f"({code})::UTINYINT"
        outer.append(f"{code} AS {name}" if i % 2 else f"'level ' || {code} AS {name}")
    query = f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM range({rows}))"
    connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def bare(path: str, kind: str) -> Callable[[], int]:
    """The same numbers, as someone would write them by hand."""
    if kind == "discrete":
        listed = ", ".join(names())
        query = f"SELECT {listed}, count(*) FROM '{path}' GROUP BY {listed}"
        return lambda: sum(row[-1] for row in connect().execute(query).fetchall())
    wanted = ["count(*)", *[f"sum({a})" for a in names()]]
    wanted += [f"sum({a} * {b})" for a, b in combinations_with_replacement(names(), 2)]
    query = f"SELECT {', '.join(wanted)} FROM '{path}'"
    return lambda: int(connect().execute(query).fetchall()[0][0])


def ours(path: str, kind: str) -> Callable[[], int]:
    from isthmus.statistics import CountPlan
    from isthmus.tables import Lazy

    def run() -> int:
        source = Lazy(connect().sql(f"FROM '{path}'"))
        source.schema()
        found = source.counts(CountPlan.everything()) if kind == "discrete" else source.moments()
        return found.n

    return run


def learn(path: str, _kind: str) -> Callable[[], int]:
    """From the table to the network."""
    import isthmus

    def run() -> int:
        solution = isthmus.learn(connect().sql(f"FROM '{path}'"))
        return len(solution.dag.nodes)

    return run


WAYS = {"bare": bare, "ours": ours, "learn": learn}


def child(path: str, kind: str, way: str) -> None:
    """One run in this process: seconds, processor seconds, peak of memory."""
    run = WAYS[way](path, kind)
    started, busy = time.perf_counter(), time.process_time()
    rows = run()
    taken, used = time.perf_counter() - started, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": taken, "cpu": used, "gigabytes": peak, "rows": rows}))


def measure(path: str, kind: str, way: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", way, "--kind", kind, "--path", path]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--kind", choices=["discrete", "continuous"], default="discrete")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--directory", default=None, help="where the file is written")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=["bare", "ours"])
    parser.add_argument("--child", choices=list(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.path, given.kind, given.child)
        return
    with tempfile.TemporaryDirectory(dir=given.directory) as home:
        path = os.path.join(home, "*.parquet")
        first = os.path.join(home, "0.parquet")
        write(first, int(given.rows), given.kind)
        for copy in range(1, given.copies):
            os.link(first, os.path.join(home, f"{copy}.parquet"))
        rows, size = given.copies * int(given.rows), given.copies * os.path.getsize(first) / 2**30
        print(f"{rows:,} rows x {COLUMNS} {given.kind} columns, {size:.2f} GB", flush=True)
        runs: dict[str, list[dict[str, float]]] = {way: [] for way in given.ways}
        measure(first, given.kind, given.ways[0])  # the file is in the page cache from here on
        for _ in range(given.repeats):
            for way in given.ways:
                runs[way].append(measure(path, given.kind, way))
    base = statistics.median(r["seconds"] for r in runs[given.ways[0]])
    for way, found in runs.items():
        seconds = statistics.median(r["seconds"] for r in found)
        cpu = statistics.median(r["cpu"] for r in found)
        peak = max(r["gigabytes"] for r in found)
        ratio = seconds / base
        print(f"{way:8s} {seconds:7.2f} s  {cpu:7.2f} cpu s  {peak:5.2f} GB  x {ratio:.2f}")


if __name__ == "__main__":
    main()
