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

from isthmus_joint.shares.cost import Work, cost_of

RESULTS = Path(__file__).parents[1] / "results" / "vertical.jsonl"
FITTED = r"k2 n=\d+ m=\d+ u=2"
NETWORKS = ("asia", "sachs", "child", "alarm")
COST = ("seconds", "cpu", "megabytes", "gigabytes", "messages")
WORK = ("messages", "transfers", "numbers", "rounds")


def rows(records: list[dict[str, Any]], columns: tuple[str, ...]) -> str:
    lines = ["| run | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for record in records:
        cells = [record.get(c, "") for c in columns]
        shown = [f"{round(c, 3):,}" if isinstance(c, int | float) else str(c) for c in cells]
        lines.append(f"| {record['name']} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def growth(records: list[dict[str, Any]]) -> str:
    """Fit costs to the work that was done: least squares of relative errors."""
    records = [r for r in records if re.fullmatch(FITTED, r["name"])]
    design = np.array([[1.0, *(r["work"][k] for k in WORK[:-1])] for r in records])
    lines = ["| | constant | " + " | ".join(f"per {k[:-1]}" for k in WORK[:-1]) + " | worst |"]
    lines.append("| --- |" + " ---: |" * (len(WORK) + 1))
    costs = 0.5 * np.array([r["cpu"] for r in records])
    law, _ = nnls(design / costs[:, None], np.ones(len(costs)))
    worst = np.abs(design @ law / costs - 1).max()
    shown = " | ".join(f"{x:.2g}" for x in law)
    lines.append(f"| CPU s per party | {shown} | {worst:.0%} |")
    return "\n".join(lines)


def beyond(records: list[dict[str, Any]]) -> str:
    """Compare runs with the estimate for their work."""
    lines = ["| run | CPU s per party: estimate | measured | megabytes: estimate | measured |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for r in records:
        cost = cost_of(Work(**r["work"]), 0.0)
        figures = cost.cpu, r["cpu"] / 2, cost.traffic / 1e6, r["megabytes"]
        lines.append(f"| {r['name']} | " + " | ".join(f"{x:,.0f}" for x in figures) + " |")
    return "\n".join(lines)


def far(records: list[dict[str, Any]]) -> str:
    """Compare durations on slow connections with what `dry-run` would have said."""
    lines = ["| run | estimate, s | measured, s | CPU s of both | of the estimate: CPU |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for r in records:
        cost = cost_of(Work(**r["work"]), 0.0)
        figures = cost.seconds(0.04, 100e6 / 8), r["seconds"], r["cpu"], 2 * cost.cpu
        lines.append(f"| {r['name']} | " + " | ".join(f"{x:.0f}" for x in figures) + " |")
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
    print(rows([r | r["work"] | r for r in of["cost"]], (*COST, "transfers", "numbers")))
    names = {r["name"] for r in records}
    print(
        "\nGigabytes are the largest memory of one party. Each run starts new engines, as a study"
    )
    print("does; imports and the comparison of identifiers are not counted. The work is that of")
    print("`isthmus_joint.shares.cost.Work`. Fitted to the runs with 2 parents and without delay,")
    print("for the estimate of `isthmus party dry-run`:\n")
    print(growth(of["cost"]))
    print("\nThe estimate, which counts transfers and numbers, beside what was measured:\n")
    print(beyond([r for r in of["cost"] if "Mbit/s" not in r["name"]]))
    slow = [r for r in of["cost"] if "Mbit/s" in r["name"]]
    if slow:
        print("\n## 40 ms per round trip, 100 Mbit/s\n")
        print("A relay delays each direction by 20 ms and limits it. Nothing else of weight ran.\n")
        print(far(slow))
    sizes = [f"k2 n={n} m={m} u=2" for m in (8, 20, 37) for n in (1_000, 10_000, 100_000)]
    sizes += ["k2 n=10000000 m=5 u=2", "k2 n=1000000 m=37 u=2"]
    missing = [x for x in (*sizes, *NETWORKS, "products side by side") if x not in names]
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
        print(rows(of["network"], (*columns, *COST[:3], "messages")))
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
