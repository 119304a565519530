"""Which way to drive cycles out: time, objective without and with moves, errors.

python benchmarks/notears/acyclicity.py
"""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path

import numpy as np
from cases import draw, judge, one_thread

from isthmus.graphs import Knowledge
from isthmus.objectives import QuadraticLoss
from isthmus.searches import ExponentialAcyclicity, LogDet, Notears, drive

RESULTS = Path(__file__).resolve().parents[1] / "results"
WAYS = {"LogDet": LogDet(), "ExponentialAcyclicity": ExponentialAcyclicity()}


def main() -> None:
    one_thread()
    rows = []
    for graph, d, seed in [(g, d, s) for g in ("ER2", "SF4") for d in (10, 20) for s in range(2)]:
        drawn = draw(graph, "gauss", d, 1000, seed, "raw")
        loss = QuadraticLoss(drawn.dag.nodes, np.cov(drawn.array().T, bias=True), 1000)
        for name, way in WAYS.items():
            row = {"graph": graph, "d": d, "seed": seed, "way": name}
            for moves in (False, True):
                search = Notears(penalty=0.1, threshold=0.3, acyclicity=way, refine=moves)
                run = partial(
                    search.search, loss, Knowledge().bind(loss.nodes), np.random.default_rng(seed)
                )
                begin = time.process_time()
                found, _ = drive(run, "x")
                part = "moves" if moves else "plain"
                row[f"cpu_{part}"] = time.process_time() - begin
                row[f"objective_{part}"] = found.score
                row[f"shd_{part}"] = judge(found.details.weights, drawn.dag)["shd"]
            rows.append(row)
            print(row, flush=True)
    (RESULTS / "notears-acyclicity.json").write_text(json.dumps(rows) + "\n")
    text = (
        "# Ways to drive cycles out, n = 1000, λ = 0.1, threshold 0.3, two seeds\n\n"
        "CPU seconds, objective and SHD, first along the order of the relaxed solution, then "
        "after moves.\nTo take it again: `python benchmarks/notears/acyclicity.py`.\n\n"
        "| graph | d | way | seconds | objective | SHD | seconds | objective | SHD |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    for graph, d, name in [(g, d, w) for g in ("ER2", "SF4") for d in (10, 20) for w in WAYS]:
        mine = [r for r in rows if (r["graph"], r["d"], r["way"]) == (graph, d, name)]
        cells = [
            f"{np.mean([r[f'{what}_{part}'] for r in mine]):.3f}"
            for part in ("plain", "moves")
            for what in ("cpu", "objective", "shd")
        ]
        text += f"| {graph} | {d} | {name} | {' | '.join(cells)} |\n"
    (RESULTS / "notears-acyclicity.md").write_text(text)


if __name__ == "__main__":
    main()
