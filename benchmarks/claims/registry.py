"""Share of tables in which each answer about graphs holds, for each violated assumption.

    python benchmarks/claims/registry.py [--tables 5] [--rows 300 1000 5000 20000]

The violations are in ``tests/claims/violations.py``, and what counts as holding is in
``tests/claims/registry.py``. Writes results/registry.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.claims.registry import (
    ANSWERS,
    KNOWN_GAPS,
    LEAST_TABLES,
    LIKELY,
    MOST_FALSE,
    Verdict,
    judge,
    known_gap,
)
from tests.claims.violations import VIOLATIONS

RESULT = Path(__file__).parents[1] / "results" / "registry.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000, 5000, 20_000])
    options = parser.parse_args()
    begin = time.process_time()
    lines = [
        f"| violation | {' | '.join(ANSWERS)} | with a note | true edges in the graph |",
        "| --- |" + " --- |" * (len(ANSWERS) + 2),
    ]
    failing = []
    for violation in VIOLATIONS:
        verdicts: dict[str, list[Verdict]] = defaultdict(list)
        for answer in ANSWERS:
            for rows in options.rows:
                own = [judge(violation, answer, seed, rows) for seed in range(options.tables)]
                share = float(np.mean([verdict.holds for verdict in own]))
                if share < LEAST_TABLES and not known_gap(violation, answer, rows):
                    wrong, stated = (sum(getattr(v, k) for v in own) for k in ("wrong", "stated"))
                    failing.append(
                        f"| {violation.name} | {answer} | {rows:,} | {share:.0%} | "
                        f"{wrong} of {stated} |"
                    )
                verdicts[answer] += own
        cells = [
            f"{np.mean([v.holds for v in verdicts[answer]]):.0%}"
            + ("*" if (violation.name, answer) in KNOWN_GAPS else "")
            for answer in ANSWERS
        ]
        graph = verdicts["graph"]
        cells += [f"{np.mean([v.noted for v in graph]):.0%}" if violation.note else ""]
        cells += [f"{np.mean([v.found for v in graph]):.0%}"]
        lines.append(f"| {violation.name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    minutes = (time.process_time() - begin) / 60
    sizes = ", ".join(f"{rows:,}" for rows in options.rows)
    arguments = f"--tables {options.tables} --rows {' '.join(map(str, options.rows))}"
    text = (
        f"Share of tables in which an answer holds: {options.tables} tables of each of {sizes} "
        "rows. The graph, the posterior (pairs with a probability above "
        f"{LIKELY:g}), the bootstrap (pairs in more than {LIKELY:.0%} of 20 replicates) and the "
        f"PAG of `BossFCI` hold if at most {MOST_FALSE:.0%} of the pairs of columns are joined "
        "falsely; `solution.directions.determined` holds if at most "
        f"{MOST_FALSE:.0%} of its directions are wrong. What a note on the violation names does "
        "not count as wrong. Known gaps have a star."
    )
    page = [
        "# Answers about graphs on tables that break assumptions",
        "",
        f"`python benchmarks/claims/registry.py {arguments}` ({minutes:.0f} minutes of CPU time)",
        "",
        text,
        "",
        *lines,
        "",
        f"Cells below {LEAST_TABLES:.0%} at one number of rows that are no known gaps:",
        "",
        "| violation | answer | rows | tables | wrong |",
        "| --- | --- | --- | --- | --- |",
        *failing,
    ]
    RESULT.write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main()
