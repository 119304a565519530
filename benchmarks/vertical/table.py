"""Write the results of run.py as tables of Markdown, with fitted growth laws.

python benchmarks/vertical/table.py > benchmarks/results/vertical.md
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

RESULTS = Path(__file__).parents[1] / "results" / "vertical.jsonl"
NETWORKS = ("asia", "sachs", "child", "alarm")
COST = ("seconds", "cpu", "megabytes", "messages", "programs", "cells", "factors", "round trip")
REFILL = 1281
"""Messages in one direction when the engine refills its stock of oblivious transfers."""


def rows(records: list[dict[str, Any]], columns: tuple[str, ...]) -> str:
    lines = ["| run | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for record in records:
        cells = [record.get(c, "") for c in columns]
        shown = [f"{round(c, 3):,}" if isinstance(c, int | float) else str(c) for c in cells]
        lines.append(f"| {record['name']} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def growth(records: list[dict[str, Any]]) -> str:
    """Fit costs to the numbers of secret cells and factors: least squares of relative errors."""
    records = [r for r in records if re.fullmatch(r"k2 n=\d+ m=\d+ u=\d+", r["name"])]
    design = np.array([[1.0, r["cells"] / 1e3, r["factors"] / 1e6] for r in records])
    lines = ["| | constant | per 1,000 cells | per million factors | largest relative error |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for what in ("cpu", "megabytes"):
        costs = np.array([r[what] for r in records])
        law, _ = nnls(design / costs[:, None], np.ones(len(costs)))
        worst = np.abs(design @ law / costs - 1).max()
        lines.append(f"| {what} | " + " | ".join(f"{x:.1f}" for x in law) + f" | {worst:.0%} |")
    return "\n".join(lines)


def best_sets(records: list[dict[str, Any]], what: str) -> None:
    if not records:
        return
    total, equal, ties = (sum(r[k] for r in records) for k in ("decisions", "equal", "ties"))
    worst = max((x for r in records for x in r["losses"]), default=0.0)
    closest = min(r["closest"] for r in records)
    print(f"\n## {what}\n")
    print(f"{len(records)} random problems, n = 200 to 2,000, at most 2 or 3 parents: {equal} of")
    print(f"{total} parent sets are the best ones of the joined table, and {ties} others are ties")
    print(f"within the numeric error. The largest loss is {worst:.2g} nats. The smallest margin of")
    print(
        f"the best set was {closest:.2g} nats. Problems in which both parties had the same network:"
    )
    print(f"{sum(r['both the same'] for r in records)}.")


def main() -> None:
    records = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    of = {
        k: [r for r in records if r["kind"] == k]
        for k in ("cost", "problem", "network", "product", "structure only", "gaussian")
    }
    print("# Two parties: cost and correctness\n")
    print(
        "Two processes on one machine, whose 2 cores were busy with other work: read CPU seconds,"
    )
    print("not the seconds that passed. Private K2 with at most 2 parents,")
    print("variables of 2 or 3 levels, half of them at each party. CPU seconds, megabytes and")
    print("messages are of both parties together. Made by `benchmarks/vertical/run.py` and")
    print("`benchmarks/vertical/table.py`.\n")
    print("## Cost\n")
    setups = [r | {"name": r["name"].rsplit(" ", 1)[0]} for r in of["cost"] if "setup" in r["name"]]
    print(rows(setups + [r for r in of["cost"] if "setup" not in r["name"]], COST))
    names = {r["name"] for r in records}
    print(f"\nSome runs have {REFILL:,} messages more, in one direction, for each refill of the")
    print("engine's stock of oblivious transfers: that depends on what earlier runs have left.")
    print("The set-up is a first run with 20 variables. It exchanges keys as well.\n")
    print("A cell is one of a secret table whose score is computed, padding included. A factor is")
    print("a number in one of the two matrices of a product. Fitted to the runs without delay:\n")
    print(growth(of["cost"]))
    sizes = [f"k2 n={n} m={m} u=2" for m in (8, 20, 37) for n in (1_000, 10_000, 100_000)]
    late = [f"k2 n=1000 m={m} u=2, {t} ms" for t in (20, 100) for m in (8, 20)]
    missing = [x for x in (*sizes, *late, *NETWORKS, "products side by side") if x not in names]
    if missing:
        print(f"\nNot measured yet: {'; '.join(missing)}.")
    if of["problem"]:
        total = sum(r["decisions"] for r in of["problem"])
        equal = sum(r["equal"] for r in of["problem"])
        same = sum(r["same network"] for r in of["problem"])
        worst = max((x for r in of["problem"] for x in r["differences"]), default=0.0)
        closest = min(r["closest"] for r in of["problem"] if r["closest"] is not None)
        print("\n## Random problems\n")
        print(f"{len(of['problem'])} problems with 4 to 6 variables of 2 to 4 levels, n = 200 to")
        print(
            f"20,000, at most 2 or 3 parents: {equal:,} of {total:,} decisions are those of K2 with"
        )
        print(
            f"exact scores, and {same} networks are the same. The closest decision had a margin of"
        )
        print(f"{closest:.2g} nats; the largest loss of a different decision is {worst:.2g} nats.")
    best_sets(of["structure only"], "Structure only, 4 or 5 variables of 2 to 4 levels")
    best_sets(of["gaussian"], "Secret Gaussian scores, 4 to 6 variables")
    if of["network"]:
        print("\n## Networks with 5,000 rows\n")
        columns = ("variables", "parents", "decisions", "equal", "closest", "same network")
        print(rows(of["network"], (*columns, *COST[:4])))
    if of["product"]:
        print("\n## The scalar product of the paper\n")
        print(
            "n = 10,000. Paillier with 2,048 bits: one column of Alice with ten of Bob, on gmpy2."
        )
        print("Ours: all tables of ten binary variables with ten, which are 400 such products.\n")
        (record,) = of["product"]
        print(f"- Paillier, one column: {record['paillier cpu, one column']} s of CPU time.")
        print(f"- Ours, all tables: {record['cpu']} s, {record['megabytes']} MB.")
        print(f"- Ratio for the ten columns of Alice: {record['ratio for ten columns']}.")


if __name__ == "__main__":
    main()
