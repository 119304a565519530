"""Peak memory of a site whose table is in DuckDB: it joins a study and answers one sum.

    python benchmarks/federation/snapshot_memory.py ROWS [COLUMNS]

A third of the columns are discrete. The table is written to a file by another process, so that this
one never has it in memory. `anonymous` is memory that the process cannot give back; `resident`
includes pages of files, which the operating system can drop at any time.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

MAKE = """
import sys
import duckdb
path, rows, columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
db = duckdb.connect(path)
parts = []
for i in range(columns):
    if i % 3 == 2:
        parts.append(f"(CASE WHEN random() < 0.4 THEN 'no' ELSE 'yes' END) AS c{i}")
    else:
        parts.append(f"(random() + random() - 1) AS c{i}")
db.execute(f"CREATE TABLE visits AS SELECT {', '.join(parts)} FROM range({rows})")
db.close()
"""


def memory() -> dict[str, int]:
    """Return anonymous and resident memory now, in kilobytes."""
    found = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        for key, name in (("RssAnon", "anonymous"), ("VmRSS", "resident")):
            if line.startswith(key):
                found[name] = int(line.split()[1])
    return found


class Watch:
    """Samples memory in a thread."""

    def __init__(self) -> None:
        self.peak = memory()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.005):
            now = memory()
            self.peak = {k: max(v, now[k]) for k, v in self.peak.items()}

    def stop(self) -> dict[str, int]:
        self._stop.set()
        self._thread.join()
        return self.peak


def main(rows: int, columns: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="snapshot"))
    path = folder / "visits.duckdb"
    subprocess.run([sys.executable, "-c", MAKE, path, str(rows), str(columns)], check=True)
    import duckdb

    from isthmus.joint import (
        AskMoments,
        EnvelopeKind,
        Identity,
        Member,
        Policy,
        RoundRequest,
        SecureSums,
        Study,
    )
    from isthmus.joint.federation.requests.fixed_point import FixedPointEncoding
    from isthmus.joint.federation.site_service import SiteService
    from isthmus.statistics import Kind, Schema, Variable

    schema = Schema(
        tuple(
            Variable(f"c{i}", Kind.DISCRETE, ("no", "yes"))
            if i % 3 == 2
            else Variable(f"c{i}", Kind.CONTINUOUS)
            for i in range(columns)
        )
    )
    bounds = dict.fromkeys(schema.of_kind(Kind.CONTINUOUS), (-1.0, 1.0))
    keys = {n: Identity.generate() for n in ("x", "y", "z")}
    author, boss = Identity.generate(), Identity.generate()
    study = Study.draft(
        "Memory",
        purpose="to measure it",
        author=author.public,
        coordinator=boss.public,
        members=[Member(n, n, k.public) for n, k in keys.items()],
        schema=schema,
        bounds=bounds,
        protocol=SecureSums(rows=2**26),
        requests=["moments"],
    )
    policy = Policy(
        minimum_cohort=50,
        minimum_cell=5,
        minimum_organisations=3,
        variables=("*",),
        protocols=("secure sums",),
        requests=("moments",),
        rounds_per_study=10,
        rounds_per_year=10,
        queries_per_year=10,
        stop_file=folder / "STOP",
    )
    signatures = [study.sign(author), *(study.sign(k, n) for n, k in keys.items())]
    table: Any = duckdb.connect(str(path), read_only=True).table("visits")
    before, watch = memory(), Watch()
    times = [time.process_time()]
    site = SiteService(folder / "x", study, signatures, keys["x"], table, policy)
    times.append(time.process_time())
    run = site.controller.dry_run(AskMoments(schema.names))
    assert not run.violations, run
    request, grid = AskMoments(schema.names), FixedPointEncoding.of(study)
    opening = RoundRequest(1, request.to_bytes(), request.size(grid), request.limbs)
    site.controller.approve(opening)
    site.controller.record(EnvelopeKind.MASKED, opening, None)
    times.append(time.process_time())
    peak = watch.stop()
    print(
        json.dumps(
            {
                "rows": rows,
                "columns": columns,
                "values_mb": round(8 * rows * columns / 2**20),
                **{f"{k}_mb": round((v - before[k]) / 1024) for k, v in peak.items()},
                "join_cpu_s": round(times[1] - times[0], 1),
                "answer_cpu_s": round(times[2] - times[1], 1),
            }
        )
    )
    subprocess.run(["rm", "-rf", str(folder)], check=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10)
