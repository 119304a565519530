"""Write the results of run.py as tables of Markdown.

python benchmarks/vertical/table.py > benchmarks/results/vertical.md
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results" / "vertical.jsonl"
NETWORKS = ("asia", "sachs", "child", "alarm")
COST = ("seconds", "cpu", "megabytes", "messages", "programs")


def rows(records: list[dict[str, Any]], columns: tuple[str, ...]) -> str:
    lines = ["| run | " + " | ".join(columns) + " |", "| --- |" + " ---: |" * len(columns)]
    for record in records:
        cells = [record.get(c, "") for c in columns]
        shown = [f"{c:,}" if isinstance(c, int | float) else str(c) for c in cells]
        lines.append(f"| {record['name']} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main() -> None:
    records = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    of = {
        k: [r for r in records if r["kind"] == k] for k in ("cost", "problem", "network", "product")
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
    sizes = [f"k2 n={n} m={m}" for m in (8, 20, 37) for n in (1_000, 10_000, 100_000)]
    late = [f"k2 n=1000 m={m}, {t} ms" for t in (20, 100) for m in (8, 20)]
    missing = [x for x in (*sizes, *late, *NETWORKS, "paillier product") if x not in names]
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
        print(rows(of["product"], ("tables", "cpu", "seconds", "megabytes", "messages")))


if __name__ == "__main__":
    main()
