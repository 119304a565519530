"""Choose the constants with which noisy statistics become valid ones, on random networks.

    python benchmarks/privacy/tune.py [--seeds 1]

Accuracy: for every noisy sum, all candidates are tried on the same noise. The best one has the
smallest mean of SHD divided by the number of true edges, over all networks, numbers of rows and ε.

Prediction, for the constants of the package: SHD minus the SHD of the same search on as many rows
without noise as the statistics are said to be worth, divided by the number of true edges.

Range, for the constants of the package: how often the SHD is at most that of the same search on a
fraction of these rows without noise.

Warning, for the constants of the package: how often noise costs more than a fifth of the true edges
(against the same search without noise) when there is a warning, and when there is none.

The tables are written to benchmarks/results/privacy-tuning.md.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections import defaultdict

import numpy as np
from problems import GRID, ROOT, ROWS, TUNING, noisy_total, without_noise

from isthmus.joint.noise import counts

MODULES = {"tables": counts}
CANDIDATES = {
    "tables": {"RARE": (0.3, 1.0, 3.0), "QUANTILE": (0.75, 0.9, 1.0)},
}
FACTORS = (1, 3, 10, 30)
EPSILONS = (0.5, 2.0, 10.0)
SHARES = (0.01, 0.03, 0.1, 0.3, 0.6)
PER_VARIABLE = (3, 10, 30, 100, 300)
LOST = 0.2
FIRST_SEED = 100


def settings(kind):
    """Set the constants of a module to each combination in turn, and then back."""
    module, candidates = MODULES[kind], CANDIDATES[kind]
    own = {name: getattr(module, name) for name in candidates}
    for values in itertools.product(*candidates.values()):
        chosen = dict(zip(candidates, values, strict=True))
        vars(module).update(chosen)
        yield ", ".join(f"{n} = {v:g}" for n, v in chosen.items()), chosen == own
    vars(module).update(own)


def runs_of(name, seeds):
    """Yield every run of a network."""
    kind = next(k for k in CANDIDATES if name.startswith(k))
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        problem = TUNING[name](max(ROWS), seed)
        edges, rng = len(problem.dag.edges), np.random.default_rng(seed)
        releases = {epsilon: problem.release(epsilon) for epsilon in EPSILONS}
        sums = {n: releases[2.0].integers(problem.rows[:n]) for n in GRID}
        exact = [problem.shd(without_noise(releases[2.0], s).statistic)[0] for s in sums.values()]
        for n, release in itertools.product(ROWS, releases.values()):
            total, scale = noisy_total(release, sums[n], rng)
            if problem.is_discrete:  # does not depend on the candidates
                valid = release.valid_tables(total)
                release.valid_tables = lambda _, valid=valid: valid
            for candidate, is_own in settings(kind):
                shd, _ = problem.shd(release.estimate(total, scale).statistic)
                run = {"kind": kind, "candidate": candidate, "error": shd / edges, "own": is_own}
                if is_own:
                    worth = release.estimate(total, scale).worth
                    read = np.interp(math.log(worth), np.log(GRID), exact)
                    run["bias"] = (shd - read) / edges
                    run["covered"] = {
                        f: shd <= np.interp(math.log(worth / f), np.log(GRID), exact)
                        for f in FACTORS
                    }
                    run["lost"] = (shd - exact[GRID.index(n)]) / edges
                    run["share"] = worth / n
                    run["per variable"] = worth / len(problem.schema)
                yield run
            vars(release).pop("valid_tables", None)


def render(runs):
    text = ["# Constants of noisy statistics", "", "`python benchmarks/privacy/tune.py`"]
    for kind in CANDIDATES:
        errors = defaultdict(list)
        for run in runs:
            if run["kind"] == kind:
                errors[run["candidate"]].append(run["error"])
        text += ["", f"## {kind}", "", "| constants | mean of SHD / true edges |", "| --- | --- |"]
        ranked = sorted(errors, key=lambda c, e=errors: np.mean(e[c]))
        text += [f"| {c} | {np.mean(errors[c]):.3f} |" for c in ranked]
        mine = [r for r in runs if r["kind"] == kind and r["own"]]
        bias = np.array([r["bias"] for r in mine])
        text += ["", "| SHD − predicted, / true edges: mean | mean absolute |", "| --- | --- |"]
        text.append(f"| {bias.mean():+.3f} | {np.abs(bias).mean():.3f} |")
    mine = [r for r in runs if r["own"]]
    text += ["", "## SHD at most that of a fraction of the rows", ""]
    text += ["| fraction | runs |", "| --- | --- |"]
    text += [f"| 1/{f} | {_share([r['covered'][f] for r in mine])} |" for f in FACTORS]
    lost = np.array([r["lost"] > LOST for r in mine])
    for key, thresholds in (("share", SHARES), ("per variable", PER_VARIABLE)):
        text += ["", f"## Warning below a worth, as {key}", ""]
        text += ["| worth | lost edges if warned | if not | warned |", "| --- " * 4 + "|"]
        for threshold in thresholds:
            warned = np.array([r[key] < threshold for r in mine])
            cells = [f"{threshold:g}", _share(lost[warned]), _share(lost[~warned]), _share(warned)]
            text.append("| " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def _share(flags):
    return f"{np.mean(flags):.0%}" if len(flags) else "–"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", default=list(CANDIDATES))
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    runs = []
    for name in TUNING:
        if name.startswith(tuple(options.only)):
            begin = time.process_time()
            runs += runs_of(name, options.seeds)
            print(name, f"{time.process_time() - begin:.0f} CPU seconds", flush=True)
    text = render(runs)
    (ROOT / "benchmarks" / "results" / "privacy-tuning.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
