"""False alarms, power and cost of the checks of assumptions.

    python benchmarks/assumptions/measure.py [--tables 1000] [--seeds 50] [--kinds discrete mixed]

False alarms: the share of tables that keep the assumptions for which `learn` gives a note, with its
defaults, by kind of table and size; ``--tables`` of each kind with up to ten columns and 1,000
rows, and fewer of the others. Power: the share of seeds for which the right note is given. Cost:
CPU time of all checks together, and of `learn` with them. Writes results/assumptions.md.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
from generators import CLEAN, VIOLATED, Table, linear

import isthmus as ist
from isthmus.verbs.notes import check_rows
from isthmus.verbs.notes_rows import RowTable

SIZES = ((60, 3), (60, 10), (300, 5), (300, 20), (1000, 10), (2000, 50), (10_000, 10))
TRUE = re.compile(" exactly|^Constant columns|exact linear relation")
"""Notes that are never wrong: random categories can be constant, or determine each other."""
RESULT = Path(__file__).parents[1] / "results" / "assumptions.md"


def notes(table: Table) -> tuple[str, ...]:
    kinds = {k: "continuous" for k, x in table.items() if x.dtype.kind == "f"}
    source = ist.Frame(table, kinds=kinds or None)
    return ist.learn(source, progress=False).notes


def tables_of(size: tuple[int, int], most: int) -> int:
    n, d = size
    return most if n * d <= 3000 else max(10, most // (20 if d <= 20 and n <= 2000 else 100))


def false_alarms(most: int, kinds: list[str]) -> list[str]:
    lines = [
        "| tables | " + " | ".join(f"n = {n:,}, d = {d}" for n, d in SIZES) + " | all | notes |",
        "| --- |" + " --- |" * (len(SIZES) + 2),
    ]
    for kind in kinds:
        cells, wrong, total, seen = [], 0, 0, Counter[str]()
        for size in SIZES:
            count, alarms = tables_of(size, most), 0
            for seed in range(count):
                rng = np.random.default_rng([seed, *size, len(kind)])
                found = [x for x in notes(CLEAN[kind](*size, rng)) if not TRUE.search(x)]
                alarms += bool(found)
                seen.update(x[:24] for x in found)
            cells.append(f"{alarms} of {count:,}")
            wrong, total = wrong + alarms, total + count
        lines.append(f"| {kind} | {' | '.join(cells)} | {wrong / total:.2%} | {dict(seen) or ''} |")
        print(lines[-1], flush=True)
    return lines


def power(seeds: int) -> list[str]:
    sizes = (200, 1000)
    lines = [
        "| violation | " + " | ".join(f"n = {n:,}" for n in sizes) + " |",
        "| --- |" + " --- |" * len(sizes),
    ]
    for name, (generate, words) in VIOLATED.items():
        cells = []
        for n in sizes:
            rngs = [np.random.default_rng([seed, n]) for seed in range(seeds)]
            right = sum(any(words in x for x in notes(generate(n, rng))) for rng in rngs)
            cells.append(f"{right / seeds:.0%}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return lines


def cost() -> list[str]:
    lines = [
        "| rows | columns | checks of rows, ms | `learn` with all checks, ms | share |",
        "| --- | --- | --- | --- | --- |",
    ]
    for n, d in ((200, 5), (1000, 10), (1000, 50), (10_000, 20), (100_000, 50)):
        table = linear(n, d, np.random.default_rng(0))
        dag = notes_and_graph(table)
        whole = min(cpu(lambda t=table: ist.learn(t, progress=False)) for _ in range(3))
        rows = RowTable.of(ist.Frame(table))
        assert rows is not None
        checks = min(cpu(lambda r=rows, g=dag: check_rows(r, g, linear=True)) for _ in range(3))
        cells = f"{n:,} | {d} | {checks * 1e3:.1f} | {whole * 1e3:.0f} | {checks / whole:.0%}"
        lines.append(f"| {cells} |")
        print(lines[-1], flush=True)
    return lines


def notes_and_graph(table: Table) -> ist.DAG:
    return ist.learn(table, progress=False).dag


def cpu(call: object) -> float:
    begin = time.process_time()
    call()  # type: ignore[operator]
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--kinds", nargs="*", default=list(CLEAN))
    parser.add_argument("--parts", nargs="*", default=["cost", "power", "alarms"])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    page = ["# Checks of assumptions", "", "`python benchmarks/assumptions/measure.py --write`"]
    if "cost" in options.parts:
        page += ["", "## Cost (CPU time, one thread)", "", *cost()]
    if "power" in options.parts:
        page += ["", f"## Power ({options.seeds} seeds)", "", *power(options.seeds)]
    if "alarms" in options.parts:
        page += ["", "## False alarms", "", *false_alarms(options.tables, options.kinds)]
    if options.write:
        RESULT.write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main()
