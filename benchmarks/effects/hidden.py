"""Coverage of the 95% intervals of `isthmus.effect` in graphs with hidden common causes.

Each table is simulated from a model with random weights, in which a hidden variable influences
cause and effect. The last column is the coverage of the intervals that ignore it. Run it with

    python benchmarks/effects/hidden.py --tables 1000 > benchmarks/results/effects-hidden.md
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import isthmus as ist

U = [("u", "x"), ("u", "y")]
GRAPHS = {
    "front-door": ist.DAG(["u", "x", "m", "y"], [*U, ("x", "m"), ("m", "y")]),
    "front-door, two mediators": ist.DAG(
        ["u", "x", "m", "k", "y"], [*U, ("x", "m"), ("m", "y"), ("x", "k"), ("k", "y")]
    ),
    "instrument": ist.DAG(["u", "z", "x", "y"], [*U, ("z", "x"), ("x", "y")]),
    "instruments after adjustment": ist.DAG(
        ["u", "w", "z", "q", "x", "y"],
        [*U, ("w", "z"), ("w", "q"), ("w", "y"), ("z", "x"), ("q", "x"), ("x", "y")],
    ),
    "adjustment": ist.DAG(["u", "w", "x", "y"], [("u", "w"), ("u", "y"), ("w", "x"), ("x", "y")]),
}


def linear(dag: ist.DAG, n: int, rng: np.random.Generator, unequal: bool) -> tuple[Any, float]:
    """Return a table of a linear model, and the effect of x on y."""
    d = len(dag.nodes)
    weights = dag.adjacency() * rng.uniform(0.5, 1.0, (d, d)) * rng.choice([-1, 1], (d, d))
    table: dict[str, Any] = {}
    for name in dag.topological_order():
        parents = [(table[p], weights[dag.index(p), dag.index(name)]) for p in dag.parents(name)]
        scale = np.abs(parents[0][0]) if unequal and parents else 1.0
        table[name] = scale * rng.normal(size=n) + sum(column * w for column, w in parents)
    effects = np.linalg.inv(np.eye(d) - weights)
    return table, float(effects[dag.index("x"), dag.index("y")])


def binary(n: int, rng: np.random.Generator) -> tuple[Any, float]:
    """Return a table of zeros and ones with a mediator, and the effect of x on P(y = 1)."""
    u = rng.random(n) < 0.5
    x = rng.random(n) < np.where(u, *rng.uniform(0.2, 0.8, 2))
    low, high = rng.uniform(0.2, 0.8, 2)
    m = rng.random(n) < np.where(x, high, low)
    a, b, c = rng.uniform(0.05, 0.3, 3)
    y = rng.random(n) < a + b * m + c * u
    columns = {"x": x, "m": m, "y": y}
    return {v: column.astype(int) for v, column in columns.items()}, (high - low) * b


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    tables = parser.parse_args().tables
    print("# Coverage of the 95% intervals of effects in graphs with hidden variables\n")
    print(
        "<!-- table -->\n\n| identified by | rows | 95% intervals | noise of unequal variance | "
        "hidden cause ignored |\n| --- | --- | --- | --- | --- |"
    )
    for name, dag in GRAPHS.items():
        for n in (100, 1000):
            cells = []
            for unequal in (False, True):
                rng = np.random.default_rng([n, unequal, *name.encode()])
                hits = naive = 0
                for _ in range(tables):
                    table, truth = linear(dag, n, rng, unequal)
                    low, high = ist.effect(table, dag, "x", "y", hidden=["u"]).interval()
                    hits += low <= truth <= high
                    seen = ist.DAG(
                        [v for v in dag.nodes if v != "u"], [e for e in dag.edges if "u" not in e]
                    )
                    low, high = ist.effect(table, seen, "x", "y").interval()
                    naive += low <= truth <= high
                cells.append(f"{100 * hits / tables:.1f}")
                if not unequal:
                    ignored = f"{100 * naive / tables:.1f}"
            print(f"| {name} | {n:,} | {' | '.join(cells)} | {ignored} |")
    for n in (300, 1000):
        rng = np.random.default_rng(n)
        hits, dag = 0, GRAPHS["front-door"]
        kinds = dict.fromkeys(("x", "m", "y"), "discrete")
        for _ in range(tables):
            table, truth = binary(n, rng)
            low, high = ist.effect(table, dag, "x", "y", hidden=["u"], kinds=kinds).interval()
            hits += low <= truth <= high
        print(f"| front-door, all binary | {n:,} | {100 * hits / tables:.1f} | – | – |")
    error = 100 * (0.95 * 0.05 / tables) ** 0.5
    print(
        f"\nPercent of intervals that cover the true effect in {tables:,} tables; each has a "
        f"standard error of about {error:.1f}."
    )
    print(f"Command: `python benchmarks/effects/hidden.py --tables {tables}`.")


if __name__ == "__main__":
    main()
