"""Linear Gaussian networks of many variables: time, memory and errors of one start of BOSS.

    OPENBLAS_NUM_THREADS=1 python benchmarks/large.py 250 500 1000 2000 5000

Random graphs with average degree 4, weights of size 0.5 to 2, unit noise, 2,000 rows. Each
size runs in a process of its own, so that memory is its own. Results go to results/large.md.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ROWS = 2000
RESULTS = Path(__file__).parent / "results" / "large.md"


def measure(d: int) -> dict[str, float]:
    """Learn one network of ``d`` variables in this process."""
    import isthmus as ist
    from isthmus import simulate

    names = [f"x{i}" for i in range(20)]
    small = simulate.linear(simulate.erdos_renyi(names, 40, seed=0), 100, seed=0)
    ist.learn(small.data, search=ist.Boss(starts=1))  # compile
    names = [f"x{i}" for i in range(d)]
    dag = simulate.erdos_renyi(names, 2 * d, seed=1)
    moments = ist.summarise(simulate.linear(dag, ROWS, seed=2).data)
    wall, cpu = time.perf_counter(), time.process_time()
    solution = ist.learn(moments, score=ist.GaussianEBIC(), search=ist.Boss(starts=1))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "variables": d,
        "seconds": round(wall, 1),
        "cpu": round(cpu, 1),
        "gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "edges": len(solution.dag.edges),
        "shd": ist.shd(solution.dag.cpdag(), dag.cpdag()),
    }


def main(sizes: list[int]) -> None:
    """Measure every size and write the table."""
    import numpy as np

    rows = []
    for d in sizes:
        command = [sys.executable, __file__, "--one", str(d)]
        out = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(out.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    logs = np.log([[row["variables"], row["cpu"]] for row in rows if row["variables"] >= 500])
    power = np.polyfit(logs[:, 0], logs[:, 1], 1)[0] if len(logs) > 1 else float("nan")
    lines = [
        f"# Many variables: BOSS, one start, GaussianEBIC, degree 4, {ROWS} rows",
        "",
        f"`OPENBLAS_NUM_THREADS=1 python benchmarks/large.py {' '.join(map(str, sizes))}`",
        "",
        "| variables | wall s | CPU s | peak GB | edges (true) | CPDAG-SHD |",
        "| --- | --- | --- | --- | --- | --- |",
        *(
            f"| {r['variables']} | {r['seconds']} | {r['cpu']} | {r['gigabytes']} "
            f"| {r['edges']} ({2 * r['variables']}) | {r['shd']} |"
            for r in rows
        ),
        "",
        f"From 500 variables on CPU time grows like d^{power:.2f}.",
    ]
    RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.argv[1] == "--one":
        print(json.dumps(measure(int(sys.argv[2]))))
    else:
        main([int(a) for a in sys.argv[1:]])
