"""Errors of two-way tables of synthetic rows of Adult, in total variation.

python benchmarks/privacy/synthesis.py
"""

from __future__ import annotations

import csv
import gzip
import os
from itertools import combinations
from pathlib import Path

import numpy as np

from isthmus_joint import synthesise
from isthmus_joint.noise import synthesis

DATA = Path(os.environ.get("ISTHMUS_DATA", "../shared/data")) / "uci"
CATEGORIES = (
    *("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex"),
    "income",
)
BOUNDS = {"age": (16, 95), "hours-per-week": (0, 100)}


def described() -> tuple[list[str], dict[str, list[str]]]:
    """Return the names of all columns, and the levels of those with categories."""
    lines = (DATA / "adult.names").read_text().splitlines()
    found = [line.split(":") for line in lines if ":" in line and not line.startswith("|")]
    levels = {n: [x.strip(" .") for x in v.split(",")] for n, v in found}
    return [*levels, "income"], levels | {"income": ["<=50K", ">50K"]}


def main() -> None:
    """Print the errors of each ε, of rows drawn again, and of independent columns."""
    names, levels = described()
    with gzip.open(DATA / "adult.data.gz", "rt") as file:
        rows = [[x.strip() for x in row] for row in csv.reader(file) if len(row) == len(names)]
    columns = {n: np.array([row[i] for row in rows]) for i, n in enumerate(names)}
    own = {n: levels[n] for n in CATEGORIES}
    table = {n: columns[n] for n in own} | {n: columns[n].astype(float) for n in BOUNDS}
    for epsilon in (0.5, 1.0, 5.0):
        errors = []
        for _ in range(5):
            made = synthesise(table, epsilon, levels=own, bounds=BOUNDS)
            errors.append(list(made.errors(table).values()))
        print(f"ε = {epsilon}: mean {np.mean(errors):.4f}, largest {np.max(errors):.4f}")
    binnings = synthesis.binnings_of(own, BOUNDS, 16)
    codes, sizes = synthesis.codes_of(table, binnings), [b.size for b in binnings]
    again = codes[np.random.default_rng(0).integers(0, len(codes), len(codes))]
    drawn, apart = [], []
    for pair in combinations(range(len(sizes)), 2):
        truth = synthesis.shares_of(codes, pair, sizes)
        drawn.append(synthesis.distance_of(truth, synthesis.shares_of(again, pair, sizes)))
        apart.append(synthesis.distance_of(truth, np.outer(truth.sum(1), truth.sum(0))))
    print(f"{len(codes):,} rows; drawn again: mean {np.mean(drawn):.4f}, {np.max(drawn):.4f}")
    print(f"independent: mean {np.mean(apart):.4f}, largest {np.max(apart):.4f}")


if __name__ == "__main__":
    main()
