"""Share of 95% intervals that contain the truth, for each answer in numbers and each violation.

    python benchmarks/claims/estimates.py [--tables 40] [--rows 500]

The violations and the answers are in ``tests/claims/estimates.py``. Writes results/estimates.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.claims.estimates import ANSWERS, BROKEN, KNOWN_GAPS, LEAST_COVERED, NOT_ASKED, covered

RESULT = Path(__file__).parents[1] / "results" / "estimates.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--rows", type=int, default=500)
    options = parser.parse_args()
    begin = time.process_time()
    lines = [f"| violation | {' | '.join(ANSWERS)} |", "| --- |" + " --- |" * len(ANSWERS)]
    failing = []
    for broken in BROKEN:
        cells = []
        for answer in ANSWERS:
            key = (broken.name, answer)
            if key in NOT_ASKED:
                cells.append("")
                continue
            own = [covered(broken, answer, seed, options.rows) for seed in range(options.tables)]
            share = np.mean([1.0 if noted else inside for inside, noted in own])
            plain, noted = np.mean(own, axis=0)
            cells.append(
                f"{plain:.0%}"
                + (f", note in {noted:.0%}" if broken.note else "")
                + ("*" if key in KNOWN_GAPS else "")
            )
            if share < LEAST_COVERED and key not in KNOWN_GAPS:
                failing.append(f"{broken.name}, {answer}: {share:.0%}.")
        lines.append(f"| {broken.name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    minutes = (time.process_time() - begin) / 60
    arguments = f"--tables {options.tables} --rows {options.rows}"
    gaps = KNOWN_GAPS.items()
    reasons = [f"- {name}, {answer}: {why} ({share:.0%})." for (name, answer), (share, why) in gaps]
    text = (
        f"Share of 95% intervals that contain the truth, in {options.tables} tables of "
        f"{options.rows:,} rows with a known graph: of an effect, of the mean of a query with "
        "`do=`, of draws of a posterior, of y in rows that were left out, and of hidden values "
        "of y in completed tables. Known gaps have a star."
    )
    below = f"Cells below {LEAST_COVERED:.0%} without a note that are no known gaps: " + (
        " ".join(failing) or "none."
    )
    page = [
        "# Answers in numbers on tables that break assumptions",
        "",
        f"`python benchmarks/claims/estimates.py {arguments}` ({minutes:.0f} minutes of CPU time)",
        "",
        text,
        "",
        *lines,
        "",
        *reasons,
        "",
        below,
    ]
    RESULT.write_text("\n".join(page) + "\n")


if __name__ == "__main__":
    main()
