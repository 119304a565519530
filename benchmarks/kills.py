"""Kill -9 of sites and of the coordinator at random moments, while ADMM runs over gRPC.

    nice python benchmarks/kills.py 200

Four processes, started by the command line: three sites and the coordinator. After each kill the
process is started again, as an operator or a supervisor would do it. Every run must end with the
weights of an undisturbed run within one process, to the last bit, and all ledgers must verify.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ["PYTHONPATH"] = str(ROOT / "src")

SEARCH = "ADMM(rounds=20, tolerance=0.0)"
PATIENCE = 600.0
"""Seconds after which a run that was left alone must have ended."""


def main(kills: int, seed: int = 1) -> None:
    from tests.processes.hospitals import Hospitals

    import isthmus as ist
    import isthmus_joint
    from isthmus.cli.inputs import search_from

    rng, done, runs = random.Random(seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        world = Hospitals(Path(folder), (60, 80, 70), method="admm", rounds=10**5)
        expected = ist.learn(
            world.inside(), search=search_from(SEARCH, [isthmus_joint])
        ).details.weights
        out = world.folder / "network.json"

        def lead(*more: str) -> None:
            world.coordinate("--answer", "60", "--search", SEARCH, "-o", str(out), *more)

        try:
            for name in world.names:
                world.start(name)
            lead()
            while sum(done.values()) < kills:
                time.sleep(rng.uniform(0.2, 3.0))
                if world.processes["coordinator"].poll() is None:
                    who = rng.choice(["coordinator", *world.names])
                    os.killpg(world.processes[who].pid, signal.SIGKILL)
                    world.processes[who].wait()
                    done[who] += 1
                    lead() if who == "coordinator" else world.start(who)
                    continue
                require(world.processes["coordinator"].wait(), world.log("coordinator"))
                runs += compare(out, expected)
                print(f"{sum(done.values())} kills, {runs} runs", flush=True)
                lead("--restart")
            require(world.processes["coordinator"].wait(PATIENCE), world.log("coordinator"))
            runs += compare(out, expected)
            reasons = Counter(
                entry["why"]
                for name in world.names
                for entry in isthmus_joint.verify(world.home(name) / "ledger.jsonl")
                if entry["event"] == "refused"
            )
            print(f"{dict(done)} kills; {runs} runs, all the same to the bit; refused: {reasons}")
        finally:
            world.close()


def require(code: int, log: str) -> None:
    if code:
        raise SystemExit(f"The coordinator ended with {code}:\n{log[-3000:]}")


def compare(out: Path, expected: object) -> int:
    import numpy as np

    found = np.array(json.loads(out.read_text())["details"]["weights"])
    if found.tobytes() != np.asarray(expected).tobytes():
        raise SystemExit("The weights are different.")
    out.unlink()
    return 1


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
