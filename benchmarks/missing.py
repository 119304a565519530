"""What each strategy for missing values costs in structural Hamming distance.

    python benchmarks/missing.py [--seeds 3] [--networks alarm hailfinder Gaussian]

Tables of 5,000 rows from alarm and hailfinder and of 1,000 rows from Gaussian networks of 50
variables and 100 edges lose 10 or 30 % of their cells: completely at random (MCAR), or in half of
the columns with a probability that depends on the value of a complete column (MAR). The graph is
learned with the defaults of ``learn``, and its CPDAG compared with the true one.

If Rscript and the R package bnlearn are installed, three of its methods get the same tables and the
same comparison: ``hc`` on the complete data, and ``structural.em`` with imputation from the parents
and, for the first Gaussian network, with exact imputation from all observed values (about 50 CPU
seconds per table), both with hill climbing by BIC from the empty graph. The default imputation of
bnlearn, likelihood weighting, simulates 500 times for each incomplete row and is not run.

The tables are written to results/missing.md, the runs to results/missing.jsonl; networks that are
not named keep theirs.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import isthmus as ist
from isthmus.errors import IsthmusError
from isthmus.io import read_bif

HERE = Path(__file__).parent
DATA = Path(os.environ.get("ISTHMUS_DATA", HERE.parents[1] / "shared" / "data")) / "networks"
ROWS = {"alarm": 5_000, "hailfinder": 5_000, "Gaussian": 1_000}
STRATEGIES = {
    "complete data": None,
    "`DropRows`": ist.DropRows(),
    "`MissingAsLevel`": ist.MissingAsLevel(),
    "`AvailableCases`": ist.AvailableCases(),
    "`AvailableCases(standard_errors=0)`": ist.AvailableCases(standard_errors=0),
    "`StructuralEM`": ist.StructuralEM(),
    "`ExpectationMaximisation`": ist.ExpectationMaximisation(),
}
BNLEARN = {
    "R bnlearn `hc`, complete data": "none",
    'R bnlearn `structural.em`, `impute = "parents"`': "parents",
    'R bnlearn `structural.em`, `impute = "exact"`': "exact",
}
PATTERNS = [("MCAR", 0.1), ("MCAR", 0.3), ("MAR", 0.1), ("MAR", 0.3)]


def simulate(name: str, seed: int) -> tuple[dict[str, Any], ist.DAG]:
    """Draw a table, and return it with the true graph."""
    if name != "Gaussian":
        path = next(p for p in DATA.rglob(f"{name}.bif*"))
        network = read_bif(path)
        rows = network.sample(ROWS[name], seed=seed)
        return {v: np.asarray(rows[v], dtype=object) for v in network.dag.nodes}, network.dag
    d, rng = 50, np.random.default_rng(seed)
    order = rng.permutation(d)
    pairs = [(i, j) for i in range(d) for j in range(i + 1, d)]
    weights = np.zeros((d, d))
    for k in rng.choice(len(pairs), 2 * d, replace=False):
        i, j = pairs[k]
        weights[order[i], order[j]] = rng.choice([-1, 1]) * rng.uniform(0.5, 2.0)
    x = rng.normal(size=(ROWS[name], d)) @ np.linalg.inv(np.eye(d) - weights)
    names = [f"x{i}" for i in range(d)]
    edges = [(names[i], names[j]) for i, j in zip(*np.nonzero(weights), strict=True)]
    return dict(zip(names, x.T, strict=True)), ist.DAG(names, edges)


def punched(table: dict[str, Any], how: str, share: float, seed: int) -> dict[str, Any]:
    """Remove cells; MAR removes twice the share of half of the columns."""
    rng = np.random.default_rng(1000 + seed)
    names = list(rng.permutation(list(table)))
    complete, others = names[: len(names) // 2], names[len(names) // 2 :]
    result = dict(table)
    for name in names if how == "MCAR" else others:
        n = len(table[name])
        chance = np.full(n, share)
        if how == "MAR":
            driver = np.unique(table[rng.choice(complete)], return_inverse=True)[1]
            chance = np.where(driver < np.median(driver), 0.5, 1.5)
            chance *= 2 * share / chance.mean()
        cells = np.array(table[name])
        cells[rng.random(n) < chance] = np.nan if cells.dtype.kind == "f" else None
        result[name] = cells
    return result


R_PROGRAM = """
library(bnlearn)
given = commandArgs(trailingOnly = TRUE)
discrete = given[3] == "discrete"
table = read.csv(given[1], na.strings = "", colClasses = if (discrete) "character" else "numeric")
if (discrete) table[] = lapply(table, factor)
set.seed(1)
time = system.time(
    learned <- if (given[4] == "none") hc(table) else
        structural.em(table, maximize = "hc", impute = given[4],
                      fit = if (discrete) "mle" else "mle-g",
                      fit.args = list(replace.unidentifiable = TRUE)))
write.csv(arcs(learned), given[2], row.names = FALSE)
cat(time[["user.self"]] + time[["sys.self"]])
"""


def bnlearn_runs() -> bool:
    """Whether R and its package bnlearn are installed."""
    if shutil.which("Rscript") is None:
        return False
    tried = subprocess.run(["Rscript", "-e", "library(bnlearn)"], capture_output=True, check=False)
    return tried.returncode == 0


def learned_by_bnlearn(table: dict[str, Any], impute: str) -> tuple[ist.DAG, float]:
    """Return the graph and the CPU seconds of structural.em, or of hc without imputation."""
    numbers = all(np.asarray(x).dtype.kind == "f" for x in table.values())
    with tempfile.TemporaryDirectory() as folder:
        rows, arcs, program = (Path(folder) / f for f in ("rows.csv", "arcs.csv", "em.R"))
        pd.DataFrame(table).to_csv(rows, index=False)
        program.write_text(R_PROGRAM, encoding="utf-8")
        kind = "continuous" if numbers else "discrete"
        done = subprocess.run(
            ["Rscript", program, rows, arcs, kind, impute],
            capture_output=True,
            text=True,
            check=True,
        )
        edges = [tuple(edge) for edge in pd.read_csv(arcs, dtype=str).to_numpy()]
    return ist.DAG(list(table), edges), float(done.stdout)


def runs(name: str, seed: int, *, with_bnlearn: bool) -> Iterator[tuple[str, str, int, float]]:
    """Pattern, method, distance and CPU seconds; what ends with an error is left out."""
    table, dag = simulate(name, seed)
    patterns = [(f"{how} {share:.0%}", how, share) for how, share in PATTERNS]

    def by_isthmus(given: dict[str, Any], missing: Any) -> tuple[int, float]:
        begin = time.process_time()
        learned = ist.learn(given, missing=missing).cpdag
        return ist.shd(learned, dag.cpdag()), time.process_time() - begin

    def by_bnlearn(given: dict[str, Any], impute: str) -> tuple[int, float]:
        learned, seconds = learned_by_bnlearn(given, impute)
        return ist.shd(learned.cpdag(), dag.cpdag()), seconds

    own = {label: partial(by_isthmus, missing=missing) for label, missing in STRATEGIES.items()}
    peers = {
        label: partial(by_bnlearn, impute=impute)
        for label, impute in BNLEARN.items()
        if with_bnlearn and (impute != "exact" or (name == "Gaussian" and seed == 0))
    }
    for label, learn in (own | peers).items():
        if "complete data" in label:
            once = learn(table)
            yield from ((pattern, label, *once) for pattern, _, _ in patterns)
            continue
        for pattern, how, share in patterns:
            try:
                yield pattern, label, *learn(punched(table, how, share, seed))
            except IsthmusError:
                continue
            except subprocess.CalledProcessError as error:
                print(name, seed, pattern, label, error.stderr, flush=True)


def tables(done: list[dict[str, Any]]) -> list[str]:
    """Means and standard deviations of the runs as tables."""
    patterns = [f"{how} {share:.0%}" for how, share in PATTERNS]
    lines = []
    for name, rows in ROWS.items():
        own = [run for run in done if run["network"] == name]
        if not own:
            continue
        seeds = len({run["seed"] for run in own})
        lines += ["", f"## {name}, {rows:,} rows, {seeds} seed{'s' * (seeds > 1)}", ""]
        lines += [f"| | {' | '.join(patterns)} |", "| --- " * (len(patterns) + 1) + "|"]
        for label in (*STRATEGIES, *BNLEARN):
            cells = []
            for pattern in patterns:
                cell = [r for r in own if (r["way"], r["pattern"]) == (label, pattern)]
                if not cell:
                    cells.append("–")
                    continue
                distance, seconds = ([r[key] for r in cell] for key in ("shd", "seconds"))
                spread = f" ± {np.std(distance, ddof=1):.1f}" if len(cell) > 1 else ""
                fewer = f" [{len(cell)} of {seeds}]" if len(cell) < seeds else ""
                cells.append(f"{np.mean(distance):.1f}{spread} ({np.mean(seconds):.1f}){fewer}")
            if any(cell != "–" for cell in cells):
                lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Measure and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--networks", nargs="+", choices=ROWS, default=list(ROWS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with_bnlearn = bnlearn_runs()
    path = HERE / "results" / "missing.jsonl"
    done = [json.loads(line) for line in path.open(encoding="utf-8")] if path.exists() else []
    kept = {} if with_bnlearn else BNLEARN  # runs of R stay if it is not installed
    done = [r for r in done if r["network"] not in options.networks or r["way"] in kept]
    for name in options.networks:
        for seed in range(options.seeds):
            for pattern, way, distance, seconds in runs(name, seed, with_bnlearn=with_bnlearn):
                run = {"network": name, "seed": seed, "pattern": pattern, "way": way}
                done.append(run | {"shd": distance, "seconds": round(seconds, 2)})
                path.write_text("".join(json.dumps(r) + "\n" for r in done), encoding="utf-8")
    lines = [
        "# Missing values",
        "",
        f"`python benchmarks/missing.py --seeds {options.seeds}`",
        "",
        "CPDAG-SHD, mean ± standard deviation (CPU seconds). A dash: no complete row, or an error.",
        *tables(done),
    ]
    (HERE / "results" / "missing.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
