"""Edges that defaults find in pure noise: every column is independent of all others.

    python benchmarks/false_edges.py [--only additive MLP] [--again] [--render]

Results are kept per cell in benchmarks/results/false-edges.jsonl, and the table is written to
benchmarks/results/false-edges.md. A run that was stopped goes on where it was; ``--again`` measures
the chosen methods again. A cell stops early when its seeds have taken 15 CPU seconds, so expensive
cells have fewer seeds; the table shows how many. The whole table takes about 15 CPU minutes.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist

RESULTS = Path(__file__).parent / "results"
VARIABLES = (10, 100)
ROWS = (20, 50, 100, 200, 500, 1000, 5000)
SEEDS = {10: 10, 100: 3}
SECONDS = 15.0
LIMIT = 0.1  # edges per variable, at 100 rows or more

Table = dict[str, Any]
Maker = Callable[[np.random.Generator, int, int], Table]


def continuous(rng: np.random.Generator, d: int, n: int) -> Table:
    return {f"x{i}": rng.normal(size=n) for i in range(d)}


def discrete(rng: np.random.Generator, d: int, n: int) -> Table:
    return {f"x{i}": _category(rng, n, 2 + i % 4) for i in range(d)}


def mixed(share: float) -> Maker:
    def table(rng: np.random.Generator, d: int, n: int) -> Table:
        categories = round(share * d)
        names = [f"x{i}" for i in range(d)]
        columns = [
            _category(rng, n, 2 + i % 4) if i < categories else rng.normal(size=n) for i in range(d)
        ]
        return dict(zip(names, columns, strict=True))

    return table


def _category(rng: np.random.Generator, n: int, levels: int) -> list[str]:
    return [f"level {k}" for k in rng.integers(0, levels, n)]


def numbers(draw: Callable[[np.random.Generator, int], Any]) -> Maker:
    """Independent columns of numbers from some distribution."""

    def table(rng: np.random.Generator, d: int, n: int) -> Table:
        return {f"x{i}": np.asarray(draw(rng, n), dtype=float) for i in range(d)}

    return table


def flags(share: float, with_number: bool) -> Maker:
    """Flags that are rarely true, by themselves or beside one number."""

    def table(rng: np.random.Generator, d: int, n: int) -> Table:
        columns: Table = {f"x{i}": rng.random(n) < share for i in range(d)}
        if with_number:
            columns["x0"] = rng.normal(size=n)
        return columns

    return table


def zipf(levels: int, with_number: bool) -> Maker:
    """Categories with a few common and many rare levels, by themselves or beside one number."""

    def table(rng: np.random.Generator, d: int, n: int) -> Table:
        shares = 1.0 / np.arange(1, levels + 1) ** 1.5
        shares /= shares.sum()
        columns: Table = {
            f"x{i}": [f"level {k}" for k in rng.choice(levels, n, p=shares)] for i in range(d)
        }
        if with_number:
            columns["x0"] = rng.normal(size=n)
        return columns

    return table


def series(rng: np.random.Generator, d: int, n: int) -> ist.Series:
    return ist.Series(continuous(rng, d, n), lags=2)


METHODS: dict[str, tuple[Callable[[np.random.Generator, int, int], Any], Any]] = {
    "continuous": (continuous, None),
    "discrete": (discrete, None),
    "mixed, 10 % categories": (mixed(0.1), None),
    "mixed, 50 % categories": (mixed(0.5), None),
    "flags, 1 % true": (flags(0.01, with_number=False), None),
    "flags, 5 % true": (flags(0.05, with_number=False), None),
    "flags, 1 % true, and a number": (flags(0.01, with_number=True), None),
    "flags, 5 % true, and a number": (flags(0.05, with_number=True), None),
    "Zipf, 30 levels": (zipf(30, with_number=False), None),
    "Zipf, 30 levels, and a number": (zipf(30, with_number=True), None),
    "Likert, 1 to 5": (numbers(lambda r, n: r.binomial(4, 0.4, n) + 1), None),
    "counts, mean 2": (numbers(lambda r, n: r.poisson(2.0, n)), None),
    "lognormal": (numbers(lambda r, n: r.lognormal(size=n)), None),
    "t, 3 df": (numbers(lambda r, n: r.standard_t(3, size=n)), None),
    "Cauchy": (numbers(lambda r, n: r.standard_cauchy(size=n)), None),
    "lognormal, NormalScores": (numbers(lambda r, n: r.lognormal(size=n)), ist.NormalScores()),
    "t, 3 df, NormalScores": (numbers(lambda r, n: r.standard_t(3, size=n)), ist.NormalScores()),
    "Cauchy, NormalScores": (numbers(lambda r, n: r.standard_cauchy(size=n)), ist.NormalScores()),
    "counts, NormalScores": (numbers(lambda r, n: r.poisson(2.0, n)), ist.NormalScores()),
    "additive": (continuous, ist.NotearsAdditive()),
    "MLP": (continuous, ist.NotearsMLP()),
    "dynamic, 2 lags": (series, ist.Dynotears()),
}


def measure(method: str, d: int, n: int) -> dict[str, Any]:
    """Count the edges of one cell."""
    make, option = METHODS[method]
    transform = option if isinstance(option, ist.tables.Transform) else None
    search = None if transform is not None else option
    edges: list[int] = []
    start = time.process_time()
    for seed in range(SEEDS[d]):
        data = make(np.random.default_rng(seed), d, n)
        edges.append(
            len(ist.learn(data, search=search, transform=transform, progress=False).dag.edges)
        )
        if time.process_time() - start > SECONDS:
            break
    seconds = (time.process_time() - start) / len(edges)
    return {"method": method, "d": d, "n": n, "edges": edges, "seconds": round(seconds, 2)}


def render(cells: dict[tuple[str, int, int], dict[str, Any]]) -> str:
    """Write the table."""
    lines = [
        "# False edges on pure noise",
        "",
        "`python benchmarks/false_edges.py`",
        "",
        "All columns are independent, so every edge is false. Mean number of edges **per",
        "variable** with the default score and search (or the default options of the search), over",
        "seeds 0, 1, …; the number of seeds is in brackets, smaller where a run is expensive.",
        "Continuous columns are standard normal unless stated otherwise, categories have two to",
        "five levels. Zipf: level k has a share proportional to k^-1.5. `dynamic` counts edges",
        "within a step and from two earlier ones. The bar is a tenth of an edge at 100 rows or",
        "more; cells above it are bold.",
        "",
        "| method | variables | " + " | ".join(f"n = {n:,}" for n in ROWS) + " | most CPU s |",
        "| --- | --- |" + " --- |" * (len(ROWS) + 1),
    ]
    for method in METHODS:
        for d in VARIABLES:
            row = [cells.get((method, d, n)) for n in ROWS]
            shown = [_cell(cell, n) for cell, n in zip(row, ROWS, strict=True)]
            slowest = max((c["seconds"] for c in row if c is not None), default=0.0)
            lines.append(f"| {method} | {d} | " + " | ".join(shown) + f" | {slowest:.1f} |")
    return "\n".join(lines) + "\n"


def _cell(cell: dict[str, Any] | None, n: int) -> str:
    if cell is None:
        return "–"
    mean = float(np.mean(cell["edges"])) / cell["d"]
    text = f"{mean:.3f} ({len(cell['edges'])})"
    return f"**{text}**" if n >= 100 and mean > LIMIT else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--again", action="store_true", help="measure the chosen methods again")
    parser.add_argument("--render", action="store_true", help="write the table, measure nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ist.errors.DataWarning)
    store = RESULTS / "false-edges.jsonl"
    cells: dict[tuple[str, int, int], dict[str, Any]] = {}
    if store.exists():
        for line in store.read_text().splitlines():
            cell = json.loads(line)
            cells[cell["method"], cell["d"], cell["n"]] = cell
    if options.again:
        cells = {key: cell for key, cell in cells.items() if key[0] not in options.only}
    if not options.render:
        for method in options.only:
            for d in VARIABLES:
                for n in ROWS:
                    if (method, d, n) in cells:
                        continue
                    cells[method, d, n] = cell = measure(method, d, n)
                    print(json.dumps(cell), flush=True)
                    store.write_text("".join(json.dumps(c) + "\n" for c in cells.values()))
    (RESULTS / "false-edges.md").write_text(render(cells))


if __name__ == "__main__":
    main()
