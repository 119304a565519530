"""CPU time of the comparison of identifiers, per identifier and party.

    nice python benchmarks/vertical/identifiers.py [NUMBER]

Both parties are threads of one process, with the same number of people, half of them in common.
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from queue import Queue
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]


class Link:
    """One end of a link inside of a process."""

    def __init__(self, rank: int, queues: list[Queue[bytes]]) -> None:
        self.rank = rank
        self._queues = queues

    def send(self, data: bytes) -> None:
        self._queues[1 - self.rank].put(data)

    def receive(self) -> bytes:
        return self._queues[self.rank].get()


def main(number: int = 10_000) -> None:
    from isthmus_joint.shares.alignment import Multiplier, aligned_to_both, point_of

    queues: list[Queue[bytes]] = [Queue(), Queue()]
    people = [[f"p{i}" for i in range(k, number + k)] for k in (0, number // 2)]
    found: list[Any] = [None, None]

    def party(rank: int) -> None:
        found[rank] = aligned_to_both(Link(rank, queues), people[rank], number)

    start = time.process_time()
    threads = [threading.Thread(target=party, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = (time.process_time() - start) / 2 / number
    if any(common != number - number // 2 for _, common in found):
        raise SystemExit(f"wrong: {found}")
    multiply, points = Multiplier(), [point_of(name) for name in people[0][:2000]]
    start = time.process_time()
    for point in points:
        multiply(point)
    other = (time.process_time() - start) / len(points)
    print(f"{number:,} people each: {1e6 * whole:.0f} µs of CPU time per person and party,")
    print(f"of which {1e6 * other:.0f} µs for the point of the other party")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
