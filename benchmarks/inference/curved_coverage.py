"""Coverage of 95% intervals of do-queries, and of predictive intervals of new rows.

The graph is given: z is a cause of x and y, and x of y. Effects are straight, curved (a square of z
in x and y, and a saturating effect of x) or interact (x times z), and the noise of y has one
variance or grows with x. For each table, the means of y after two interventions on x are asked with
their intervals, and for two new rows the mean of y with its interval, and the central 95% of y, by
``query("y", evidence)``. Run it with

    python benchmarks/inference/curved_coverage.py --tables 300 > \
        benchmarks/results/inference-curved.md
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from time import process_time
from typing import Any

import numpy as np

import isthmus as ist
from isthmus.networks import GaussianNetwork

Mean = Callable[[Any, Any], Any]
DAG = ist.DAG(["z", "x", "y"], [("z", "x"), ("z", "y"), ("x", "y")])
LOW, HIGH = -1.2, 0.8


def linear(x: Any, z: Any) -> Any:
    """Lines."""
    return x + 0.5 * z


def curved(x: Any, z: Any) -> Any:
    """A saturating effect, and a square of the confounder."""
    return 2 * np.tanh(x) + 0.7 * z**2


def interacting(x: Any, z: Any) -> Any:
    """An effect that grows with the confounder."""
    return x + 0.5 * z + 0.8 * x * z


KINDS: dict[str, tuple[Mean, bool]] = {
    "linear": (linear, False),
    "curved": (curved, False),
    "interacting": (interacting, False),
    "unequal spread": (linear, True),
    "curved, unequal spread": (curved, True),
}


def draw(kind: str, rows: int, rng: np.random.Generator, do: float | None = None) -> dict[str, Any]:
    """Draw rows of the three variables, or of those after an intervention without noise in y."""
    mean, unequal = KINDS[kind]
    z = rng.normal(size=rows)
    bend = 0.5 * (z**2 - 1) if mean is curved else 0.0
    x = 0.6 * z + bend + rng.normal(size=rows) if do is None else np.full(rows, do)
    noise = rng.normal(size=rows) * ((0.3 + np.abs(x)) if unequal else 1.0)
    return {"z": z, "x": x, "y": mean(x, z) + (0.0 if do is not None else noise)}


@cache
def after(kind: str, do: float) -> float:
    """Return the mean of y after an intervention on x."""
    return float(draw(kind, 1_000_000, np.random.default_rng(1), do)["y"].mean())


def one_table(kind: str, rows: int, seed: int) -> Iterator[tuple[str, float]]:
    """Yield what is averaged: by name, whether intervals cover."""
    rng = np.random.default_rng([seed, rows, *kind.encode()])
    table = draw(kind, rows, rng)
    clock = process_time()
    network: Any = ist.fit(table, DAG)
    yield "CPU s of `fit`", process_time() - clock
    straight = isinstance(network, GaussianNetwork)
    yield "lines", float(straight)
    options: Any = {} if straight else {"simulations": 20_000}
    for do in (LOW, HIGH):
        answer = network.query("y", do={"x": do}, **options)
        low, high = answer.confidence_interval()
        yield f"do(x = {do})", float(low[0] <= after(kind, do) <= high[0])
    new = draw(kind, 2, rng)
    for i in range(2):
        answer = network.query("y", evidence={v: float(new[v][i]) for v in ("x", "z")})
        low, high = answer.quantile(0.025), answer.quantile(0.975)
        yield "new rows", float(low[0] <= new["y"][i] <= high[0])
        at = {v: new[v][i : i + 1] for v in ("x", "z")}
        low, high = answer.confidence_interval()
        truth = float(KINDS[kind][0](at["x"], at["z"])[0])
        yield "mean of new rows", float(low[0] <= truth <= high[0])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("# Coverage of answers of fitted networks\n")
    print(f"`benchmarks/inference/curved_coverage.py --tables {options.tables}`: the share of 95% ")
    print("intervals that contain the truth, with the graph given.\n")
    head: list[str] = []
    for kind in options.kinds:
        for rows in options.rows:
            sums: dict[str, list[float]] = {}
            for seed in range(options.tables):
                for name, value in one_table(kind, rows, seed):
                    sums.setdefault(name, []).append(value)
            if not head:
                head = ["tables", "rows", *sums]
                print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
            values = [f"{np.mean(own):.3f}" for own in sums.values()]
            print("| " + " | ".join([kind, f"{rows:,}", *values]) + " |", flush=True)


if __name__ == "__main__":
    main()
