"""Table 1 of Giudice, Kuipers and Moffa 2023: the protein data of Sachs et al., 853 cells.

    OMP_NUM_THREADS=1 python benchmarks/posterior/gp_sachs.py

First condition, log2(x + 0.5) as in the code of the paper; the data are looked for in
../shared/data/sachs, or under ISTHMUS_DATA. The consensus network is that of 17 edges: in every row
of the paper's table, E-SHD = 17 - E-TP + E-FP. That holds if TP are edges with the right direction,
FP are edges between nodes that are not adjacent, and a reversed edge counts once in the distance;
it also holds if all three are of graphs without directions. The table has both.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import isthmus as ist
from isthmus.objectives import LocalScore
from isthmus.scores.base import Score
from isthmus.statistics import Moments

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ISTHMUS_DATA", ROOT.parent / "shared" / "data")) / "sachs"
RESULTS = ROOT / "benchmarks" / "results" / "gp-sachs.md"
MOST = 4
PAPER = {
    "GP partition, paper": (14.5, 7.2, 4.7, 1, 0.75),
    "GP order, paper": (14.6, 6.8, 4.4, 1, 0.42),
    "BGe partition, paper": (15.9, 4.3, 3.2, 0, 1),
    "BGe order, paper": (15.3, 4.4, 2.7, 0.17, 0.98),
}


@dataclass(frozen=True, eq=False)
class Bound(Score[Moments, LocalScore]):
    """A score that was bound before, so that samplers share the families it has computed."""

    local: LocalScore
    needs: ClassVar[type[Moments]] = Moments
    kind: ClassVar[ist.Kind] = ist.Kind.CONTINUOUS

    def bind(self, statistics: Moments) -> LocalScore:
        return self.local


def table() -> dict[str, np.ndarray]:
    with (DATA / "sachs_853_cd3cd28_raw.csv").open() as file:
        names = file.readline().strip().replace('"', "").split(",")
        values = np.log2(np.loadtxt(file, delimiter=",") + 0.5)
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    return {name: values[:, i] for i, name in enumerate(names)}


def consensus(nodes: tuple[str, ...]) -> ist.DAG:
    lines = (DATA / "sachs_dag_17edges.csv").read_text().splitlines()[1:]
    return ist.DAG(nodes, [tuple(line.split(",")[:2]) for line in lines])  # type: ignore[misc]


def figures(posterior: ist.Posterior, truth: ist.DAG) -> tuple[float, ...]:
    """E-SHD, E-TP, E-FP, P(Erk → Akt), P(no path from Erk to PKA); E-SHD and E-TP undirected."""
    edges = posterior.edge_probabilities()
    true = truth.adjacency().astype(bool)
    right, extra = edges[true].sum(), edges[~(true | true.T)].sum()
    either = edges[true | true.T].sum()
    akt = posterior.probability(ist.edge("Erk", "Akt"))
    pka = posterior.probability(ist.path("Erk", "PKA"))
    count = len(truth.edges)
    directed = (count - right + extra, right, extra, akt, 1.0 - pka)
    return tuple(float(v) for v in (*directed, count - either + extra, either))


def main() -> None:
    data = table()
    moments = ist.Frame(data).moments()
    features = ist.WithFeatures(data, ist.GP().basis).moments()
    better = ist.GP(integral=ist.GPIntegral.IMPORTANCE)
    samplers: dict[str, Any] = {
        "exact": ist.ExactPosterior(max_parents=MOST),
        "partition": ist.PartitionMCMC(max_parents=MOST, jobs=1),
        "order": ist.OrderMCMC(max_parents=MOST, jobs=1),
    }
    truth = consensus(tuple(data))
    rows: dict[str, tuple[float, ...]] = {}
    remarks = []
    for name, score, statistics in (
        ("GP", ist.GP(), features),
        ("BGe", ist.BGe(), moments),
    ):
        local = score.bind(statistics)  # type: ignore[arg-type]
        for kind, sampler in samplers.items():
            begin = time.process_time()
            posterior = ist.sample(statistics, score=Bound(local), sampler=sampler, draws=1000)
            seconds = time.process_time() - begin
            rows[f"{name} {kind}"] = figures(posterior, truth)
            remarks.append(f"- {name} {kind}: {seconds:.1f} s. {' '.join(posterior.notes)}")
            if name == "GP" and kind == "partition":
                begin = time.process_time()
                corrected = ist.reweight(posterior, features, better)
                seconds = time.process_time() - begin
                rows[f"{name} {kind}, weighted"] = figures(corrected, truth)
                note = corrected.notes[0]
                remarks.append(f"- {name} {kind}, weighted: {seconds:.1f} s. {note}")
            print(remarks[-1], flush=True)
    heads = ("E-SHD", "E-TP", "E-FP", "P(Erk → Akt)", "P(no path Erk → PKA)")
    lines = ["| | " + " | ".join((*heads, "undirected: E-SHD", "E-TP")) + " |", "| --- " * 8 + "|"]
    for name, values in (PAPER | rows).items():
        lines.append(f"| {name} | " + " | ".join(f"{v:.3g}" for v in values) + " |")
    text = (
        "# Sachs, 853 cells, first condition\n\n"
        f"At most {MOST} parents. Seconds are CPU time; the exact posterior computes the scores of "
        "all families.\nTo take it again: `OMP_NUM_THREADS=1 python "
        "benchmarks/posterior/gp_sachs.py`.\n\n" + "\n".join(lines) + "\n\n" + "\n".join(remarks)
    )
    RESULTS.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
