"""Section 6 of Ng and Zhang 2022: Figures 1 to 8, with baselines, and time series.

    python benchmarks/federation/figures.py run [SECONDS]           # goes on where it ended
    python benchmarks/federation/figures.py run SECONDS networks    # only the nonlinear cells
    python benchmarks/federation/figures.py run SECONDS secure      # one cell by the whole protocol
    python benchmarks/federation/figures.py run SECONDS pc          # PC of causal-learn, if there
    python benchmarks/federation/figures.py table

Data of the proteins (Figure 3) are looked for in ../shared/data/sachs, or under ISTHMUS_DATA.
Sites are the library's clients of ADMM, summed here without the protocol; tests show that the
protocol changes nothing. Set OMP_NUM_THREADS=1 and the like. Times are CPU seconds of all sites and
of the coordinator together.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from figures_methods import METHODS

from isthmus import simulate

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ISTHMUS_DATA", ROOT.parent / "shared" / "data")) / "sachs"
RESULTS = ROOT / "benchmarks" / "results" / "federation-figures.jsonl"


@dataclass(frozen=True)
class Cell:
    """One point of a figure."""

    figure: str
    d: int
    sites: int
    rows: int
    runs: int
    methods: tuple[str, ...]

    def data(self, seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """The true graph, and the rows of each site."""
        if self.figure.startswith("3"):
            truth, rows = _proteins(self.rows, seed, log="log" in self.figure)
        elif self.figure == "series":
            return _series(self.d, self.sites, self.rows // self.sites, seed)
        else:
            dag = simulate.erdos_renyi(self.d, self.d, seed=seed)
            draw = simulate.nonlinear if self.figure == "4" else simulate.linear
            truth, rows = dag.adjacency(), draw(dag, self.rows, seed=seed).array()
        each = self.rows // self.sites
        return truth, [rows[k * each : (k + 1) * each] for k in range(self.sites)]


def _proteins(n: int, seed: int, *, log: bool) -> tuple[np.ndarray, np.ndarray]:
    lines = (DATA / "sachs_853_cd3cd28_raw.csv").read_text().splitlines()
    names = [x.strip('" ').lower() for x in lines[0].split(",")]
    values = np.array([[float(x) for x in line.split(",")] for line in lines[1:]])
    truth = np.zeros((len(names), len(names)), dtype=bool)
    for line in (DATA / "sachs_dag_17edges.csv").read_text().splitlines()[1:]:
        tail, head = (x.strip('" ').lower() for x in line.split(",")[:2])
        truth[names.index(tail), names.index(head)] = True
    chosen = np.random.default_rng(seed).choice(len(values), n, replace=False)
    return truth, np.log(values[chosen]) if log else values[chosen]


def _series(d: int, sites: int, steps: int, seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """One realisation per site; columns now, then one step earlier; truth [cause, effect]."""
    names = [f"x{i}" for i in range(d)]
    dag = simulate.erdos_renyi(names, d, seed=seed)
    model = simulate.autoregressive_model(dag, simulate.lagged_graph(names, seed=seed), seed=seed)
    found = model.sample(steps + 1, realisations=sites, seed=seed)
    truth = np.concatenate([dag.adjacency(), model.lagged_matrices()[0] != 0])
    return truth, [np.concatenate([x[1:], x[:-1]], axis=1) for x in found.arrays()]


LINEAR = ("admm", "voting", "averaging", "best")
ALL = ("all data", "all data default")
POOLED = "admm pooled"
MLP = ("mlp admm", "mlp admm paper")
ALONE = ("mlp voting", "mlp averaging", "mlp best")
# Data of one seed are the same for all numbers of sites, so all of them are pooled only once.
QUICK = (
    Cell("2", 20, 64, 256, 30, (*LINEAR, POOLED, *ALL)),
    *(Cell("1", d, 10, 3 * d, 10, (*LINEAR, "xges voting", *ALL)) for d in (10, 20)),
    *(Cell("2", 20, k, 256, 10, (*LINEAR, POOLED)) for k in (2, 8)),
    *(Cell("3 log", 11, k, 512, 10, LINEAR) for k in (2, 8)),
    Cell("3 log", 11, 64, 512, 10, (*LINEAR, *ALL)),
    *(Cell("series", 10, k, 512, 10, ("dynamic admm", "dynamic all data")) for k in (4, 16)),
    Cell("4", 20, 2, 512, 10, ("curves",)),
    *(Cell("2", 20, k, 256, 10, ("admm together",)) for k in (2, 8, 64)),
)
WIDE = (
    Cell("4", 20, 2, 512, 10, (*MLP, "mlp all data")),
    Cell("4", 20, 16, 512, 10, MLP),
    Cell("2", 50, 64, 256, 10, (*LINEAR, *ALL)),
    *(Cell("2", 50, k, 256, 10, LINEAR) for k in (2, 8)),
    Cell("1", 50, 10, 150, 10, (*LINEAR, "xges voting", *ALL)),
)
MORE = (
    Cell("1", 100, 10, 300, 10, ("admm", *ALL)),
    Cell("4", 50, 16, 512, 10, ("curves",)),
    Cell("4", 50, 16, 512, 10, ("mlp admm", "mlp all data")),
    *(Cell("4", 20, k, 512, 10, ALONE) for k in (2, 8, 16)),
    *(Cell("4", 50, k, 512, 10, ALONE) for k in (2, 16)),
    Cell("4", 20, 8, 512, 10, MLP),
    Cell("1", 100, 10, 300, 10, (*LINEAR, "xges voting")),
    *(Cell("2", 20, k, 256, 10, (*LINEAR, POOLED)) for k in (4, 16, 32)),
    Cell("4", 50, 16, 512, 10, ("mlp admm paper",)),
    Cell("4", 50, 2, 512, 10, MLP),
    Cell("2", 10, 64, 256, 10, (*LINEAR, *ALL)),
    *(Cell("2", 10, k, 256, 10, LINEAR) for k in (2, 4, 8, 16, 32)),
    *(Cell("2", 50, k, 256, 10, LINEAR) for k in (4, 16, 32)),
    Cell("3 raw", 11, 64, 512, 10, (*LINEAR, *ALL)),
    *(Cell("3 raw", 11, k, 512, 10, LINEAR) for k in (2, 8)),
    *(Cell("3 log", 11, k, 512, 10, LINEAR) for k in (4, 16, 32)),
)
CELLS = QUICK + WIDE + MORE
ORDER = (
    *((c, s) for s in range(3) for c in QUICK),
    *((c, 0) for c in WIDE),
    *((c, s) for s in range(10) for c in QUICK),
    *((c, 1) for c in WIDE),
    *((c, 0) for c in MORE[:3]),
    *((c, 2) for c in WIDE),
    *((c, 0) for c in MORE),
    *((c, s) for s in range(30) for c in QUICK),
    *((c, s) for s in range(10) for c in CELLS),
)
NETWORKS = tuple(c for c in CELLS if c.figure == "4")
SECURE = (Cell("2", 20, 64, 256, 10, ("secure sum",)),)
PC = tuple(Cell("1", d, 10, 3 * d, 10, ("pc voting",)) for d in (10, 20, 50, 100))


def scores(edges: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """As the paper's code counts: an edge turned round is one mistake."""
    d = truth.shape[1]
    right = int((edges & truth).sum())
    turned = edges[:d] & truth[:d].T & ~truth[:d]
    either = (edges[:d] | edges[:d].T) ^ (truth[:d] | truth[:d].T)
    wrong = int(np.triu(either, 1).sum() + turned.sum() + (edges[d:] ^ truth[d:]).sum())
    return {
        "shd": wrong,
        "tpr": right / max(int(truth.sum()), 1),
        "fdr": (int(edges.sum()) - right) / max(int(edges.sum()), 1),
    }


def done() -> set[tuple[str, int, int, int, str]]:
    if not RESULTS.exists():
        return set()
    rows = map(json.loads, RESULTS.read_text().splitlines())
    return {(r["figure"], r["d"], r["sites"], r["seed"], r["method"]) for r in rows}


def run(seconds: float, cells: tuple[Cell, ...]) -> None:
    """A few runs of what matters most, then one of all, then more."""
    warnings.simplefilter("ignore")
    end = time.process_time() + seconds
    have = done()
    order = ORDER if cells is CELLS else [(c, s) for s in range(10) for c in cells]
    for cell, seed in order:
        key = (cell.figure, cell.d, cell.sites, seed)
        lacking = {m for m in cell.methods if (*key, m) not in have}
        if lacking and seed < cell.runs:
            measure(cell, seed, lacking)
            have |= {(*key, m) for m in lacking}
        if time.process_time() > end:
            return


def measure(cell: Cell, seed: int, lacking: set[str]) -> None:
    truth, parts = cell.data(seed)
    for names, method in METHODS:
        wanted = lacking.intersection(names)
        if not wanted:
            continue
        started = time.process_time()
        found = method(parts, truth)
        spent = round(time.process_time() - started, 2)
        head = {"figure": cell.figure, "d": cell.d, "sites": cell.sites, "rows": cell.rows}
        for name in sorted(wanted):
            edges, rounds = found[name]
            row = {**head, "seed": seed, "method": name, "cpu": spent, "rounds": rounds}
            with RESULTS.open("a") as file:
                file.write(json.dumps(row | scores(edges, truth)) + "\n")


def main() -> None:
    if sys.argv[1] == "table":
        from figures_table import write

        write(RESULTS)
        return
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else np.inf
    cells = {"networks": NETWORKS, "pc": PC, "secure": SECURE}.get((*sys.argv, "", "")[3], CELLS)
    run(seconds, cells)


if __name__ == "__main__":
    main()
