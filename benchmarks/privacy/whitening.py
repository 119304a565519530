"""Moments with noise: errors against the budget, false adjacencies, and the forecast.

    python benchmarks/privacy/whitening.py [--tune | --bounds | --levels | --render]

Gaussian graphs of `problems.py`, three sites of which two are honest, δ = 1e-6, bounds of four
standard deviations. A run is one graph, a number of rows n and an ε:

shd, exact
    SHD between the equivalence classes of the learned and of the true graph, with noise and from
    exact sums of the same rows.
false
    Learned adjacencies that the true graph does not have.
worth, forecast
    How many rows without noise the moments are worth, as the result says and as the study said
    beforehand.
promised
    SHD of exact sums of as many rows as the forecast says.
before
    SHD with noise on the products of the rows within their bounds, after Dwork et al. (2014), which
    whitening has replaced. Its figures are kept; they cannot be computed any more.

With --tune, constants of the package are varied one by one, where rows just suffice at ε = 1.
With --bounds, variables with exponential noise have narrower and wider bounds. With --levels, sites
have different levels; the other figures are those of products of all rows.

Results are kept in benchmarks/results/privacy-whitening.json, and tables are written beside it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections import defaultdict

import numpy as np
from problems import EPSILONS, GAUSSIAN, ROOT, ROWS, skewed

from isthmus_joint.noise import statistics, whitening
from isthmus_joint.noise.cost import forecast

RESULTS = ROOT / "benchmarks" / "results"
NONE = "none"
CURVES = ("gaussian10", "gaussian20")
SEEDS, MORE_SEEDS = range(5), range(10)
FEW_ROWS = {
    "gaussian10": (2_000, 3_000, 5_000, 10_000, 20_000),
    "gaussian20": (5_000, 10_000, 20_000, 200_000),
}
KINDS = GAUSSIAN | {"exponential10": skewed}
SKEWED_ROWS = (5_000, 20_000, 60_000, 200_000, 1_000_000)
SPREADS, BOUNDS_ROWS, BOUNDS_SEEDS = (4.0, 6.0, 8.0, 20.0), (20_000, 200_000, 1_000_000), range(5)
GRID_ROWS = (300, 1_000, 3_000, 10_000, 30_000)
GRID_EPSILONS = (0.05, 0.2, 0.5, 1.0, 3.0, 10.0)
GRID_SEEDS = range(100, 104)
SLACK = 0.5
LEVEL_SITES, LEVELS, LEVEL_ROWS, LEVEL_SEEDS = (3, 10, 20, 30), (0.0, 0.5), 10_000, range(60)

TUNED_ROWS = {"gaussian10": (2_000, 2_500, 3_500), "gaussian20": (4_500, 6_000)}
TUNED_SEEDS = range(200, 208)


def rounds(early, share):
    """Shares of the budget: the survey, rounds that whiten, and the last one."""
    return {"SHARES": (0.05, *((share / early,) * early), 0.95 - share), "LAST": early + 1}


CANDIDATES = {
    "as in the package": {},
    **{f"{k} rounds that whiten": rounds(k, 0.4) for k in (2, 4, 5, 7, 9)},
    **{f"share {e:g} of the budget for them": rounds(6, e) for e in (0.3, 0.5)},
    **{f"FLOOR = {v:g}": {"FLOOR": v} for v in (0.15, 0.5, 1.0)},
    **{f"EARLY_RADIUS = {v:g}": {"EARLY_RADIUS": v} for v in (0.3, 1.0)},
    **{f"LAST_RADIUS = {v:g}": {"LAST_RADIUS": v} for v in (0.7, 1.5)},
    **{f"LEAST = {v:g}": {"LEAST": v} for v in (0, 5, 20)},
}


def runs_of(part, name, seed, rows, epsilons):
    """Yield every run of a graph."""
    problem = KINDS[name](max(rows), seed)
    known = {"part": part, "name": name, "seed": seed, "d": len(problem.dag.nodes)}
    known |= {"true_edges": len(problem.dag.edges)}
    learned = {}

    def exact(n):
        if n not in learned:
            learned[n] = problem.shd(problem.exact(n))
        return learned[n]

    for n in rows:
        shd, none = exact(n)
        for epsilon in epsilons:
            rng = np.random.default_rng([seed, n, round(1000 * epsilon)])
            estimate = problem.moments(n, epsilon, rng)
            foreseen = forecast(problem.study(epsilon), n)
            noisy, false = problem.shd(estimate.statistic)
            line = {"n": n, "epsilon": epsilon, "shd": noisy, "false": false, "exact": shd}
            line |= {"worth": estimate.worth, "forecast": foreseen}
            yield known | line | {"promised": exact(foreseen)[0] if foreseen else None}
        yield known | {"n": n, "epsilon": NONE, "shd": shd, "false": none}


def all_runs():
    for name, seed in itertools.product(CURVES, SEEDS):
        yield from runs_of("curves", name, seed, ROWS, EPSILONS)
    for name, seed in itertools.product(CURVES, MORE_SEEDS):
        yield from runs_of("few rows", name, seed, FEW_ROWS[name], (1.0,))
    for seed in MORE_SEEDS:
        yield from runs_of("few rows", "exponential10", seed, SKEWED_ROWS, (1.0,))
    for name, seed in itertools.product(GAUSSIAN, GRID_SEEDS):
        yield from runs_of("grid", name, seed, GRID_ROWS, GRID_EPSILONS)


def tuned():
    """Yield the errors with each candidate."""
    for label, changes in CANDIDATES.items():
        own = [
            (m, n, getattr(m, n)) for m in (whitening, statistics) for n in changes if hasattr(m, n)
        ]
        for module, name, _ in own:
            setattr(module, name, changes[name])
        shd, false = [], []
        for name, seed in itertools.product(TUNED_ROWS, TUNED_SEEDS):
            problem = GAUSSIAN[name](max(TUNED_ROWS[name]), seed)
            for n in TUNED_ROWS[name]:
                rng = np.random.default_rng([seed, n])
                errors = problem.shd(problem.moments(n, 1.0, rng).statistic)
                shd.append(errors[0] / len(problem.dag.edges))
                false.append(errors[1] / len(problem.dag.nodes))
        for module, name, value in own:
            setattr(module, name, value)
        yield {"constants": label, "shd": float(np.mean(shd)), "false": float(np.mean(false))}


def in_bounds():
    """Yield runs with exponential noise and narrower or wider bounds."""
    for n, spread, seed in itertools.product(BOUNDS_ROWS, SPREADS, BOUNDS_SEEDS):
        problem, rng = skewed(n, seed, spread), np.random.default_rng([seed, n])
        estimate = problem.moments(n, 1.0, rng)
        line = {"n": n, "spread": spread, "seed": seed, "clipped": len(estimate.clipped)}
        yield line | {"false": problem.shd(estimate.statistic)[1] / len(problem.dag.nodes)}


def at_levels():
    """Yield runs of sites with different levels."""
    n = LEVEL_ROWS
    for sd, sites, seed in itertools.product(LEVELS, LEVEL_SITES, LEVEL_SEEDS):
        problem = GAUSSIAN["gaussian10"](n, seed).levelled(sites, sd, seed)
        line = {"sd": sd, "sites": sites, "seed": seed, "pooled": problem.shd(problem.exact(n))[0]}
        line["exact"], line["exact_false"] = problem.shd(problem.exact_within(n, sites))
        for name, within in (("noise_pooled", False), ("noise", True)):
            rng = np.random.default_rng([seed, n, 1000])
            estimate = problem.moments(n, 1.0, rng, sites, within=within)
            line[name], line[f"{name}_false"] = problem.shd(estimate.statistic)
        foreseen = forecast(problem.study(1.0, sites, within=True), n)
        yield line | {"worth": estimate.worth, "forecast": foreseen, "error": estimate.centres}


def levels_table(levels):
    text = ["", "## Sites of different levels", ""]
    text.append(
        f"`--levels`: `gaussian10` at ε = 1, {LEVEL_ROWS:,} rows, {len(LEVEL_SEEDS)} graphs. SHD, "
        "in brackets false adjacencies. Centres are wrong by about so many standard deviations; "
        "`learn` warns from 0.15 on."
    )
    text += ["", "| levels | sites | exact, all rows | noise, all rows | exact, within sites |"]
    text[-1] += " noise, within sites | centres | worth | forecast |"
    text.append("| --- " * 9 + "|")
    for (sd, sites), own in cells_of(levels, "sd", "sites").items():
        cells = [f"{mean(own, 'pooled'):.1f}"]
        cells += [
            f"{mean(own, name):.1f} ({mean(own, name + '_false'):.1f})"
            for name in ("noise_pooled", "exact", "noise")
        ]
        worth = f"{mean(own, 'error'):.2f} | {mean(own, 'worth'):,.0f} | {own[0]['forecast']:,}"
        text.append(f"| {sd:g} | {sites} | {' | '.join(cells)} | {worth} |")
    return text


def mean(runs, key):
    return float(np.mean([r[key] for r in runs]))


def cells_of(runs, *keys):
    cells = defaultdict(list)
    for run in runs:
        cells[tuple(run[k] for k in keys)].append(run)
    return cells


def curves(runs):
    text = []
    for name in CURVES:
        mine = [r for r in runs if (r["part"], r["name"]) == ("curves", name)]
        cells = cells_of(mine, "n", "epsilon")
        edges = next(iter(cells.values()))[0]["true_edges"]
        text += ["", f"## {name} ({edges} edges)", ""]
        text.append("| rows | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " | no noise |")
        text.append("| --- " * (len(EPSILONS) + 2) + "|")
        for n in ROWS:
            line = [f"{n:,}"]
            for epsilon in EPSILONS:
                own = cells[n, epsilon]
                line.append(f"**{mean(own, 'shd'):.1f}** ({mean(own, 'before'):.1f})")
            line.append(f"{mean(cells[n, NONE], 'shd'):.1f}")
            text.append("| " + " | ".join(line) + " |")
    return text


def few_rows(runs):
    text = ["", "## Few rows at ε = 1", "", f"Means over {len(MORE_SEEDS)} graphs.", ""]
    text.append("| network | rows | SHD | exact sums | false adjacencies | worth | forecast |")
    text.append("| --- " * 7 + "|")
    cells = cells_of(
        [r for r in runs if r["part"] == "few rows" and r["epsilon"] == 1.0], "name", "n"
    )
    for (name, n), own in cells.items():
        figures = f"{mean(own, 'shd'):.1f} | {mean(own, 'exact'):.1f} | {mean(own, 'false'):.1f}"
        rows = f"{mean(own, 'worth'):,.0f} | {own[0]['forecast']:,}"
        text.append(f"| {name} | {n:,} | {figures} | {rows} |")
    return text


def false_edges(runs):
    grid = [r for r in runs if r["part"] == "grid"]
    text = ["", "## False adjacencies per variable", ""]
    text.append(f"Means over {len(GAUSSIAN)} kinds of graphs, {len(GRID_SEEDS)} of each.")
    epsilons = (*GRID_EPSILONS, NONE)
    header = [f"ε = {e:g}" for e in GRID_EPSILONS] + ["no noise"]
    text += ["", "| rows | " + " | ".join(header) + " |", "| --- " * (len(header) + 1) + "|"]
    for n in GRID_ROWS:
        shares = [
            [r["false"] / r["d"] for r in grid if (r["n"], r["epsilon"]) == (n, e)]
            for e in epsilons
        ]
        text.append(f"| {n:,} | " + " | ".join(f"{np.mean(s):.2f}" for s in shares) + " |")
    return text


def forecasts(runs):
    noisy = [r for r in runs if r["epsilon"] != NONE]
    said = [r for r in noisy if r["forecast"]]
    more = np.mean([r["worth"] >= r["forecast"] for r in said])
    better = np.mean([r["shd"] <= r["promised"] + SLACK for r in said])
    ratio = np.median([r["worth"] / r["forecast"] for r in said])
    nothing = [r for r in noisy if not r["forecast"]]
    silent = np.mean([r["worth"] <= 1 for r in nothing])
    text = f"""
## Forecast

- In {len(said)} of {len(noisy)} runs the forecast is a number of rows. The result is worth at least
  as many in {more:.0%} of them, in the median {ratio:.2f} times as many.
- The SHD is at most that of exact sums of so many rows in {better:.0%} of them.
- In the other {len(nothing)} runs the forecast is that nothing can be learned. Nothing is learned
  in {silent:.0%} of them."""
    return text.splitlines()


def bounds_table(bounds):
    cells = cells_of(bounds, "n", "spread")
    text = ["", "## Bounds of skewed variables", ""]
    text.append(
        f"`--bounds`: `exponential10` at ε = 1, {len(BOUNDS_SEEDS)} graphs. False adjacencies per "
        "variable, and in how many of the runs the result warns of clipped values."
    )
    header = " | ".join(f"± {s:g} standard deviations" for s in SPREADS)
    text += ["", f"| rows | {header} |", "| --- " * (len(SPREADS) + 1) + "|"]
    for n in BOUNDS_ROWS:
        own = [cells[n, spread] for spread in SPREADS]
        line = [f"{mean(c, 'false'):.2f} ({sum(r['clipped'] > 0 for r in c)})" for c in own]
        text.append(f"| {n:,} | " + " | ".join(line) + " |")
    return text


def constants(candidates):
    rows = ", ".join(f"{n:,}" for n in itertools.chain(*TUNED_ROWS.values()))
    text = ["", "## Constants", ""]
    text.append(f"`--tune`: {len(TUNED_SEEDS)} other graphs of each kind, ε = 1, and {rows} rows.")
    text += ["", "| constants | SHD / true edges | false adjacencies per variable |"]
    text.append("| --- | --- | --- |")
    return text + [f"| {c['constants']} | {c['shd']:.2f} | {c['false']:.3f} |" for c in candidates]


def render(runs, bounds, levels, candidates):
    text = f"""# Moments with noise, by whitening in rounds

`python benchmarks/privacy/whitening.py`: three sites of which two are honest, δ = 1e-6, bounds of
four standard deviations; SHD of equivalence classes. The first tables are means over {len(SEEDS)}
graphs; in brackets the mechanism that whitening has replaced."""
    parts = (curves, few_rows, false_edges, forecasts)
    lines = [text, *itertools.chain(*(part(runs) for part in parts))]
    lines += [*levels_table(levels), *bounds_table(bounds), *constants(candidates)]
    return "\n".join(lines) + "\n"


def again(runs):
    """Repeat all runs; figures of the mechanism before are kept."""
    keys = ("part", "name", "seed", "n", "epsilon")
    before = {tuple(r[k] for k in keys): r["before"] for r in runs if "before" in r}
    for run in all_runs():
        place = tuple(run[k] for k in keys)
        yield run | ({"before": before[place]} if place in before else {})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--levels", action="store_true")
    parser.add_argument("--render", action="store_true")
    options = parser.parse_args()
    path = RESULTS / "privacy-whitening.json"
    known = json.loads(path.read_text())
    begin, runs, candidates = time.process_time(), known["runs"], known.get("constants", [])
    bounds, levels = known.get("bounds", []), known.get("levels", [])
    if options.tune:
        candidates = list(tuned())
    elif options.bounds:
        bounds = list(in_bounds())
    elif options.levels:
        levels = list(at_levels())
    elif not options.render:
        runs = list(again(runs))
    known = {"constants": candidates, "bounds": bounds, "levels": levels, "runs": runs}
    lines = json.dumps(known)
    path.write_text(lines.replace('{"part"', '\n{"part"') + "\n")
    print(f"{time.process_time() - begin:.0f} CPU seconds", flush=True)
    (RESULTS / "privacy-whitening.md").write_text(render(runs, bounds, levels, candidates))


if __name__ == "__main__":
    main()
