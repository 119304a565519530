"""The protein data of Sachs et al., 7466 cells, 11 proteins, against the consensus network.

OMP_NUM_THREADS=1 python benchmarks/notears/sachs.py   # in ../shared/data/sachs, or ISTHMUS_DATA
"""

from __future__ import annotations

import gzip
import os
import sys
import warnings
from pathlib import Path

import numpy as np

import isthmus as ist
from isthmus import published, simulate
from isthmus.metrics import shd_cpdag

sys.path.append(str(Path(__file__).resolve().parents[1]))
from runner import ROOT, Experiment, Values

DATA = Path(os.environ.get("ISTHMUS_DATA", ROOT.parent / "shared" / "data")) / "sachs"
LEARNERS = {
    "published.notears": lambda data: published.notears(data).dag,
    "Notears": lambda data: ist.learn(data, search=ist.Notears()).dag,
    "Notears, 0.1 and 0.3": lambda data: (
        ist.learn(data, search=ist.Notears(penalty=0.1, threshold=0.3)).dag
    ),
    "Notears, likelihood": lambda data: (
        ist.learn(data, score=ist.LinearLikelihood(), search=ist.Notears()).dag
    ),
    "BOSS": lambda data: ist.learn(data, score=ist.GaussianEBIC(), search=ist.Boss()).dag,
    "learn": lambda data: ist.learn(data).dag,
    "sort by variance": simulate.sort_and_regress,
}


def proteins() -> dict[str, np.ndarray]:
    with gzip.open(DATA / "sachs_7466_raw.csv.gz", "rt") as file:
        names = file.readline().strip().replace('"', "").split(",")
        values = np.loadtxt(file, delimiter=",")
    # The last column tells the condition.
    return {name: values[:, i] for i, name in enumerate(names) if name != "condition_id"}


def truth(nodes: tuple[str, ...], edges: int) -> ist.DAG:
    lines = (DATA / f"sachs_dag_{edges}edges.csv").read_text().splitlines()[1:]
    same = {n.lower(): n for n in nodes}
    pairs = [tuple(part.strip('" ').lower() for part in line.split(",")[:2]) for line in lines]
    return ist.DAG(nodes, [(same[a], same[b]) for a, b in pairs])


def measure(data: str, method: str) -> Values:
    warnings.simplefilter("ignore")
    cells = proteins()
    if data == "log":
        cells = {name: np.log2(column + 0.5) for name, column in cells.items()}
    dag = LEARNERS[method](cells)
    found = {"edges": len(dag.edges)}
    for edges in (20, 17):
        true = truth(dag.nodes, edges)
        found[f"shd{edges}"], found[f"cpdag{edges}"] = ist.shd(dag, true), shd_cpdag(dag, true)
    return found


def table(rows: list[Values]) -> str:
    text = (
        "# Sachs, 7466 cells\n\nThe paper reports 16 edges and SHD 22 against the network of 20 "
        "edges.\nTo take it again: `python benchmarks/notears/sachs.py`.\n\n"
        "| data | method | edges | SHD to 20 edges | to 17 | CPDAG-SHD to 20 | to 17 |\n"
        "| --- | --- | --- | --- | --- | --- | --- |"
    )
    for row in rows:
        case, f = row["case"], row["found"]
        values = (f.get(key, "–") for key in ("edges", "shd20", "shd17", "cpdag20", "cpdag17"))
        text += f"\n| {case['data']} | {case['method']} | {' | '.join(map(str, values))} |"
    return text


if __name__ == "__main__":
    cases = [{"data": data, "method": name} for data in ("raw", "log") for name in LEARNERS]
    code = ("src/isthmus/searches", "src/isthmus/published", "benchmarks/notears/sachs.py")
    Experiment("notears-sachs", measure, cases, code).main(table)
