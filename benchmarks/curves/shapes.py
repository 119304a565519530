"""False edges between the effects of one cause, for effects of many shapes.

z is the only cause of five columns, so the ten pairs among those are independent given z.

python benchmarks/curves/shapes.py --tables 10 --rows 500 1000 5000 20000 \
    --out benchmarks/results/curves-shapes.md
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import isthmus as ist

Columns = list[np.ndarray]


def shapes(rng: np.random.Generator, z: np.ndarray) -> Iterator[tuple[str, Columns]]:
    n = len(z)

    def e() -> np.ndarray:
        return rng.normal(size=n)

    def five(make: Any) -> Columns:
        return [make() for _ in range(5)]

    yield "straight", five(lambda: z + e())
    yield "z + z²/4", five(lambda: z + 0.25 * z**2 + e())
    yield "Poisson, mean exp(0.5 + z/2)", five(lambda: rng.poisson(np.exp(0.5 + 0.5 * z)))
    yield "Poisson, mean exp(2 + z/2)", five(lambda: rng.poisson(np.exp(2 + 0.5 * z)))
    yield "censored at zero", five(lambda: np.maximum(0, z + e()))
    yield "five numbers", five(lambda: np.digitize(1.5 * z + e(), [-2, -0.7, 0.7, 2]) + 1)
    yield "three levels", five(lambda: np.array(list("abc"))[np.digitize(1.5 * z + e(), [-1, 1])])
    yield "two levels", five(lambda: np.where(1.2 * z + e() > 0, "y", "n"))
    yield "two levels, one rare", five(lambda: np.where(1.2 * z + e() > 2, "y", "n"))
    yield "0 and 1", five(lambda: (1.2 * z + e() > 0).astype(int))
    yield "log-normal", five(lambda: np.exp(0.4 * z + 0.4 * e()))
    yield "growing spread", five(lambda: z + (0.3 + 0.3 * np.abs(z)) * e())
    yield "tanh", five(lambda: np.tanh(z) + 0.5 * e())


def table_of(z: np.ndarray, columns: Columns) -> dict[str, np.ndarray]:
    return {"z": z} | {f"y{i}": y for i, y in enumerate(columns)}


def posterior_above(table: dict[str, np.ndarray]) -> float:
    """Share of the false pairs with a posterior above 0.9."""
    posterior = ist.sample(table, draws=5, seed=1)
    edges = np.asarray(posterior.edge_probabilities())
    either = edges + edges.T
    ys = [i for i, name in enumerate(posterior.nodes) if name != "z"]
    return float(np.mean([either[i, j] > 0.9 for i in ys for j in ys if i < j]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=10)
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 1000, 5000, 20000])
    parser.add_argument("--posterior", action="store_true")
    parser.add_argument("--straight", action="store_true", help="name the score of lines")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    cells: dict[str, list[str]] = {}
    begin = time.process_time()
    for n in options.rows:
        found: dict[str, list[tuple[float, ...]]] = {}
        for seed in range(options.tables):
            rng = np.random.default_rng(seed)
            z = rng.normal(size=n)
            for name, columns in shapes(rng, z):
                table = table_of(z, columns)
                numbers = not any(y.dtype.kind == "U" for y in columns)
                lines = ist.GaussianEBIC() if numbers else ist.DegenerateGaussian(gamma=0.5)
                edges = ist.learn(table, score=lines if options.straight else None).dag.edges
                false = sum("z" not in edge for edge in edges)
                above = posterior_above(table) if options.posterior else 0.0
                found.setdefault(name, []).append((false, len(edges) - false, above))
        for name, values in found.items():
            false, true, above = np.mean(values, axis=0)
            text = f"{false:.1f} / {true:.1f}"
            cells.setdefault(name, []).append(
                text + (f" / {above:.0%}" if options.posterior else "")
            )
            print(n, name, cells[name][-1], flush=True)
    heads = ["effect", *(f"{n:,} rows" for n in options.rows)]
    lines_out = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines_out += [f"| {name} | " + " | ".join(row) + " |" for name, row in cells.items()]
    print("\n".join(lines_out), f"\n{time.process_time() - begin:.0f} CPU s")
    if options.out:
        text = (
            "# Effects of one cause\n\n"
            f"`python benchmarks/curves/shapes.py --tables {options.tables}"
            f"{' --posterior' if options.posterior else ''}`\n\n"
            f"False edges (of 10 pairs) / true edges (of 5), means of {options.tables} tables"
            f"{'; false pairs with a posterior above 0.9' if options.posterior else ''}.\n\n"
        )
        options.out.write_text(text + "\n".join(lines_out) + "\n")


if __name__ == "__main__":
    main()
