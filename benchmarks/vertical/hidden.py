"""A prototype: two parties of whom neither learns who the people in common are.

    nice python benchmarks/vertical/hidden.py [PEOPLE OF EACH] [VARIABLES]

Private-ID over the union (Buddhavarapu et al. 2020) with the points of
`isthmus_joint.shares.alignment`: each party gets a random name for each of its people and the names
of all people of both, and cannot tell which of its people the other one has. Rows are those of the
union, with zeros for people whom a party does not have; so a product of columns of both counts the
people in common alone, and each party's own columns are counted with the other's column of ones.

Half of each party's people are in common. The network must be that of K2 on the joined table.
Needs the extra vertical. Prints one line of JSON; see benchmarks/results/vertical-hidden.md for
figures and for what is missing.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import sys
import time
from typing import Any

import numpy as np
from plain import greedy, random_network

from isthmus_joint.shares.alignment import (
    Multiplier,
    _send_count,
    _shuffled,
    _swap,
    _take_count,
    point_of,
)
from isthmus_joint.shares.engine import SecretSharingRuntime
from isthmus_joint.shares.link import connect_local
from isthmus_joint.shares.private_k2 import private_k2
from isthmus_joint.shares.secret_functions import CountScore
from isthmus_joint.shares.terms import Columns, SharedColumn
from isthmus_joint.transport.certificates import free_port

PARENTS = 2


def aligned_to_nobody(link: Any, identifiers: list[str], others: int) -> tuple[Any, int]:
    """Return the own row of each person of the union (-1 for none), and the number in common.

    The name of a person is the person's point, multiplied by five secret numbers: a and r of the
    first party, b, t and s of the second. The second party sees points with a and b of all people,
    those of the first in an order that it cannot read, and its own in an order of the first; so it
    learns how many are equal. The first party multiplies the points of people whom the second
    does not have by r, without recognising them: they have been multiplied by t.
    """
    order = _shuffled(range(len(identifiers)))
    common = Multiplier()  # a or b
    both = _swap(link, (common(point_of(identifiers[i])) for i in order), others, common)
    if link.rank == 0:
        last = Multiplier()  # r
        _swap(link, _shuffled(both), 0)
        _swap(link, (last(point) for point in both), 0)
        names = [last(point) for point in _swap(link, (), len(order))]
        blinded = _swap(link, (), _take_count(link))
        _swap(link, (last(point) for point in _shuffled(blinded)), 0)
        union = _swap(link, (), len(blinded) + others)
    else:
        blind, last = Multiplier(), Multiplier()  # t and s
        mine = set(_swap(link, (), len(order)))
        names = [last(blind(point)) for point in _swap(link, (), len(order))]
        _swap(link, (last(blind(point)) for point in both), 0)
        missing = _shuffled([point for point in both if point not in mine])
        _send_count(link, len(missing))
        _swap(link, (blind(point) for point in missing), 0)
        union = sorted([*names, *(last(point) for point in _swap(link, (), len(missing)))])
        _swap(link, union, 0)
    place = {name: j for j, name in enumerate(union)}
    positions = np.full(len(union), -1, dtype=np.intp)
    positions[[place[name] for name in names]] = order
    return positions, len(order) + others - len(union)


def party(rank: int, port: int, size: int, m: int, results: Any) -> None:
    people, data, levels = simulated(size, m)
    mine = people[rank]
    names = [f"x{i}" for i in range(m)]
    link = connect_local(rank, port, message_timeout=900)
    wall, cpu = time.perf_counter(), time.process_time()
    positions, common = aligned_to_nobody(link, [f"p{i}" for i in mine], size)
    found = {"alignment seconds": time.perf_counter() - wall}
    found["alignment cpu"] = time.process_time() - cpu
    described = [SharedColumn(n, i % 2, levels[i]) for i, n in enumerate(names)]
    rows = data[mine][positions]
    columns = Columns(
        described,
        {n: rows[:, i] for i, n in enumerate(names) if i % 2 == rank},
        rank,
        len(positions),
        present=positions >= 0,
        people=common,
    )
    # Nobody can count alone: any variable needs both parties.
    columns.owners = lambda members: {0, 1} if members else set()  # type: ignore[method-assign]
    engine = SecretSharingRuntime(link)
    wall, cpu = time.perf_counter(), time.process_time()
    _, steps = private_k2(engine, columns, names, PARENTS, CountScore())
    found |= {"cpu": time.process_time() - cpu, "seconds": time.perf_counter() - wall}
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    results.put((rank, common, len(positions), steps, found))
    link.close()


def simulated(size: int, m: int) -> tuple[list[Any], Any, list[int]]:
    """People of both parties, the values of all, and the levels."""
    rng = np.random.default_rng([size, m])
    levels = [int(k) for k in rng.integers(2, 4, m)]
    total = size + size // 2
    people = [np.arange(size), np.arange(total - size, total)]
    return [rng.permutation(p) for p in people], random_network(rng, total, levels), levels


def main(size: int = 2_000, m: int = 6) -> None:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    port = free_port()
    parties = [context.Process(target=party, args=(r, port, size, m, results)) for r in (0, 1)]
    for each in parties:
        each.start()
    first, second = sorted((results.get() for _ in parties), key=lambda found: found[0])
    people, data, levels = simulated(size, m)
    joined = data[np.intersect1d(*people)]
    steps = [
        (f"x{d['child']}", None if d["best"] is None else f"x{d['best']}")
        for d in greedy(joined, levels, list(range(m)), PARENTS)
    ]
    assert first[1] == second[1] == len(joined)
    assert sorted(first[3], key=str) == sorted(second[3], key=str) == sorted(steps, key=str)
    figures = [{k: round(v, 2) for k, v in each[4].items()} for each in (first, second)]
    size_of = {"people of each": size, "in common": first[1], "rows": first[2], "variables": m}
    print(json.dumps({**size_of, "decisions": len(steps), "equal to K2": True, "cost": figures}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
