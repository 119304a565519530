"""Time of ours, the official rules and dagma on the same tables in one process, one thread.

python benchmarks/notears/speed.py official      # d = 50, rows as published
python benchmarks/notears/speed.py dagma         # d = 200
python benchmarks/notears/speed.py ours 500 1000 # ours alone, with no penalty given
python benchmarks/notears/speed.py large         # d = 500, 1000 and 2000 at one penalty
python benchmarks/notears/speed.py table         # only write the table
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cases import draw, judge, one_thread
from methods import METHODS

import isthmus as ist

RESULTS = Path(__file__).resolve().parents[1] / "results"


def timed(method: str, learner: Callable[[np.ndarray], np.ndarray], d: int, seed: int) -> dict:
    drawn = draw("ER2", "gauss", d, 1000, seed, "raw")
    x = drawn.array()
    begin, wall = time.process_time(), time.perf_counter()
    weights = learner(x)
    row = {
        "method": method, "d": d, "seed": seed,
        "cpu": time.process_time() - begin, "wall": time.perf_counter() - wall,
        **judge(np.asarray(weights), drawn.dag),
    }  # fmt: skip
    print(row, flush=True)
    path = RESULTS / "notears-speed.jsonl"
    with path.open("a") as file:
        file.write(json.dumps(row) + "\n")
    return row


def write() -> None:
    """Write all runs on file as a table, with ratios to ours at the same size and seed."""
    rows = [json.loads(line) for line in (RESULTS / "notears-speed.jsonl").read_text().splitlines()]
    ours = {(r["d"], r["seed"]): r for r in rows if r["method"] == "Notears"}
    text = (
        "# Time of NOTEARS beside its peers\n\nER2, n = 1000, Gaussian noise, raw; one thread, "
        "CPU seconds of the whole call on a busy machine: read ratios.\n`Notears` chooses penalty "
        "and threshold itself; 0.1 and 0.3 are the official ones. The official rules read rows, as "
        "published.\nTo take it again: `python benchmarks/notears/speed.py official`, then `dagma`"
        ", `large`, `table`.\n\n"
        "| d | seed | method | CPU s | SHD | edges | `Notears` is faster by |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n"
    )
    for r in sorted(rows, key=lambda r: (r["d"], r["seed"])):
        own = ours.get((r["d"], r["seed"]))
        peer = own is not None and not r["method"].startswith("Notears")
        times = f"{r['cpu'] / own['cpu']:.0f}×" if own is not None and peer else "–"
        text += f"| {r['d']} | {r['seed']} | {r['method']} | {r['cpu']:.2f} | {r['shd']} | "
        text += f"{r['edges']} | {times} |\n"
    (RESULTS / "notears-speed.md").write_text(text)


def main() -> None:
    one_thread()
    warnings.simplefilter("ignore")
    if sys.argv[1] == "table":
        write()
        return
    METHODS["Notears"](draw("ER2", "gauss", 10, 100, 0, "raw").array())  # compiled code is loaded
    what = sys.argv[1]
    if what == "official":
        for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 2):
            for method in ("Notears", "Notears, 0.1 and 0.3", "official rules"):
                timed(method, METHODS[method], 50, seed)
    elif what == "ours":
        for d in map(int, sys.argv[2:] or ("50", "200", "500", "1000")):
            timed("Notears", METHODS["Notears"], d, 0)
    elif what == "dagma":
        for seed in range(int(sys.argv[2]) if len(sys.argv) > 2 else 2):
            for method in ("Notears", "Notears, 0.1 and 0.3", "dagma"):
                timed(method, METHODS[method], 200, seed)
    else:

        def alone(x: np.ndarray) -> np.ndarray:
            columns = {f"x{i}": x[:, i] for i in range(x.shape[1])}
            solution = ist.learn(columns, search=ist.Notears(penalty=0.1), time_limit=3000)
            print(solution.status, solution.details.kkt_residual)
            return solution.dag.adjacency()

        for d in map(int, sys.argv[2:] or ("500", "1000", "2000")):
            timed("Notears, penalty 0.1", alone, d, 0)
    write()


if __name__ == "__main__":
    main()
