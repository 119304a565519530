"""Accuracy of default searches against the budget of differential privacy.

    python benchmarks/privacy/accuracy.py [--only asia sachs] [--again] [--render]

For networks on which nothing was tuned, `REPEATS` graphs or samples each, n rows and a budget ε at
δ = 1e-6, with three sites of which two are honest:

shd
    SHD between the equivalence classes of the learned and of the true graph.
worth
    How many rows without noise would be as informative, as the result of a study says.
predicted
    SHD of the same search on so many rows without noise: what the result promises. It is read from
    the mean of such searches over all graphs or samples, on `GRID` numbers of rows.

Networks are searched with at most two parents, and all tables of three variables are released.
Noisy moments are the subject of `whitening.py`.

Results are kept in benchmarks/results/privacy.json, and tables are written to privacy.md beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import time

import numpy as np
from problems import EPSILONS, GRID, REPORTED, ROOT, ROWS, noisy_total, without_noise

RESULTS = ROOT / "benchmarks" / "results"
REPEATS = 5
RANGE = 10
"""Results are compared with those of all predicted rows, and of this fraction of them."""

NONE = "none"
VERDICTS = {
    "better": "better than predicted",
    "within": f"as from all to 1/{RANGE} of the predicted rows",
    "worse": "worse",
}
SLACK = 0.5
"""An SHD is as predicted if it is beyond the predicted range by no more than this."""


def curve_of(name):
    """Return the SHD without noise, by number of rows, for each repetition."""
    curves = []
    for seed in range(REPEATS):
        problem = REPORTED[name](max(ROWS), seed)
        release = problem.release(1.0)
        exact = [without_noise(release, release.integers(problem.rows[:n])) for n in GRID]
        curves.append([problem.shd(e.statistic)[0] for e in exact])
    return curves


def runs_of(name, curves):
    """Yield every run of a network."""
    mean = np.mean(curves, axis=0)
    for seed, curve in enumerate(curves):
        rng = np.random.default_rng(seed)
        problem = REPORTED[name](max(ROWS), seed)
        releases = {epsilon: problem.release(epsilon) for epsilon in EPSILONS}
        known = {"name": name, "seed": seed, "true_edges": len(problem.dag.edges)}
        for n in ROWS:
            exact = releases[1.0].integers(problem.rows[:n])
            for epsilon, release in releases.items():
                estimate = release.estimate(*noisy_total(release, exact, rng))
                shd, false = problem.shd(estimate.statistic)
                predicted = np.interp(math.log(estimate.worth), np.log(GRID), mean)
                line = {"n": n, "epsilon": epsilon, "shd": shd, "false": false}
                line |= {"worth": estimate.worth, "predicted": round(float(predicted), 2)}
                yield known | line
            shd = curve[GRID.index(n)]
            yield known | {"n": n, "epsilon": NONE, "shd": shd, "worth": n, "predicted": shd}


def verdict(run, curves):
    """Compare the SHD with the range that the result predicts."""
    fewer = math.log(max(run["worth"] // RANGE, 1))
    most = np.interp(fewer, np.log(GRID), np.mean(curves[run["name"]], axis=0))
    if run["shd"] > most + SLACK:
        return "worse"
    return "better" if run["shd"] < run["predicted"] - SLACK else "within"


def table(mine):
    """A table of one network: mean SHD, and in brackets the predicted one."""
    header = [f"ε = {e:g}" for e in EPSILONS] + ["no noise"]
    lines = ["| rows | " + " | ".join(header) + " |", "| --- " * (len(header) + 1) + "|"]
    for n in ROWS:
        cells = [f"{n:,}"]
        for epsilon in (*EPSILONS, NONE):
            runs = [r for r in mine if (r["n"], r["epsilon"]) == (n, epsilon)]
            shd = f"{np.mean([r['shd'] for r in runs]):.1f}"
            predicted = f" ({np.mean([r['predicted'] for r in runs]):.1f})"
            cells.append(shd if epsilon == NONE else shd + predicted)
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def render(runs, curves):
    explained = (
        f"`python benchmarks/privacy/accuracy.py`: mean SHD of equivalence classes over {REPEATS} "
        "graphs or samples; δ = 1e-6, three sites of which two are honest. In brackets the SHD "
        "that the result predicts: that of the same search on as many rows without noise as the "
        "result says that its statistics are worth. The constants were chosen on other, random "
        "networks by `python benchmarks/privacy/tune.py`."
    )
    text = ["# Accuracy against the budget of differential privacy", "", explained]
    noisy = [r for r in runs if r["epsilon"] != NONE]
    text += ["", "| network | " + " | ".join(VERDICTS.values()) + " |", "| --- " * 4 + "|"]
    names = list(dict.fromkeys(r["name"] for r in runs))
    for name in (*names, "all"):
        mine = [r for r in noisy if name in (r["name"], "all")]
        found = [verdict(r, curves) for r in mine]
        shares = [f"{found.count(v) / len(found):.0%}" for v in VERDICTS]
        text.append(f"| {name} | " + " | ".join(shares) + " |")
    for name in names:
        mine = [r for r in runs if r["name"] == name]
        text += ["", f"## {name} ({mine[0]['true_edges']} edges)", "", *table(mine)]
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", default=list(REPORTED), choices=list(REPORTED))
    parser.add_argument("--again", action="store_true", help="also the searches without noise")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    path = RESULTS / "privacy.json"
    known = json.loads(path.read_text()) if path.exists() else {"without noise": {}, "runs": []}
    curves, runs = known["without noise"], known["runs"]
    for name in [] if options.render else options.only:
        begin = time.process_time()
        if name not in curves or options.again:
            curves[name] = curve_of(name)
        runs = [r for r in runs if r["name"] != name] + list(runs_of(name, curves[name]))
        runs.sort(key=lambda r: list(REPORTED).index(r["name"]))
        lines = json.dumps({"without noise": curves, "runs": runs})
        path.write_text(lines.replace('{"name"', '\n{"name"') + "\n")
        print(name, f"{time.process_time() - begin:.0f} CPU seconds", flush=True)
    (RESULTS / "privacy.md").write_text(render(runs, curves))


if __name__ == "__main__":
    main()
