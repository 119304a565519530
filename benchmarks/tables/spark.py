"""Moments of a Spark dataframe with many columns and partitions, and what reaches the driver.

    python benchmarks/tables/spark.py --columns 1000 --partitions 125 500 2000 --rows 200

The driver has 1 GB of memory and Spark's default limit of results. Bytes are those that Spark
reports of its tasks; the sums of the first columns are compared with NumPy's.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.request
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from isthmus.statistics import Schema
from isthmus.tables import Lazy

CHECKED = 20


def block(part: int, rows: int, columns: int) -> Any:
    return 5.0 + np.random.default_rng(part).standard_normal((columns, rows))


def session(cores: int) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master(f"local[{cores}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def generator(rows: int, columns: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Workers make the rows of their partitions."""

    def make(batches: Iterable[Any]) -> Iterator[Any]:
        import numpy as np
        import pyarrow as pa

        for batch in batches:
            for part in batch.column(0).to_pylist():
                z = 5.0 + np.random.default_rng(part).standard_normal((columns, rows))
                names = [f"v{i}" for i in range(columns)]
                yield pa.RecordBatch.from_arrays([pa.array(x) for x in z], names)

    return make


def stages(spark: Any) -> list[dict[str, Any]]:
    context = spark.sparkContext
    address = (
        f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages?status=complete"
    )
    with urllib.request.urlopen(address) as answer:
        found: list[dict[str, Any]] = json.load(answer)
    return found


def used(root: int) -> tuple[float, float]:
    """CPU seconds of the descendants of a process, and the largest peak of memory in GB."""
    parents, times, peaks = {}, {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            with open(f"/proc/{name}/status") as file:
                peak = [line.split()[1] for line in file if line.startswith("VmHWM")]
        except OSError:
            continue
        parents[int(name)] = int(fields[1])
        times[int(name)] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        peaks[int(name)] = int(peak[0]) / 2**20 if peak else 0.0
    family = {root}
    while True:
        more = {child for child, parent in parents.items() if parent in family} - family
        if not more:
            family.discard(root)
            return sum(times[i] for i in family), max(peaks[i] for i in family)
        family |= more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--partitions", type=int, nargs="+", default=[125, 500, 2000])
    parser.add_argument("--rows", type=int, default=200, help="rows per partition")
    parser.add_argument("--cores", type=int, default=2)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    spark = session(given.cores)
    names = [f"v{i}" for i in range(given.columns)]
    form = ", ".join(f"{name} double" for name in names)
    work = generator(given.rows, given.columns)
    for partitions in given.partitions:
        table = spark.range(0, partitions, 1, partitions).mapInArrow(work, form)
        before = {s["stageId"] for s in stages(spark)}
        started, (busy, _) = time.perf_counter(), used(os.getpid())
        source = Lazy(table, schema=Schema.continuous(names))
        moments = source.moments()
        taken, (total, peak) = time.perf_counter() - started, used(os.getpid())
        time.sleep(2)  # until Spark has recorded its last stage
        own = [s for s in stages(spark) if s["stageId"] not in before]
        exact = np.zeros((CHECKED, CHECKED))
        for part in range(partitions):
            z = block(part, given.rows, given.columns)[:CHECKED] - 5.0
            exact += z @ z.T
        found = moments.select(names[:CHECKED])
        away = found.shift - 5.0
        gram = found.gram + np.outer(found.sums, away) + np.outer(away, found.sums)
        gram += found.n * np.outer(away, away)
        print(
            json.dumps(
                {
                    "columns": given.columns,
                    "partitions": partitions,
                    "rows": found.n,
                    "seconds": round(taken, 1),
                    "cpu": round(total - busy, 1),
                    "largest_process_gb": round(peak, 2),
                    "driver_mb": round(sum(s["resultSize"] for s in own) / 1e6, 2),
                    "shuffled_mb": round(sum(s["shuffleWriteBytes"] for s in own) / 1e6, 1),
                    "numbers_disclosed": sum(e.size for e in source.disclosure().entries),
                    "tasks": sum(s["numCompleteTasks"] for s in own),
                    "error": float(np.abs(gram - exact).max() / exact.max()),
                }
            ),
            flush=True,
        )
    spark.stop()


if __name__ == "__main__":
    main()
