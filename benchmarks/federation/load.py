"""Load of the secure sum within one process: CPU time, wall time and bytes a site; and bare.

python benchmarks/federation/load.py 64 200
python benchmarks/federation/load.py 1000 10
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np

from isthmus.sources import Federation, Frame
from isthmus.testing.source import check_moments


def main(sites: int, d: int, rows: int = 20) -> None:
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(d)]
    parts = {f"s{k}": rng.normal(size=(rows, d)) for k in range(sites)}
    tables = {s: dict(zip(names, x.T, strict=True)) for s, x in parts.items()}
    federation = Federation.simulate(tables)
    wall, cpu = time.perf_counter(), time.process_time()
    found = federation.moments()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    bare_cpu = time.process_time()
    bare = Frame(parts["s0"], names=names).moments()
    for x in list(parts.values())[1:]:
        bare = bare + Frame(x, names=names).moments()
    bare_cpu = time.process_time() - bare_cpu
    pooled = np.concatenate(list(parts.values()))
    check_moments(found, Frame(pooled, names=names).moments(), 1e-9)
    transport = federation._scheduler._transport  # noqa: SLF001
    numbers = 1 + d + d * (d + 1) // 2
    print(f"sites {sites}, d {d}, numbers {numbers}")
    print(f"cpu {cpu:.1f} s ({cpu / sites * 1e3:.0f} ms a site), wall {wall:.1f} s")
    print(f"bytes a site: in {transport.sent // sites:,}, out {transport.received // sites:,}")
    print(
        f"bare, the same statistics in the open: cpu {bare_cpu:.1f} s, {8 * numbers:,} bytes a site"
    )
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
