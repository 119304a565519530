"""Kill -9 of each of two parties at every step of a run.

    nice python benchmarks/vertical/crashes.py --stand-in [bank] [shop]
    nice python benchmarks/vertical/crashes.py

One study per party. In each attempt that party is killed right after it has done one thing (the
points of `tests/processes/killed_party.py`); then both run the same command again, and the party
is killed at the next point, until nothing is left. In the end both must have the network of an
undisturbed run, no value may be opened twice, and the ledgers must verify. A comparison of
identifiers that was interrupted counts: it begins again, and the ledger has both.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])

STAND_IN = ["a → b", "b → c", "c → d"]
JOINED = ["a → b", "a → c", "c → d"]
"""The network of the engine that stands in, and that of K2 on the joined table."""

BOTH = ("bank", "shop")
PATIENCE = 900.0
"""Seconds for an attempt, on a busy machine."""

SAME = 5
"""The first points are before the computation, and the same with an engine that stands in."""


def main(*options: str) -> None:
    from tests.processes.companies import Companies
    from tests.processes.killed_party import COMMAND, POINTS

    stand_in = "--stand-in" in options
    points = POINTS if stand_in else POINTS[SAME:]
    for victim in [name for name in BOTH if name in options] or BOTH:
        with tempfile.TemporaryDirectory() as folder:
            with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
                world = Companies(Path(folder), draft=["--runs", "6", "--parents", "1"])
            try:
                start = time.monotonic()
                for point in points:
                    killed = {"KILL_AFTER": point} | ({"STAND_IN": "1"} if stand_in else {})
                    for name in BOTH:
                        if name == victim:
                            world.start(name, command=COMMAND, extra=killed)
                        else:
                            world.start(name, stand_in=stand_in)
                    ends = dict(zip(BOTH, world.ends(PATIENCE), strict=True))
                    if ends[victim] != -signal.SIGKILL:
                        raise SystemExit(f"{victim} after {point}: {ends}\n{world.log(victim)}")
                    print(
                        f"{victim} killed after {point!r}: the other ends with {ends}", flush=True
                    )
                for name in BOTH:
                    world.start(name, stand_in=stand_in)
                done = world.ends(PATIENCE)
                if done != (0, 0):
                    raise SystemExit(f"{done}\n{world.log('bank')[-2000:]}")
                for name in BOTH:
                    report(world, name, STAND_IN if stand_in else JOINED)
                print(
                    f"{victim}: {len(points)} kills in {time.monotonic() - start:.0f} s", flush=True
                )
            finally:
                world.close()


def report(world: Any, name: str, edges: list[str]) -> None:
    """Compare the result, and print how often what was opened."""
    log, events = world.log(name), Counter(event for event, _ in world.ledger(name))
    found = re.findall(r"^\w → \w$", log, re.MULTILINE)
    opened = Counter(world.revealed(name))
    spent = Counter(r["opening"] for r in world.journal(name) if "commitment" in r)
    if found[-3:] != edges or set(opened.values()) != {1} or spent != opened:
        raise SystemExit(f"{name}: {found} {opened} {spent}")
    print(f"  {name}: {', '.join(edges)}; entries {dict(events)}; each value opened once")


if __name__ == "__main__":
    main(*sys.argv[1:])
