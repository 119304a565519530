"""Tables of what `figures.py` measured."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np

FIGURES = (
    ("1", "Figures 1 and 5: linear, n = 3 d rows over 10 sites"),
    ("2", "Figures 2 and 6: linear, 256 rows in all"),
    ("3 log", "Figures 3 and 7: proteins, 512 of 853 cells, logarithms"),
    ("3 raw", "Figures 3 and 7: proteins, 512 of 853 cells, raw"),
    ("4", "Figures 4 and 8: nonlinear, 512 rows in all"),
    ("series", "Time series: one lag, 512 steps in all, a series a site"),
)
ORDER = (
    "admm",
    "admm pooled",
    "admm together",
    "mlp admm",
    "mlp admm paper",
    "dynamic admm",
    "voting",
    "averaging",
    "best",
    "xges voting",
    "pc voting",
    "mlp voting",
    "mlp averaging",
    "mlp best",
    "all data",
    "secure sum",
    "all data default",
    "mlp all data",
    "curves",
    "dynamic all data",
)
POOLED = {"curves", "all data", "all data default", "mlp all data", "dynamic all data"}
HEAD = """# Section 6 of the ADMM paper

Each cell: mean SHD ± its standard error (TPR, FDR) [runs].

- *admm*: as the paper has it, each site centres on its own; *admm pooled*: at the pooled means;
  *admm together*: `ADMM(rho2=0.008, stiffness=Stiffness.TOGETHER)`.
- *mlp admm paper*: the paper's schedule for networks; *mlp admm*: the library's.
- *voting*, *averaging*, *best*: of NOTEARS (λ = 0.01, threshold 0.3) at each site alone, for
  networks of `NotearsMLP` (λ = 0.01); *best* knows the truth.
- *xges voting*, *pc voting*: of equivalence classes; PC is causal-learn's, Fisher's z at 0.05.
- *all data*: NOTEARS with the same λ and threshold on pooled moments; *secure sum*: the same by the
  whole protocol; *all data default*: pooled, with the library's own choice of both. For networks
  (λ = 0.01): on pooled rows.
- *curves*: `NotearsAdditive` on pooled moments of two Chebyshev polynomials a variable.

Of its values the paper's text gives those at d = 20, 64 sites: TPR 0.78 (ADMM), 0.05 (voting),
0.25 (averaging), 0.33 (best). Its figures are pictures.

To take it again: `python benchmarks/federation/figures.py run` and `figures.py table`; where
causal-learn is installed, `figures.py run 1e9 pc`.
"""


def cell(rows: list[dict[str, float]]) -> str:
    shd = np.array([r["shd"] for r in rows], dtype=float)
    error = f" ± {shd.std(ddof=1) / np.sqrt(len(shd)):.1f}" if len(shd) > 1 else ""
    tpr, fdr = (np.mean([r[k] for r in rows]) for k in ("tpr", "fdr"))
    return f"{shd.mean():.1f}{error} ({tpr:.2f}, {fdr:.2f}) [{len(rows)}]"


def table(rows: list[dict[str, float]]) -> list[str]:
    found = defaultdict(list)
    for r in rows:
        sites = 0 if r["method"] in POOLED else r["sites"]
        found[r["d"], sites, r["method"]].append(r)
    methods = [m for m in ORDER if any(key[2] == m for key in found)]
    points = sorted({(r["d"], r["sites"]) for r in rows})
    lines = [
        "| d | sites | " + " | ".join(methods) + " |",
        "| --- " * (2 + len(methods)) + "|",
    ]
    for d, sites in points:
        held = [found.get((d, 0 if m in POOLED else sites, m)) for m in methods]
        shown = [cell(_once(h)) if h else "–" for h in held]
        lines.append(f"| {d} | {sites} | " + " | ".join(shown) + " |")
    return lines


def _once(rows: list[dict[str, float]]) -> list[dict[str, float]]:
    return list({r["seed"]: r for r in rows}.values())


def times(rows: list[dict[str, float]]) -> list[str]:
    found = defaultdict(list)
    for r in rows:
        if r["rounds"]:
            found[r["method"], r["d"], r["sites"]].append(r)
    lines = ["| method | d | sites | rounds | CPU seconds |", "| --- | --- | --- | --- | --- |"]
    for (method, d, sites), held in sorted(found.items()):
        rounds, cpu = (np.mean([r[k] for r in held]) for k in ("rounds", "cpu"))
        lines.append(f"| {method} | {d} | {sites} | {rounds:.0f} | {cpu:.1f} |")
    return lines


def write(results: Path) -> None:
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    lines = [HEAD]
    for figure, title in FIGURES:
        held = [r for r in rows if r["figure"] == figure]
        if held:
            lines += [f"## {title}", "", *table(held), ""]
    lines += ["## Rounds and time of ADMM", "", *times(rows), ""]
    results.with_suffix(".md").write_text("\n".join(lines))
    print("\n".join(lines))
