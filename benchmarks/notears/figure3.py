"""Figure 3 of the NOTEARS paper, with peers and baselines, on raw and on standardised data.

ER2 and SF4 graphs, Gaussian, exponential and Gumbel noise, weights ±[0.5, 2]. Runs that are on file
are not taken again, so it can be stopped and started; seeds go round outermost.

    python benchmarks/notears/figure3.py --methods dagma BOSS --sizes 10 20 50 --seeds 0 1 2
    python benchmarks/notears/figure3.py --seeds          # only write the tables
"""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from cases import draw, judge, one_thread
from methods import METHODS

RESULTS = Path(__file__).resolve().parents[1] / "results"
KEYS = ("scale", "graph", "noise", "n", "d", "seed", "method")


def _too_long(*_: object) -> None:
    raise TimeoutError("too long")


def run(key: dict[str, Any], limit: int) -> dict[str, Any]:
    drawn = draw(*(key[k] for k in ("graph", "noise", "d", "n", "seed", "scale")))
    x = drawn.array()
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        signal.signal(signal.SIGALRM, _too_long)
        signal.alarm(limit)
        try:
            weights = METHODS[key["method"]](x)
            signal.alarm(0)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError, TimeoutError) as error:
            return {**key, "failed": str(error)[:200]}
    taken = time.process_time() - begin
    return {**key, **judge(np.asarray(weights), drawn.dag), "cpu": round(taken, 3)}


def load(name: str) -> list[dict[str, Any]]:
    """Read every file of this benchmark: several processes may write, each its own."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for path in sorted(RESULTS.glob(f"{name}*.jsonl")):
        for line in path.read_text().splitlines():
            one = json.loads(line)
            found[tuple(one[k] for k in KEYS)] = one
    return list(found.values())


def average(runs: dict[int, dict[str, Any]], seeds: set[int], what: str) -> float:
    return float(np.mean([runs[s][what] for s in seeds]))


def render(runs: list[dict[str, Any]], sizes: list[int]) -> str:
    """One table for each scale and n, and below it the rows in which the first column is beaten."""
    text = ""
    order = {m: i for i, m in enumerate(METHODS)}
    for scale, n in itertools.product(("raw", "standardised"), (1000, 20)):
        what = "shd" if scale == "raw" else "shd_cpdag"
        mine = [
            r for r in runs
            if r["scale"] == scale and r["n"] == n and r["d"] in sizes and what in r
        ]  # fmt: skip
        if not mine:
            continue
        methods = sorted({r["method"] for r in mine}, key=lambda m: order.get(m, 99))
        text += f"\n## {scale.capitalize()}, n = {n}: mean {'CPDAG-' * (what != 'shd')}SHD\n\n"
        text += f"| graph | noise | d | seeds | {' | '.join(methods)} |\n"
        text += "| --- " * (4 + len(methods)) + "|\n"
        beaten: list[str] = []
        for graph, noise, d in itertools.product(("ER2", "SF4"), ("gauss", "exp", "gumbel"), sizes):
            cell = [r for r in mine if (r["graph"], r["noise"], r["d"]) == (graph, noise, d)]
            by = {m: {r["seed"]: r for r in cell if r["method"] == m} for m in methods}
            ours = by[methods[0]]
            if not ours:
                continue
            row = []
            for method in methods:
                seeds = set(by[method]) & set(ours)
                if not seeds:
                    row.append("–")
                    continue
                value, same = (average(by[m], seeds, what) for m in (method, methods[0]))
                row.append(f"{value:.1f}")
                if len(seeds) < len(ours):
                    row[-1] += f" ({len(seeds)}: {same:.1f})"
                if method in ("official rules", "dagma", "BOSS") and value < same:
                    beaten.append(f"{graph} {noise} {d}: {method} {value:.1f}, ours {same:.1f}")
            text += f"| {graph} | {noise} | {d} | {len(ours)} | {' | '.join(row)} |\n"
        text += f"\nA peer is better in: {'; '.join(beaten) or 'none'}.\n"
    return text


def main() -> None:
    one_thread()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[10, 20, 50, 100])
    parser.add_argument("--graphs", nargs="+", default=["ER2", "SF4"])
    parser.add_argument("--noises", nargs="+", default=["gauss", "exp", "gumbel"])
    parser.add_argument("--rows", nargs="+", type=int, default=[1000, 20])
    parser.add_argument("--scales", nargs="+", default=["raw", "standardised"])
    parser.add_argument("--seeds", nargs="*", type=int, default=list(range(10)))
    parser.add_argument("--again", action="store_true", help="take runs again that are on file")
    parser.add_argument("--limit", type=int, default=1800, help="seconds for one run")
    parser.add_argument("--name", default="notears-figure3")
    parser.add_argument("--part", default="", help="file to write to, if several run at once")
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    done = set()
    if not options.again:
        done = {tuple(r[k] for k in KEYS) for r in load(options.name)}
    path = RESULTS / f"{options.name}{options.part}.jsonl"
    for seed, d, method, scale, n, graph, noise in itertools.product(
        options.seeds, options.sizes, options.methods, options.scales, options.rows,
        options.graphs, options.noises,
    ):  # fmt: skip
        key = dict(zip(KEYS, (scale, graph, noise, n, d, seed, method), strict=True))
        if tuple(key.values()) in done:
            continue
        result = run(key, options.limit)
        print(result, flush=True)
        with path.open("a") as file:
            file.write(json.dumps(result) + "\n")
    head = (
        "# The NOTEARS paper's Figure 3, with peers and baselines\n\nOfficial rules and dagma have "
        "their own settings (λ = 0.1 and 0.03, threshold 0.3). Means over the seeds given; "
        "where a method has run on fewer,\ntheir number stands in brackets, with the mean of the "
        "first column on the same seeds. A method that had not run is a dash.\n"
        "To take it again: `python benchmarks/notears/figure3.py`.\n"
    )
    text = head + render(load(options.name), [10, 20, 50, 100])
    (RESULTS / f"{options.name}.md").write_text(text)


if __name__ == "__main__":
    main()
