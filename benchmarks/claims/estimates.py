"""Share of 95% intervals that contain the truth, for each answer in numbers and each violation.

    python benchmarks/claims/estimates.py [--tables 40] [--rows 500]
    python benchmarks/claims/estimates.py --clean 50

The violations and the answers are in ``tests/claims/estimates.py``. Writes a line per cell to
results/estimates.jsonl, where a run that was stopped continues, and results/estimates.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.claims.estimates import (
    ANSWERS,
    BROKEN,
    CLEAN,
    KNOWN_GAPS,
    LEAST_COVERED,
    NOT_ASKED,
    ask,
    covered,
)

RESULT = Path(__file__).parents[1] / "results" / "estimates.md"
CELLS = RESULT.with_suffix(".jsonl")
CLEAN_ROWS = (100, 300, 1000, 3000)


def cell(broken: Any, answer: str, tables: int, rows: int) -> dict[str, float]:
    """Ask for one answer in tables with one violation."""
    own = [covered(broken, answer, seed, rows) for seed in range(tables)]
    plain, noted = np.mean(own, axis=0)
    held = np.mean([1.0 if noted else inside for inside, noted in own])
    return {"covered": plain, "noted": noted, "held": held}


def alarms(broken: Any, answer: str, tables: int) -> dict[str, float]:
    """Count notes with an answer that describes its table."""
    own = [ask(broken, answer, seed, n).warns for n in CLEAN_ROWS for seed in range(tables)]
    return {"alarms": sum(own), "asked": len(own)}


def page(cells: list[dict[str, Any]]) -> list[str]:
    """Return the lines of the result."""
    cut = {(c["violation"], c["answer"]): c for c in cells if "held" in c}
    clean = {(c["violation"], c["answer"]): c for c in cells if "alarms" in c}
    sizes = {answer: (c["tables"], c["rows"]) for (_, answer), c in cut.items()}
    heads = [f"{a}, {sizes[a][0]} tables" if a in sizes else f"{a}, not run" for a in ANSWERS]
    lines = [f"| violation | {' | '.join(heads)} |", "| --- |" + " --- |" * len(ANSWERS)]
    failing = []
    for broken in BROKEN:
        row = []
        for answer in ANSWERS:
            key = (broken.name, answer)
            own = cut.get(key)
            row.append("")
            if own is None:
                continue
            note = f", note in {own['noted']:.0%}" if broken.note else ""
            row[-1] = f"{own['covered']:.0%}{note}" + ("*" if key in KNOWN_GAPS else "")
            if own["held"] < LEAST_COVERED and key not in KNOWN_GAPS:
                failing.append(f"{broken.name}, {answer}: {own['held']:.0%}.")
        lines.append(f"| {broken.name} | {' | '.join(row)} |")
    gaps = KNOWN_GAPS.items()
    minutes = sum(c["seconds"] for c in cells) / 60
    notes = [
        f"| {name} |" + "".join(_alarms(clean.get((name, a))) for a in ANSWERS) for name in CLEAN
    ]
    false, asked = (sum(c[k] for c in clean.values()) for k in ("alarms", "asked"))
    runs: dict[tuple[int, int], list[str]] = {}
    for answer, size in sizes.items():
        runs.setdefault(size, []).append(f'"{answer}"' if " " in answer else answer)
    command = ", ".join(
        f"`python benchmarks/claims/estimates.py --tables {n} --rows {rows} --answers "
        f"{' '.join(names)}`"
        for (n, rows), names in runs.items()
    )
    checked = " ".join(
        [str(next((c["tables"] for c in clean.values()), 0)), "--answers"]
        + [f'"{a}"' if " " in a else a for a in ANSWERS if any(a == k[1] for k in clean)]
    )
    text = (
        "Share of 95% intervals that contain the truth, in tables with a known graph: of an "
        "effect, of the mean of a query with `do=`, of draws of a posterior, of y in rows that "
        "were left out, and of hidden values of y in completed tables. Known gaps have a star, "
        "and empty cells were not run or have no such answer."
    )
    told = (
        "Answers with a note, of tables that the default models describe, with "
        f"{', '.join(f'{n:,}' for n in CLEAN_ROWS)} rows: {false} of {asked:,}."
    )
    return [
        "# Answers in numbers on tables that break assumptions",
        "",
        f"{command} and `--clean {checked}` ({minutes:.0f} minutes of CPU time)",
        "",
        text,
        "",
        *lines,
        "",
        *(f"- {name}, {answer}: {why} ({share:.0%})." for (name, answer), (share, why) in gaps),
        "",
        f"Cells below {LEAST_COVERED:.0%} without a note that are no known gaps: "
        + (" ".join(failing) or "none."),
        "",
        "## False alarms",
        "",
        told,
        "",
        f"| table | {' | '.join(ANSWERS)} |",
        "| --- |" + " --- |" * len(ANSWERS),
        *notes,
    ]


def _alarms(own: dict[str, Any] | None) -> str:
    return " |" if own is None else f" {own['alarms']} of {own['asked']} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--clean", type=int, default=0, help="tables per number of rows")
    parser.add_argument("--answers", nargs="+", default=list(ANSWERS), choices=list(ANSWERS))
    options = parser.parse_args()
    cells = [json.loads(line) for line in CELLS.read_text().splitlines()] if CELLS.exists() else []
    about = (
        {"tables": options.clean, "rows": "clean"}
        if options.clean
        else {"tables": options.tables, "rows": options.rows}
    )
    for answer in options.answers:
        for broken in BROKEN:
            known = {"violation": broken.name, "answer": answer, **about}
            left_out = (broken.name, answer) in NOT_ASKED or (
                options.clean and (broken.name not in CLEAN or answer == "imputed")
            )
            if left_out or any(known.items() <= each.items() for each in cells):
                continue
            begin = time.process_time()
            if options.clean:
                found = alarms(broken, answer, options.clean)
            else:
                found = cell(broken, answer, options.tables, options.rows)
            cells.append(known | found | {"seconds": round(time.process_time() - begin, 1)})
            print(cells[-1], flush=True)
            with CELLS.open("a") as file:
                file.write(json.dumps(cells[-1]) + "\n")
    RESULT.write_text("\n".join(page(cells)) + "\n")


if __name__ == "__main__":
    main()
