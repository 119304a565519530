"""How many steps expectation-maximisation of moments takes, and how large the table of sums is.

    python benchmarks/missing_steps.py

Gaussian tables: completely at random (MCAR), or in half of the columns with a probability that
depends on a complete column (MAR). Steps are those until no standardised moment changes by more
than 1e-4, the default. In a federation each is one secure sum. The table is written to
results/missing-steps.md.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import isthmus as ist
from isthmus import simulate
from isthmus.statistics.incomplete import Estimated, estimate_moments
from isthmus.statistics.tally import PatternRows

RESULT = Path(__file__).parent / "results" / "missing-steps.md"
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


def main() -> None:
    """Measure, and write the table."""
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
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
