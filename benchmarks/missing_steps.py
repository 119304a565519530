"""How many steps expectation-maximisation of moments takes, and how large the table of sums is.

    python benchmarks/missing_steps.py

Gaussian tables: completely at random (MCAR), or in half of the columns with a probability that
depends on a complete column (MAR). Steps are those until no standardised moment changes by more
than 1e-4, the default. In a federation each is one secure sum. The second table tells how many
values a site of a federation may use, whose policy is the drafted one: it hides values of rare
patterns. Both are written to results/missing-steps.md.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import isthmus as ist
from isthmus import simulate
from isthmus.joint import Policy
from isthmus.joint.cohorts.patterns import hide_rare_patterns
from isthmus.statistics.expectation import Estimated, estimate_moments
from isthmus.statistics.patterns import PatternRows

RESULT = Path(__file__).parent / "results" / "missing-steps.md"
USED = "| columns | rows | missing | values | used by a site | in complete rows | seconds |"
POLICY = Policy(
    minimum_cohort=50,
    minimum_cell=5,
    minimum_organisations=3,
    variables=("*",),
    protocols=("secure sums",),
    requests=("expectation",),
    rounds_per_study=65,
    rounds_per_year=650,
    queries_per_year=650,
    stop_file=Path("STOP"),
)
HEAD = "| columns | rows | missing | patterns | rows kept | steps | seconds |"


def table(d: int, n: int, kind: str, share: float) -> np.ndarray:
    """Draw rows of a linear network with holes."""
    data = simulate.linear(simulate.erdos_renyi(d, 2 * d, seed=1), n, seed=1).data
    x = np.stack(list(data.values()), axis=1)
    holes = np.random.default_rng(1).random(x.shape) < (share if kind == "MCAR" else 4 * share)
    if kind == "MAR":
        holes[:, ::2] = False
        holes &= (x[:, 0] > np.median(x[:, 0]))[:, None]
    x[holes] = np.nan
    return x


def timed(patterns: PatternRows) -> tuple[Estimated, float]:
    """Estimate, and measure the CPU seconds."""
    begin = time.process_time()
    estimated = estimate_moments(patterns, max_iterations=5000, tolerance=1e-4)
    return estimated, time.process_time() - begin


def used(n: int, d: int, share: float) -> str:
    """Return a line about the values that are there, used by a site, and in complete rows."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n, d))
    values[rng.random(values.shape) < share] = np.nan
    begin = time.process_time()
    hidden = hide_rare_patterns(tuple(map(str, range(d))), values, None, POLICY, {})
    seconds = time.process_time() - begin
    there, kept = ~np.isnan(values), ~np.isnan(hidden)
    shares = f"{there.mean():.1%} | {kept.mean():.1%} | {there.all(axis=1).mean():.1%}"
    return f"| {d} | {n:,} | MCAR {share:.0%} | {shares} | {seconds:.1f} |"


def main() -> None:
    """Measure, and write the tables."""
    lines = [HEAD, "| --- " * 7 + "|"]
    for d, n in ((5, 1_000), (10, 2_000), (50, 1_000), (10, 200_000)):
        for kind, share in (("MCAR", 0.1), ("MCAR", 0.3), ("MAR", 0.1), ("MAR", 0.2)):
            schema = ist.Schema.continuous([f"x{i}" for i in range(d)])
            patterns = PatternRows.of(schema, [table(d, n, kind, share)])
            estimated, seconds = timed(patterns)
            lines.append(
                f"| {d} | {n:,} | {kind} {share:.0%} | {len(patterns.observed):,} | "
                f"{len(patterns.rows):,} | {estimated.iterations} | {seconds:.2f} |"
            )
            print(lines[-1], flush=True)
    lines += ["", USED, "| --- " * 7 + "|"]
    for n, d, share in ((2_000, 10, 0.1), (20_000, 10, 0.1), (20_000, 20, 0.1), (20_000, 20, 0.3)):
        lines.append(used(n, d, share))
        print(lines[-1], flush=True)
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
