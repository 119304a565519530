"""The posterior of a table in Parquet, through DuckDB and of the same rows in memory.

    OMP_NUM_THREADS=1 python benchmarks/posterior/warehouse.py --rows 1e7 \
        --results benchmarks/results/posterior-warehouse.jsonl

Each run is a process of its own, so that the peak of resident memory belongs to it alone. Some
effects are so small that even ten million rows do not tell whether they are there. The file is
written to a temporary directory and deleted.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist

COLUMNS = {"BGe": 12, "BDeu": 8, "GP": 6}
WEAK = 3
"""Every third effect is weak: it explains about 20 / rows of the variance."""


def connect() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET memory_limit = '1GB'")
    connection.execute("SET threads = 1")
    return connection


def write(path: str, rows: int, score: str) -> None:
    """Write a chain of columns, each of which depends on the one before."""
    weak = (20.0 / rows) ** 0.5
    inner, outer = [], []
    for i in range(COLUMNS[score]):
        size = weak if i % WEAK == WEAK - 1 else 0.5
        if score == "BDeu":
            inner.append(f"random() AS u{i}")
            before = f" + {size} * (u{i - 1} - 0.5)" if i else ""
            outer.append(f"least(greatest(floor(3 * (u{i}{before})), 0), 2)::TINYINT AS v{i}")
        else:
            inner.append(f"random() + random() + random() - 1.5 AS n{i}")
            effect = f"sin(4 * n{i - 1})" if score == "GP" else f"n{i - 1}"
            outer.append(f"n{i}{f' + {size} * {effect}' if i else ''} AS v{i}")
    query = f"SELECT {', '.join(outer)} FROM (SELECT {', '.join(inner)} FROM range({rows}))"
    connect().execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")


def load(path: str, place: str) -> object:
    table = connect().sql(f"FROM '{path}'")
    return table if place == "DuckDB" else table.fetchnumpy()


def child(path: str, score: str, place: str) -> None:
    """One run in this process: times, peak of memory, numbers that came over, probabilities."""
    chosen: Any = {"BGe": ist.BGe, "BDeu": ist.BDeu, "GP": ist.GP}[score]()
    kinds = {f"v{i}": "discrete" for i in range(COLUMNS[score])} if score == "BDeu" else None
    started, busy = time.perf_counter(), time.process_time()
    posterior = ist.sample(load(path, place), score=chosen, kinds=kinds, draws=1000, chains=1)
    record = {
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - busy,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "numbers": sum(entry.size for entry in posterior.disclosure.entries),
        "edges": posterior.edge_probabilities().tolist(),
        "paths": posterior.path_probabilities().tolist(),
    }
    print(json.dumps(record))


def measure(path: str, score: str, place: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", place, "--score", score, "--path", path]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    record: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return record


def compare(score: str, rows: int) -> dict[str, Any]:
    """Write the table, and draw from its posterior in both places."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/table.parquet"
        write(path, rows, score)
        size = Path(path).stat().st_size / 2**30
        there, here = (measure(path, score, place) for place in ("DuckDB", "memory"))
    edges, pooled = np.array(there["edges"]), np.array(here["edges"])
    difference = max(
        float(np.abs(edges - pooled).max()),
        float(np.abs(np.array(there["paths"]) - np.array(here["paths"])).max()),
    )
    sure = (edges < 0.01) | (edges > 0.99)
    return {
        "score": score,
        "rows": rows,
        "columns": len(edges),
        "parquet_gigabytes": size,
        "difference": difference,
        "uncertain_edges": int((~sure).sum()),
        **{f"{k}_duckdb": there[k] for k in ("seconds", "cpu", "gigabytes", "numbers")},
        **{f"{k}_memory": here[k] for k in ("seconds", "cpu", "gigabytes")},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--scores", nargs="+", choices=sorted(COLUMNS), default=list(COLUMNS))
    parser.add_argument("--results", type=Path)
    parser.add_argument("--child", choices=["DuckDB", "memory"])
    parser.add_argument("--score", choices=sorted(COLUMNS))
    parser.add_argument("--path")
    given = parser.parse_args()
    if given.child is not None:
        child(given.path, given.score, given.child)
        return
    for score in given.scores:
        record = compare(score, int(given.rows))
        line = json.dumps(
            {k: round(v, 13) if isinstance(v, float) else v for k, v in record.items()}
        )
        print(line, flush=True)
        if given.results is not None:
            with given.results.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
