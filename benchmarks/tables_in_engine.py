"""Learn from discrete columns in Parquet through DuckDB, beside DuckDB's own GROUP BYs.

    python benchmarks/tables_in_engine.py --rows 1e7
    python benchmarks/tables_in_engine.py --rows 1e8 --copies 10 --directory /large/disk
    python benchmarks/tables_in_engine.py --rows 1e6 --compare

The columns have two to four levels and come from a random network. `learn` streams them several
times through this process; the sets that it counts are then counted by GROUP BY, a random choice of
them, from which the time for all is computed. ``--compare`` also learns from the table in memory.
Times are processor seconds of all threads. About 22 bytes per row of 100 columns are written to a
temporary directory, or to the one that is given. There, files of an earlier run are used again, and
so are tables that an interrupted run of the same rows has counted, with the time that they took.

Writing takes as long as learning. With ``--copies``, the same file is read several times, under
several names. Chance would then count as often, so the score is `BIC` with a penalty that is larger
by the number of copies: its decisions are those of the rows written, and its cost that of all rows.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import isthmus as ist
from isthmus.tables.engines.base import CountedTables
from isthmus.tables.engines.duckdb import DuckDBEngine

BLOCK, PART = 2**20, 10**8
"""Rows that are drawn at once, and rows of a file."""


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

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, BLOCK):
            m = min(BLOCK, rows - start)
            drawn: list[Any] = []
            for (parents, _, _), levels in zip(nodes, levels_of, strict=True):
                place = np.zeros(m, np.uint16)
                for i in parents:
                    place = place * np.uint16(nodes[i][2]) + drawn[i]
                place = place << 8 | np.frombuffer(rng.bytes(m), np.uint8)
                drawn.append(levels.take(place))
            yield pa.record_batch(drawn, schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    duckdb.from_arrow(reader).write_parquet(path)


def parts(home: str, rows: int, copies: int, nodes: Sequence[tuple[list[int], Any, int]]) -> str:
    """Write the files of the table that are not there, and link them under as many names."""
    folder = os.path.join(home, f"columns-{len(nodes)}")
    linked = os.path.join(home, f"rows-{rows}-copies-{copies}")
    for path in (folder, linked):
        os.makedirs(path, exist_ok=True)
    for start in range(0, rows, PART):
        m = min(PART, rows - start)
        part = os.path.join(folder, f"part-{start // PART}-rows-{m}.parquet")
        if not os.path.exists(part):
            begin = time.process_time()
            write(f"{folder}/unfinished", m, nodes, seed=2 + start // PART)
            os.replace(f"{folder}/unfinished", part)
            print(f"{start + m:,} rows, {time.process_time() - begin:.0f} CPU s", flush=True)
        for k in range(copies):
            name = os.path.join(linked, f"copy-{k}-part-{start // PART}.parquet")
            if not os.path.exists(name):
                os.link(part, name)
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
    total = rows * given.copies
    found: dict[tuple[int, ...], Any] = {}
    scanned: list[float] = []
    interrupted = f"{given.directory}/rows-{rows}-copies-{given.copies}.pickle"
    if os.path.exists(interrupted):
        with open(interrupted, "rb") as file:
            found, scanned = pickle.load(file)  # noqa: S301 (written below)
        print(f"continues after scans of {[round(s, 1) for s in scanned]} CPU s", flush=True)
    earlier = sum(scanned)
    count_tables = DuckDBEngine.count_tables

    def recorded(self: DuckDBEngine, schema: Any, columns: Any, sets: Any) -> Any:
        wanted = [members for members in sets if members not in found]
        if wanted:
            start = time.process_time()
            counted = yield from count_tables(self, schema, columns, wanted)
            scanned.append(time.process_time() - start)
            found.update(zip(wanted, counted.tables, strict=True))
            used = len({i for members in wanted for i in members})
            print(
                f"{time.strftime('%H:%M:%S')} scan {len(scanned)}: {len(wanted)} sets of {used} "
                f"columns, {counted.size:,} cells, {scanned[-1]:.1f} CPU s",
                flush=True,
            )
            if given.directory:
                with open(interrupted, "wb") as file:
                    pickle.dump((found, scanned), file)
        return CountedTables.there([found[members] for members in sets])

    DuckDBEngine.count_tables = recorded  # type: ignore[method-assign]
    nodes = network(given.columns, given.degree, seed=1)
    with tempfile.TemporaryDirectory() as temporary:
        path = parts(given.directory or temporary, rows, given.copies, nodes)
        print(f"{total:,} rows x {given.columns} columns, {given.copies} copies", flush=True)
        kinds = {f"v{j}": "discrete" for j in range(given.columns)}
        options: Any = {"kinds": kinds, "search": ist.XGES(candidates=given.candidates)}
        if given.copies > 1:
            options["score"] = ist.BIC(penalty_discount=given.copies)
        start, begin = time.process_time(), time.monotonic()
        solution = ist.learn(duckdb.sql(f"from '{path}'"), **options)
        ours, wall = time.process_time() - start + earlier, time.monotonic() - begin
        if given.directory:
            os.remove(interrupted)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        numbers = sum(e.size for e in solution.disclosure.entries)
        true = sum(len(parents) for parents, _, _ in nodes)
        print(solution.disclosure)
        print(f"{len(solution.dag.edges)} edges of {true}; {numbers:,} numbers; {peak:.2f} GB")
        print(f"learn: {ours:.1f} CPU s, {wall:.1f} s; scans {[round(s, 1) for s in scanned]}")
        rng = np.random.default_rng(3)
        sets = sorted(found)
        spent = []
        for k in rng.choice(len(sets), given.groups, replace=False):
            listed = ", ".join(f"v{i}" for i in sets[k])
            query = f"select {listed}, count(*) from '{path}' group by {listed}"
            start = time.process_time()
            answer = np.array(duckdb.sql(query).fetchall())
            spent.append(time.process_time() - start)
            table = np.zeros_like(found[sets[k]])
            table[tuple(answer[:, :-1].T)] = answer[:, -1]
            same = np.array_equal(table, found[sets[k]])
            print(f"GROUP BY {listed}: {spent[-1]:.1f} CPU s, same counts: {same}", flush=True)
        each = sum(spent) / len(spent)
        print(
            f"GROUP BY: {each:.2f} CPU s per set, {each * len(sets):.0f} for {len(sets)} sets; "
            f"learn takes {ours / (each * len(sets)):.3f} of it",
            flush=True,
        )
        if given.compare:
            table = duckdb.sql(f"from '{path}'").to_arrow_table()
            expected = ist.learn(table, **options)
            print("same CPDAG as in memory:", solution.cpdag == expected.cpdag)
            print("scores differ by", solution.score - expected.score)


if __name__ == "__main__":
    main()
