"""All local scores of alarm, 5000 rows, at most three parents: ours and peers, CPU seconds.

Run with the environment of the library and the Python of an environment with peers:

    python benchmarks/exact/local_scores.py --peers PYTHON [--out FILE]

Each method runs alone, one after the other, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from math import comb
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("ISTHMUS_DATA", Path(__file__).parents[3] / "shared" / "data"))

OURS = """
import json, sys, time
import numpy as np
import isthmus as ist
from isthmus.objectives import list_parent_sets
from isthmus.objectives.table import TableBuilder
codes, checks = np.load(sys.argv[1]), json.load(open(sys.argv[2]))
data = {f"v{i}": row for i, row in enumerate(codes)}
kinds = dict.fromkeys(data, ist.Kind.DISCRETE)
counts = ist.summarise(data, plan=ist.CountPlan.everything(), kinds=kinds)
for name, score in (("BDeu", ist.BDeu(ess=1.0)), ("BIC", ist.BIC())):
    local = score.bind(counts)
    list_parent_sets(local, max_parents=1, bounded=False)
    local = score.bind(counts)
    begun = time.process_time()
    builder = TableBuilder(local, max_parents=3, bounded=False)
    while not builder.step():
        pass
    seconds = time.process_time() - begun
    values = [local.local(v, ps) for v, ps in checks]
    found = {"method": f"isthmus {name}", "scored": builder.scored, "seconds": seconds}
    print(json.dumps({**found, "values": values}))
"""

SUMU = """
import json, sys, time, types
from itertools import combinations
import numpy as np
import sumu
codes, checks = np.load(sys.argv[1]), json.load(open(sys.argv[2]))
data = types.SimpleNamespace(data=np.ascontiguousarray(codes.T.astype(np.int32)), n=len(codes))
begun = time.process_time()
scorer = sumu.LocalScore(data, scoref="bdeu", prior="unif", maxid=3, ess=1)
scored = 0
for v in range(len(codes)):
    others = [p for p in range(len(codes)) if p != v]
    for size in range(4):
        for parents in combinations(others, size):
            scorer._local(v, np.array(parents, dtype=np.int32))
            scored += 1
seconds = time.process_time() - begun
values = [scorer.local(v, np.array(sorted(ps), dtype=np.int32)) for v, ps in checks]
found = {"method": "sumu BDeu", "scored": scored, "seconds": seconds, "values": values}
print(json.dumps(found))
"""

PYAGRUM = """
import json, sys, time
from itertools import combinations
import numpy as np
import pandas as pd
import pyagrum as gum
codes, checks = np.load(sys.argv[1]), json.load(open(sys.argv[2]))
names = [f"v{i}" for i in range(len(codes))]
frame = pd.DataFrame({name: [f"s{c}" for c in row] for name, row in zip(names, codes)})
learner = gum.BNLearner(frame)
learner.useScoreBIC()
learner.useNoPrior()
begun = time.process_time()
scored = 0
for v in range(len(names)):
    others = [p for p in range(len(names)) if p != v]
    for size in range(4):
        for parents in combinations(others, size):
            learner.score(names[v], [names[p] for p in parents])
            scored += 1
seconds = time.process_time() - begun
values = [learner.score(names[v], [names[p] for p in ps]) * np.log(2.0) for v, ps in checks]
print(json.dumps({"method": "pyagrum BIC", "scored": scored, "seconds": seconds, "values": values}))
"""


INTRODUCTION = """{} variables, {:,} families; CPU seconds of one thread, each method alone in a
process of its own, one after the other, on a busy machine with two cores. Ours twice, first and
last. Compiling and reading are not counted."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--out")
    options = parser.parse_args()
    from isthmus.io import read_bif

    sample = read_bif(DATA / "networks" / "alarm.bif.gz").sample_codes(5000, seed=1)
    # Codes without gaps: some peers count the levels that they see, others the largest code.
    codes = np.array([np.unique(row, return_inverse=True)[1] for row in sample.values()], np.uint8)
    d = len(codes)
    rng = np.random.default_rng(0)
    checks = []
    for _ in range(2000):
        v, *ps = rng.permutation(d)[: 1 + rng.integers(0, 4)].tolist()
        checks.append([v, sorted(ps)])
    results = []
    with tempfile.TemporaryDirectory() as home:
        np.save(f"{home}/codes.npy", codes)
        Path(f"{home}/checks.json").write_text(json.dumps(checks))
        for python, code in (
            (sys.executable, OURS),
            (options.peers, SUMU),
            (options.peers, PYAGRUM),
            (sys.executable, OURS),
        ):
            done = subprocess.run(
                [python, "-c", code, f"{home}/codes.npy", f"{home}/checks.json", home],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            )
            if done.returncode:
                print(done.stderr[-2000:], file=sys.stderr)
                continue
            results += [json.loads(line) for line in done.stdout.splitlines() if line[:1] == "{"]
    ours: dict[str, list[float]] = {}
    for one in results:
        if one["method"].startswith("isthmus"):
            ours.setdefault(one["method"].split()[1], one["values"])
    lines = [
        "# Local scores: alarm, 5000 rows, all sets of at most three parents",
        "",
        INTRODUCTION.format(d, d * sum(comb(d - 1, k) for k in range(4))),
        "",
        "    python benchmarks/exact/local_scores.py --peers PYTHON",
        "",
        "| method | families | seconds | µs each | largest difference to ours, 2000 families |",
        "| --- | --- | --- | --- | --- |",
    ]
    for one in results:
        mine = np.array(ours[one["method"].split()[1]])
        theirs = np.array(one["values"])
        difference = float(np.max(np.abs(theirs - mine)))
        lines.append(
            f"| {one['method']} | {one['scored']:,} | {one['seconds']:.2f} "
            f"| {1e6 * one['seconds'] / one['scored']:.2f} | {difference:.2g} |"
        )
    text = "\n".join(lines) + "\n"
    print(text)
    if options.out:
        Path(options.out).write_text(text)


if __name__ == "__main__":
    main()
