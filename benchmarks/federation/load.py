"""Cost of a secure sum with all sites in one process, as a row of a table in Markdown.

    python benchmarks/federation/load.py SITES VARIABLES

The columns: sites, variables, numbers in the sum, CPU milliseconds per site, bytes that a site
sends, bytes that it receives, bytes of the same numbers as plain float64, CPU seconds of the same
statistics without protection, peak memory of the process.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from isthmus.tables import Frame
from isthmus.testing.source import check_moments
from isthmus_joint import Federation


def main(sites: int, d: int, rows: int = 20) -> None:
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(d)]
    parts = {f"s{k}": rng.normal(size=(rows, d)) for k in range(sites)}
    tables = {s: dict(zip(names, x.T, strict=True)) for s, x in parts.items()}
    # Pooled, to be compared with a table of all rows
    federation = Federation.simulate(tables, within_sites=False)
    start = time.process_time()
    moments = federation.moments()
    protected = time.process_time() - start
    start = time.process_time()
    plain = Frame(parts["s0"], names=names).moments()
    for x in list(parts.values())[1:]:
        plain = plain + Frame(x, names=names).moments()
    unprotected = time.process_time() - start
    pooled = np.concatenate(list(parts.values()))
    check_moments(moments, Frame(pooled, names=names).moments(), 1e-9)
    transport = federation._scheduler._transport  # noqa: SLF001
    numbers = 1 + d + d * (d + 1) // 2
    columns = (
        f"{sites:,}",
        d,
        f"{numbers:,}",
        f"{protected / sites * 1e3:.0f} ms",
        f"{transport.received / sites:,.0f} B",
        f"{transport.sent / sites:,.0f} B",
        f"{8 * numbers:,} B",
        f"{unprotected:.1f} s",
        f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB",
    )
    print("|", " | ".join(map(str, columns)), "|")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
