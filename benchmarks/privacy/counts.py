"""Counts with noise: errors against the budget, false adjacencies, and how many rows are saved.

    python benchmarks/privacy/counts.py [--only asia child] [--tune | --render]

Stored networks of `problems.py`, three sites of which two are honest, δ = 1e-6. A run is one
sample of n rows and an ε:

shd, exact
    SHD between the equivalence classes of the learned and of the true graph, with noise and from
    exact counts of the same rows.
false
    Learned adjacencies that the true graph does not have.
worth
    How many rows without noise the counts are worth, as the result says.
before
    Mean SHD when all tables of three variables were released with the same noise, which two
    requests have replaced. Its figures are kept; they cannot be computed any more.

With --tune, constants of the package are varied one by one on the random networks of `problems.py`.

Results are kept in benchmarks/results/privacy-counts.json, and tables are written beside it.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from problems import EPSILONS, REPORTED, ROOT, TUNING

import isthmus as ist
from isthmus_joint.noise import statistics, structure

RESULTS = ROOT / "benchmarks" / "results"
NONE = "none"
SEEDS = range(5)
ROWS = {1_000: 5, 3_000: 5, 10_000: 5, 30_000: 5, 100_000: 5, 1_000_000: 2}
"""Numbers of rows, and how many samples of each."""

TUNED = {
    "SHARES": ((0.35, 0.65), (0.5, 0.5), (0.65, 0.35)),
    "FALSE_PAIRS": (0.01, 0.05, 0.2),
    "EARLY_EXPLAINED": (0.002, 0.02, 0.2),
    "TOLERANCE": (0.0, 0.5, 1.0),
    "MARGIN": (5.0, 10.0, 20.0),
}
TUNED_ROWS = (3_000, 10_000, 30_000)
TUNED_SEEDS = range(100, 103)


def runs_of(name, epsilons):
    """Yield every run of a network."""
    for n, samples in ROWS.items():
        for seed in SEEDS[:samples]:
            problem, rng = REPORTED[name](n, seed), np.random.default_rng(seed)
            known = {"part": "curves", "name": name, "n": n, "seed": seed}
            for epsilon in epsilons:
                estimate = problem.counts(n, epsilon, rng)
                shd, false = problem.shd(estimate.statistic)
                line = {"shd": shd, "false": false, "worth": estimate.worth}
                yield known | {"epsilon": epsilon} | line
            exact = ist.Counts.from_codes(problem.schema, problem.rows.T.astype(int))
            shd, false = problem.shd(exact)
            yield known | {"epsilon": NONE, "shd": shd, "false": false, "worth": n}


def tuned():
    """Yield the errors on random networks with each constant in turn."""
    problems = [
        (make(max(TUNED_ROWS), seed), seed) for make in TUNING.values() for seed in TUNED_SEEDS
    ]
    for constant, values in TUNED.items():
        modules = [m for m in (statistics, structure) if hasattr(m, constant)]
        own = getattr(modules[0], constant)
        for value in values:
            for module in modules:
                setattr(module, constant, value)
            found = []
            for (problem, seed), n in ((p, n) for p in problems for n in TUNED_ROWS):
                rng = np.random.default_rng(seed)
                shd, false = problem.shd(problem.counts(n, 1.0, rng).statistic)
                found.append((shd / len(problem.dag.edges), false / len(problem.schema)))
            shd, false = np.mean(found, axis=0).round(3).tolist()
            known = {"part": "tuning", "constant": constant, "value": str(value)}
            yield known | {"own": value == own, "shd": shd, "false": false}
            print(constant, value, shd, false, flush=True)
        for module in modules:
            setattr(module, constant, own)


def mean(runs, key):
    return float(np.mean([r[key] for r in runs])) if runs else float("nan")


def curve_table(runs, before, name):
    """A table of one network: mean SHD, and in brackets that of before."""
    header = [f"ε = {e:g}" for e in EPSILONS] + ["no noise"]
    lines = ["| rows | " + " | ".join(header) + " |", "| --- " * (len(header) + 1) + "|"]
    for n in ROWS:
        cells = [f"{n:,}"]
        for epsilon in (*EPSILONS, NONE):
            mine = [r for r in runs if (r["name"], r["n"], r["epsilon"]) == (name, n, epsilon)]
            old = before.get(name, {}).get(str(n), {}).get(str(epsilon))
            past = "" if old is None or epsilon == NONE else f" ({old:.1f})"
            cells.append(f"{mean(mine, 'shd'):.1f}{past}" if mine else "")
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def render(known):
    runs = [r for r in known["runs"] if r["part"] == "curves"]
    names = list(dict.fromkeys(r["name"] for r in runs))
    noisy = [r for r in runs if r["epsilon"] != NONE]
    worst = {name: worst_false(noisy, name) for name in names}
    text = [
        "# Counts with noise",
        "",
        (
            "`python benchmarks/privacy/counts.py`: mean SHD of equivalence classes over "
            f"{len(SEEDS)} samples (two of a million rows); δ = 1e-6, three "
            "sites of which two are honest. In "
            "brackets the SHD when all tables of three variables were released."
        ),
    ]
    for name in names:
        text += ["", f"## {name}", "", *curve_table(runs, known["before"], name)]
    text += ["", "## False adjacencies", ""]
    text += ["| network | per variable, over all runs | worst n and ε |", "| --- " * 3 + "|"]
    for name, (per, most, n, epsilon) in worst.items():
        text.append(f"| {name} | {per:.3f} | {most:.2f} ({n:,} rows, ε = {epsilon:g}) |")
    text += ["", "## Constants", "", "`--tune`, on random networks at ε = 1."]
    text += ["", "| constant | value | SHD / true edges | false adjacencies per variable |"]
    text.append("| --- " * 4 + "|")
    for r in known["runs"]:
        if r["part"] == "tuning":
            value = f"**{r['value']}**" if r["own"] else r["value"]
            text.append(f"| {r['constant']} | {value} | {r['shd']:.3f} | {r['false']:.3f} |")
    return "\n".join(text) + "\n"


def worst_false(runs, name):
    """False adjacencies per variable: the mean over all runs, and the largest mean of a cell."""
    size = len(REPORTED[name](10, 0).schema)
    mine = [r for r in runs if r["name"] == name]
    cells = {(r["n"], r["epsilon"]) for r in mine}
    most, n, epsilon = max(
        (mean([r for r in mine if (r["n"], r["epsilon"]) == c], "false") / size, *c) for c in cells
    )
    return mean(mine, "false") / size, most, n, epsilon


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", default=list(REPORTED), choices=list(REPORTED))
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    path = RESULTS / "privacy-counts.json"
    known = json.loads(path.read_text())
    if options.tune:
        fresh = list(tuned())
        known["runs"] = [r for r in known["runs"] if r["part"] != "tuning"] + fresh
    for name in [] if options.render or options.tune else options.only:
        begin = time.process_time()
        fresh = list(runs_of(name, EPSILONS))
        for run in fresh:
            past = known["before"].get(name, {}).get(str(run["n"]), {})
            run["before"] = past.get(str(run["epsilon"]))
        known["runs"] = [r for r in known["runs"] if r.get("name") != name] + fresh
        print(name, f"{time.process_time() - begin:.0f} CPU seconds", flush=True)
        path.write_text(json.dumps(known).replace('{"part"', '\n{"part"') + "\n")
    path.write_text(json.dumps(known).replace('{"part"', '\n{"part"') + "\n")
    (RESULTS / "privacy-counts.md").write_text(render(known))


if __name__ == "__main__":
    main()
