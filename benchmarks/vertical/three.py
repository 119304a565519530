"""A prototype: private K2 of three or more parties, of whom a minority may pool what it sees.

    python benchmarks/vertical/three.py ROWS VARIABLES columns -M3
    python benchmarks/vertical/three.py ROWS VARIABLES rows -M3

Each party has some columns of the same people; or, with ``rows``, the last party has half of the
columns of all people, and each of the others has the other half for some of the people, as several
hospitals beside an insurer have. All of them know who has which person. They compute with Shamir's
shares (MPyC, which starts one process for each of M parties): fewer than half of the parties learn
nothing from the shares that they hold, as long as all follow the protocol. What is opened is what
the two-party mode opens: the parent that is added, or that none is. The scores are those of
`intervals.py`, polynomials of secret counts.

The network must be that of K2 on the joined table. Needs mpyc and gmpy2. The first party prints one
line of JSON; see benchmarks/results/vertical-three.md for figures and for what is missing.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import numpy as np
from intervals import CONSTANT, POWERS, SCALE, SLOPE, count_coefficients, count_intervals
from mpyc.runtime import mpc
from plain import greedy, random_network

from isthmus_joint.shares.secret_functions import LogGamma

PARENTS = 2
PER_PLACE = 2.0**-20
"""Nats by which the choice prefers an earlier candidate to the next one."""

Number = mpc.SecFxp(104, 40)


def log_gammas(counts: Any, offsets: Any, n: int) -> Any:
    """Return ``ln Γ(c + a) - ln Γ(a)`` of each secret count, for public a."""
    intervals = count_intervals(n)
    table = np.stack([count_coefficients(LogGamma(float(a)), n) for a in offsets])
    beyond = counts.reshape(len(offsets), 1) >= intervals.starts[1:].reshape(1, -1)
    v = counts - int(intervals.middles[0]) - beyond @ np.diff(intervals.middles)
    steps = np.diff(table, axis=1)
    own = [
        mpc.np_sum(beyond * steps[:, :, c], axis=1) + table[:, 0, c] for c in range(table.shape[2])
    ]
    u = v * own[SCALE]
    total = own[CONSTANT] + v * own[SLOPE] + u * own[POWERS]
    power = u
    for coefficient in own[POWERS + 1 :]:
        power = power * u
        total = total + power * coefficient
    return total


def scores(tables: list[Any], n: int) -> list[Any]:
    """Return the secret K2 score of each secret table, whose last axis is the child."""
    counts, offsets, signs, places = [], [], [], []
    for table in tables:
        rows, r = mpc.np_sum(table, axis=1), table.shape[1]
        counts += [rows, mpc.np_reshape(table, (table.size,))]
        offsets += [r] * rows.size + [1] * table.size
        signs += [-1] * rows.size + [1] * table.size
        places.append(len(offsets))
    values = log_gammas(mpc.np_concatenate(counts), offsets, n) * np.array(signs)
    starts = [0, *places[:-1]]
    return [mpc.np_sum(values[a:b]) for a, b in zip(starts, places, strict=True)]


def products(some: Any, others: Any) -> Any:
    """Return the products of every row of one matrix with every row of another."""
    n = some.shape[1]
    every = some.reshape(some.shape[0], 1, n) * others.reshape(1, others.shape[0], n)
    return every.reshape(some.shape[0] * others.shape[0], n)


async def private_k2(shared: list[Any], order: list[int], n: int) -> list[int | None]:
    """Return each decision: the parent that is added, or None."""
    decisions: list[int | None] = []
    for k, child in enumerate(order):
        r = shared[child].shape[0]
        parents: list[int] = []
        families = shared[child]
        while len(parents) < min(PARENTS, k):
            candidates = [c for c in order[:k] if c not in parents]
            own = mpc.np_sum(families, axis=1).reshape(families.shape[0] // r, r)
            tables = [own]
            for c in candidates:
                counted = families @ shared[c].T
                levels = counted.shape[1]
                cells = counted.reshape(own.shape[0], r, levels)
                cells = mpc.np_transpose(cells, (0, 2, 1))
                tables.append(cells.reshape(own.shape[0] * levels, r))
            found = scores(tables, n)
            ranked = [s - PER_PLACE * place for place, s in enumerate(found)]
            best = int(await mpc.output(mpc.argmax(ranked)[0]))
            decisions.append(None if best == 0 else candidates[best - 1])
            if best == 0:
                break
            chosen = candidates[best - 1]
            parents.append(chosen)
            levels = shared[chosen].shape[0]
            blocks = families.reshape(own.shape[0], r, n)
            rows = [products(shared[chosen], blocks[q].reshape(r, n)) for q in range(own.shape[0])]
            families = mpc.np_concatenate(rows)
    return decisions


def parts(j: int, n: int, m: int, layout: str) -> list[tuple[int, slice]]:
    """Return which parties have a column, and for which people."""
    parties = len(mpc.parties)
    if layout == "columns":
        return [(j % parties, slice(0, n))]
    if j >= m // 2:
        return [(parties - 1, slice(0, n))]
    ends = np.linspace(0, n, parties, dtype=int)
    return [(k, slice(int(ends[k]), int(ends[k + 1]))) for k in range(parties - 1)]


async def main(n: int, m: int, layout: str) -> None:
    rng = np.random.default_rng([150, n, m])
    levels = [int(x) for x in rng.integers(2, 4, m)]
    order = [int(i) for i in rng.permutation(m)]
    data = random_network(rng, n, levels)
    await mpc.start()
    began, cpu = time.monotonic(), time.process_time()
    shared = []
    for j in range(m):
        pieces = []
        for owner, people in parts(j, n, m, layout):
            own = (data[people, j] == np.arange(levels[j])[:, None]).astype(int)
            if owner != mpc.pid:
                own = np.zeros_like(own)  # MPyC wants the shape; nobody reads the values
            pieces.append(mpc.input(Number.array(own, integral=True), senders=owner))
        shared.append(mpc.np_concatenate(pieces, axis=1))
    decisions = await private_k2(shared, order, n)
    seconds, used = time.monotonic() - began, time.process_time() - cpu
    sent = sum(peer.protocol.nbytes_sent for peer in mpc.parties if peer.pid != mpc.pid)
    await mpc.shutdown()
    if mpc.pid == 0:
        expected = greedy(data, levels, order, PARENTS)
        equal = sum(d["best"] == got for d, got in zip(expected, decisions, strict=True))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            json.dumps(
                {
                    "parties": len(mpc.parties),
                    "layout": layout,
                    "rows": n,
                    "variables": m,
                    "decisions": len(expected),
                    "equal": equal,
                    "seconds": round(seconds, 1),
                    "cpu of one": round(used, 1),
                    "megabytes sent by one": round(sent / 1e6, 1),
                    "gigabytes": round(memory, 2),
                }
            )
        )


if __name__ == "__main__":
    mpc.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
