"""Learn from discrete columns in Parquet through DuckDB, beside DuckDB's own GROUP BYs.

    python benchmarks/tables_in_engine.py --rows 1e7
    python benchmarks/tables_in_engine.py --rows 1e8 --copies 10 --directory /large/disk
    python benchmarks/tables_in_engine.py --rows 1e6 --compare

The columns have two to four levels and come from a random network. `learn` streams them several
times through this process; the sets that it counts are then counted by GROUP BY, a random choice of
them, from which the time for all is computed. ``--compare`` also learns from the table in memory.
Times are processor seconds of all threads. About 22 bytes per row of 100 columns are written to a
temporary directory, or to the one that is given, where a file of an earlier run is used again.

Writing takes as long as learning. With ``--copies``, the same file is read several times, under
several names. Chance would then count as often, so the score is `BIC` with a penalty that is larger
by the number of copies: its decisions are those of the rows written, and its cost that of all rows.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import isthmus as ist
from isthmus.sources.tables.engines.duckdb import DuckDBEngine

BLOCK = 2**20


def network(columns: int, degree: float, seed: int) -> list[tuple[list[int], Any, int]]:
    """Parents, cumulative probabilities and number of levels of each column."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(2, 5, size=columns)
    found = []
    for j in range(columns):
        parents = [i for i in range(j) if rng.random() < degree / (columns - 1)][:4]
        rows = math.prod(int(levels[i]) for i in parents)
        tables = rng.dirichlet(np.ones(levels[j]), size=rows).cumsum(axis=1)
        found.append((parents, tables, int(levels[j])))
    return found


def write(path: str, rows: int, nodes: Sequence[tuple[list[int], Any, int]], seed: int) -> None:
    """Draw rows from the network, its probabilities rounded to 256ths."""
    rng = np.random.default_rng(seed)
    schema = pa.schema([(f"v{j}", pa.uint8()) for j in range(len(nodes))])
    edges = [np.rint(256 * tables[:, None, :-1]) for _, tables, _ in nodes]
    levels_of = [(np.arange(256)[:, None] >= e).sum(axis=2, dtype=np.uint8) for e in edges]
    with pq.ParquetWriter(path, schema, use_dictionary=True, compression="snappy") as writer:
        for start in range(0, rows, BLOCK):
            m = min(BLOCK, rows - start)
            drawn: list[Any] = []
            for (parents, _, _), levels in zip(nodes, levels_of, strict=True):
                place = np.zeros(m, np.uint16)
                for i in parents:
                    place = place * np.uint16(nodes[i][2]) + drawn[i]
                place = place << 8 | np.frombuffer(rng.bytes(m), np.uint8)
                drawn.append(levels.take(place))
            writer.write_table(pa.table(drawn, schema=schema))


def parts(home: str, rows: int, copies: int, nodes: Sequence[tuple[list[int], Any, int]]) -> str:
    """Write the table once, unless it is there, and link it under as many names."""
    folder = os.path.join(home, f"rows-{rows}")
    first = os.path.join(folder, "part-0.parquet")
    if not os.path.exists(first):
        os.makedirs(folder, exist_ok=True)
        write(f"{folder}/unfinished", rows, nodes, seed=2)
        os.replace(f"{folder}/unfinished", first)
    linked = os.path.join(home, f"rows-{rows}-copies-{copies}")
    os.makedirs(linked, exist_ok=True)
    for k in range(copies):
        name = os.path.join(linked, f"part-{k}.parquet")
        if not os.path.exists(name):
            os.link(first, name)
    return f"{linked}/*.parquet"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--degree", type=float, default=2.0)
    parser.add_argument("--candidates", type=int, default=6)
    parser.add_argument("--groups", type=int, default=12, help="GROUP BYs that are timed")
    parser.add_argument("--compare", action="store_true", help="learn from memory, too")
    parser.add_argument("--copies", type=int, default=1, help="read the rows so many times")
    parser.add_argument("--directory", default=None)
    given = parser.parse_args()
    rows = int(given.rows)
    asked: list[tuple[int, ...]] = []
    scanned: list[float] = []
    count_tables = DuckDBEngine.count_tables

    def recorded(self: DuckDBEngine, schema: Any, columns: Any, sets: Any) -> Any:
        asked.extend(sets)
        start = time.process_time()
        counted = yield from count_tables(self, schema, columns, sets)
        scanned.append(time.process_time() - start)
        print(f"scan {len(scanned)}: {len(sets)} sets, {scanned[-1]:.1f} CPU s", flush=True)
        return counted

    DuckDBEngine.count_tables = recorded  # type: ignore[method-assign]
    nodes = network(given.columns, given.degree, seed=1)
    with tempfile.TemporaryDirectory() as temporary:
        path = parts(given.directory or temporary, rows, given.copies, nodes)
        total = rows * given.copies
        print(f"{total:,} rows x {given.columns} columns, {given.copies} copies", flush=True)
        kinds = {f"v{j}": "discrete" for j in range(given.columns)}
        options: Any = {"kinds": kinds, "search": ist.XGES(candidates=given.candidates)}
        if given.copies > 1:
            options["score"] = ist.BIC(penalty_discount=given.copies)
        start, begin = time.process_time(), time.monotonic()
        solution = ist.learn(duckdb.sql(f"from '{path}'"), **options)
        ours, wall = time.process_time() - start, time.monotonic() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        numbers = sum(e.size for e in solution.disclosure.entries)
        true = sum(len(parents) for parents, _, _ in nodes)
        print(solution.disclosure)
        print(f"{len(solution.dag.edges)} edges of {true}; {numbers:,} numbers; {peak:.2f} GB")
        print(f"learn: {ours:.1f} CPU s, {wall:.1f} s; scans {[round(s, 1) for s in scanned]}")
        rng = np.random.default_rng(3)
        chosen = [asked[i] for i in rng.choice(len(asked), given.groups, replace=False)]
        start = time.process_time()
        for members in chosen:
            listed = ", ".join(f"v{i}" for i in members)
            query = f"select {listed}, count(*) from '{path}' group by {listed}"
            duckdb.sql(query).fetchall()
        each = (time.process_time() - start) / len(chosen)
        print(
            f"GROUP BY: {each:.2f} CPU s per set, {each * len(asked):.0f} for {len(asked)} sets; "
            f"learn takes {ours / (each * len(asked)):.3f} of it",
            flush=True,
        )
        if given.compare:
            table = duckdb.sql(f"from '{path}'").to_arrow_table()
            expected = ist.learn(table, **options)
            print("same CPDAG as in memory:", solution.cpdag == expected.cpdag)
            print("scores differ by", solution.score - expected.score)


if __name__ == "__main__":
    main()
