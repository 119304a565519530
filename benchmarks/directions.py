"""Directions from non-Gaussian noise: errors and time, beside the package `lingam`.

    python benchmarks/directions.py ours --nodes 10 30 100 --first 100
    PYTHONPATH=src PEER/bin/python benchmarks/directions.py peer --nodes 10 30 100 --first 100
    python benchmarks/directions.py calibration
    python benchmarks/directions.py render --first 100
    python benchmarks/directions.py checks --seeds 100

Random DAGs with twice as many edges as nodes, weights between 0.5 and 2 of either sign, noise of
variance 1, and 1,000 rows. ``ours`` writes tables and graphs to a folder, which ``peer`` reads in
an environment with `lingam`. One core. Cases are kept in benchmarks/results/lingam.jsonl. Seeds
below 100 were seen when the method was chosen.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
FOLDER = Path("/tmp/lingam-cases")
ROWS = 1000
NOISE = {
    "uniform": lambda rng, n: rng.uniform(-(3**0.5), 3**0.5, n),
    "exponential": lambda rng, n: rng.exponential(size=n) - 1.0,
    "laplace": lambda rng, n: rng.laplace(size=n) / 2**0.5,
    "normal": lambda rng, n: rng.normal(size=n),
}


def make(kind, d, seed):
    from isthmus import simulate

    dag = simulate.erdos_renyi(d, 2 * d, seed=seed)
    rng = np.random.default_rng((seed, d))
    columns = {}
    for node in dag.topological_order():
        columns[node] = NOISE[kind](rng, ROWS)
        for parent in dag.parents(node):
            weight = rng.uniform(0.5, 2.0) * rng.choice([-1, 1])
            columns[node] = columns[node] + weight * columns[parent]
    return dag, {name: columns[name] for name in dag.nodes}


def keep(method, kind, d, seed, truth, found, cpu):
    """Keep a case; ``found[i, j] = 1`` without ``found[j, i]`` is an edge from i to j."""
    both = (found | found.T) & (truth | truth.T)
    row = {
        "method": method,
        "noise": kind,
        "d": d,
        "seed": seed,
        "cpu": cpu,
        "missing": int(np.triu((truth | truth.T) & ~(found | found.T)).sum()),
        "extra": int(np.triu((found | found.T) & ~(truth | truth.T)).sum()),
        "reversed": int((found & ~found.T & truth.T & both).sum()),
        "open": int(np.triu(found & found.T & both).sum()),
    }
    with (RESULTS / "lingam.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(row, flush=True)


def ours(options):
    import duckdb
    import pandas as pd

    import isthmus as ist

    warnings.simplefilter("ignore")
    FOLDER.mkdir(exist_ok=True)
    for d in options.nodes:
        for kind in options.noise:
            for seed in range(options.first, options.first + options.seeds):
                dag, table = make(kind, d, seed)
                truth = dag.adjacency()
                rows = np.column_stack([*table.values()])
                np.savez(FOLDER / f"{kind}-{d}-{seed}", rows=rows, truth=truth)
                lingam = ist.LiNGAM(hidden_causes=False)  # as DirectLiNGAM assumes
                searches = {"LiNGAM": lingam, "Boss": ist.Boss(starts=4)}
                solutions = {}
                for name, search in searches.items():
                    begin = time.process_time()
                    solutions[name] = ist.learn(table, search=search)
                    cpu = time.process_time() - begin
                    keep(name, kind, d, seed, truth, solutions[name].cpdag.adjacency(), cpu)
                if seed == options.first and d <= 30:
                    frame = pd.DataFrame(table)
                    parts = [frame[:300], frame[300:500], frame[500:]]
                    columns = 4 * d + d * (d - 1) // 2  # values, powers and products
                    sites = [ist.Federation.simulate(parts)] if 10 * columns <= ROWS else []
                    for source in (duckdb.connect().from_df(frame), *sites):
                        other = ist.learn(source, search=lingam)
                        assert other.cpdag == solutions["LiNGAM"].cpdag, (kind, d, source)


def peer(options):
    import lingam

    warnings.simplefilter("ignore")
    for d in options.nodes:
        for kind in options.noise:
            for seed in range(options.first, options.first + options.seeds):
                case = np.load(FOLDER / f"{kind}-{d}-{seed}.npz")
                begin = time.process_time()
                model = lingam.DirectLiNGAM()
                model.fit(case["rows"])
                cpu = time.process_time() - begin
                weights = model.adjacency_matrix_.T
                for limit in (0.0, 0.1):
                    found = np.abs(weights) > limit
                    name = f"DirectLiNGAM, weights above {limit}"
                    keep(name, kind, d, seed, case["truth"], found, cpu)


def calibration(options):
    """Print how often correct directions are rejected, and how often wrong ones are."""
    import isthmus as ist

    test = ist.IndependentNoise()
    rng = np.random.default_rng(1)
    print("| noise | rows | slope | correct rejected | wrong rejected |")
    print("| --- " * 5 + "|")
    for kind in options.noise:
        for rows, slope in ((300, 1.0), (1000, 0.5), (1000, 1.0), (1000, 2.0)):
            p_values = []
            for _ in range(options.seeds):
                cause = NOISE[kind](rng, rows)
                table = {"a": cause, "b": slope * cause + NOISE[kind](rng, rows)}
                bound = test.bind(ist.WithFeatures(table, test.basis).moments())
                p_values.append((bound.fit(1, [0]).p_value, bound.fit(0, [1]).p_value))
            correct, wrong = (np.array(p_values) < 0.01).mean(axis=0)
            print(f"| {kind} | {rows} | {slope} | {correct:.3f} | {wrong:.3f} |", flush=True)


def violations(rng, n):
    """Yield pairs of which no direction, or not that of the names, can be told by the test."""
    x, e, f = rng.normal(size=(3, n))
    h, a, b = rng.exponential(size=(3, n)) - 1.0
    yield "line, exponential noise (control)", h, h + a
    yield "line, uniform noise (control)", *np.add.accumulate(rng.uniform(-1, 1, (2, n)))
    yield "line, normal noise", x, x + e
    yield "tanh(x) + e/2", x, np.tanh(x) + 0.5 * e
    yield "x + x²/5 + e", x, x + 0.2 * x**2 + e
    yield "spread (1 + |x|)/3", x, x + (0.3 + 0.3 * np.abs(x)) * e
    yield "both on a log scale", np.exp(0.4 * x), np.exp(0.4 * (x + e))
    yield "y censored at 0", x, np.maximum(0.0, x + e)
    yield "x censored at 0", np.maximum(0.0, x), x + e
    yield "two groups", x + 2 * (group := rng.random(n) < 0.3), x + e + group
    yield "hidden cause", h + 0.5 * a, 0.8 * h + 1.2 * b
    yield "hidden cause, normal noise", h + 0.3 * e, h + f
    yield "x measured with noise", h + 0.7 * e, h + 0.3 * f


def checks(options):
    """Print shares of tables in which x → y and y → x are stated."""
    import isthmus as ist

    warnings.simplefilter("ignore")
    searches = (ist.LiNGAM(), ist.LiNGAM(hidden_causes=False))
    print("| case: x → y, y → x | " + " | ".join(f"{n:,} rows" for n in options.rows) + " |")
    print("| --- " * (1 + len(options.rows)) + "|")
    shares = defaultdict(dict)
    for n in options.rows:
        stated = defaultdict(list)
        for seed in range(options.first, options.first + options.seeds):
            for name, x, y in violations(np.random.default_rng((seed, n)), n):
                solutions = [ist.learn({"x": x, "y": y}, search=search) for search in searches]
                told = [solution.directions.determined for solution in solutions]
                stated[name].append(
                    [edge in own for own in told for edge in (("x", "y"), ("y", "x"))]
                )
        for name, pairs in stated.items():
            shares[name][n] = "{:.2f}, {:.2f} / {:.2f}, {:.2f}".format(*np.mean(pairs, axis=0))
    for name, cells in shares.items():
        print(f"| {name} | " + " | ".join(cells.values()) + " |")


def render(options):
    cases = defaultdict(list)
    for line in (RESULTS / "lingam.jsonl").read_text().splitlines():
        row = json.loads(line)
        if row["seed"] < options.first:
            continue
        cases[row["d"], row["noise"], row["method"]].append(row)
    print(
        "| columns | noise | method | cases | errors | missing | extra | reversed | open | CPU s |"
    )
    print("| --- " * 10 + "|")
    for (d, noise, method), rows in sorted(cases.items()):
        kinds = ("missing", "extra", "reversed", "open")
        errors = np.array([sum(row[kind] for kind in kinds) for row in rows])
        error = errors.std(ddof=1) / len(rows) ** 0.5 if len(rows) > 1 else np.nan
        means = " | ".join(f"{np.mean([row[kind] for row in rows]):.1f}" for kind in kinds)
        cpu = np.median([row["cpu"] for row in rows])  # the first case imports libraries
        print(
            f"| {d} | {noise} | {method} | {len(rows)} | {errors.mean():.1f} ± {error:.1f} "
            f"| {means} | {cpu:.2g} |"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["ours", "peer", "calibration", "render", "checks"])
    parser.add_argument("--nodes", type=int, nargs="+", default=[10])
    parser.add_argument("--noise", nargs="+", default=list(NOISE))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 1000, 2000, 5000, 20000])
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    given = parser.parse_args()
    globals()[given.what](given)
