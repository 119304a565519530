"""Accuracy of the defaults on seventeen kinds of tables, beside our other methods.

    python benchmarks/tables/seventeen.py [--seeds 6] [--only "mixed 300" "binary 100"] [--write]

Each table has ten variables and a random graph with twelve edges. Numbers are passed as floats,
nominal categories as text, ordinal codes and counts as integers. The printed figures are means
over the seeds: the structural Hamming distance between equivalence classes (lower is better) and
the F1 score of the skeleton (higher is better). The best distance of each row is bold, and a mark
says where the default is worse than the best method by more than one edge. ``--write`` saves the
table to benchmarks/results/seventeen.md. Six seeds take half a CPU minute.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isthmus as ist
from isthmus.metrics import edge_metrics, shd_cpdag

RESULTS = Path(__file__).parents[1] / "results" / "seventeen.md"
VARIABLES, EDGES = 10, 12
WITHIN = 1.0  # the default may be worse than our best method by this much, in edges

Array = NDArray[Any]
Noise = Callable[[int], Array]
Maker = Callable[["World"], "tuple[Array, list[int]]"]


class World:
    """A random graph and the random generator that the data come from."""

    def __init__(self, seed: int, key: str, n: int) -> None:
        # Entropy from the name, so that each kind has graphs and data of its own.
        self.rng = np.random.default_rng([seed, sum(map(ord, key)), n])
        self.n = n
        self.order = self.rng.permutation(VARIABLES)
        pairs = [
            (self.order[i], self.order[j])
            for i in range(VARIABLES)
            for j in range(i + 1, VARIABLES)
        ]
        chosen = self.rng.choice(len(pairs), EDGES, replace=False)
        self.edges = [pairs[k] for k in chosen]

    def parents(self, v: int) -> list[int]:
        """Return the parents of a variable in ascending order."""
        return sorted(int(a) for a, b in self.edges if b == v)

    def weight(self) -> float:
        """Draw a coefficient that is not near zero."""
        return float(self.rng.choice([-1, 1]) * self.rng.uniform(0.4, 1.2))


def _scaled(x: Array) -> Array:
    return x / max(x.std(), 1e-9)


def _linear(world: World, noise: Noise) -> Array:
    x = np.zeros((world.n, VARIABLES))
    for v in world.order:
        x[:, v] = noise(world.n)
        for p in world.parents(v):
            # The coefficient is drawn first, so that the stream of numbers is well defined.
            coefficient = world.weight()
            x[:, v] += coefficient * x[:, p] / max(x[:, p].std(), 1e-9)
    return x


def linear(draw: Callable[[np.random.Generator, int], Array]) -> Maker:
    """Linear effects with noise of some distribution."""

    def make(world: World) -> tuple[Array, list[int]]:
        return _linear(world, lambda n: draw(world.rng, n)), [0] * VARIABLES

    return make


def lognormal(world: World) -> tuple[Array, list[int]]:
    """Exponentials of linear Gaussian columns."""
    x = _linear(world, lambda n: world.rng.normal(size=n))
    return np.exp(0.8 * x / x.std(0)), [0] * VARIABLES


def ordinal(levels: int) -> Maker:
    """Linear Gaussian columns, cut at random quantiles."""

    def make(world: World) -> tuple[Array, list[int]]:
        z = _linear(world, lambda n: world.rng.normal(size=n))
        columns = []
        for v in range(VARIABLES):
            cuts = np.sort(world.rng.uniform(0.05, 0.95, levels - 1))
            columns.append(np.digitize(z[:, v], np.quantile(z[:, v], cuts)))
        return np.column_stack(columns), [-1] * VARIABLES

    return make


def nonlinear(world: World) -> tuple[Array, list[int]]:
    """Sums of nonlinear functions, some of them without a linear part."""
    x = np.zeros((world.n, VARIABLES))
    for v in world.order:
        x[:, v] = world.rng.normal(size=world.n) * 0.5
        for p in world.parents(v):
            z = _scaled(x[:, p])
            shape = world.rng.choice(4)
            effects = [np.sin(2 * z), z**2 - 1, np.tanh(2 * z) * 1.2, np.abs(z) * 1.2]
            x[:, v] += effects[shape]
    return x, [0] * VARIABLES


def discrete(fixed: int | None = None) -> Maker:
    """Categories whose conditional probabilities come from a Dirichlet distribution."""

    def make(world: World) -> tuple[Array, list[int]]:
        rng = world.rng
        sizes = [fixed or int(rng.integers(2, 4)) for _ in range(VARIABLES)]
        x = np.zeros((world.n, VARIABLES), int)
        for v in world.order:
            parents = world.parents(v)
            configurations = int(np.prod([sizes[p] for p in parents])) if parents else 1
            tables = rng.dirichlet(np.full(sizes[v], 0.5), size=configurations)
            code = np.zeros(world.n, int)
            for p in parents:
                code = code * sizes[p] + x[:, p]
            u = rng.random(world.n)
            x[:, v] = (u[:, None] > tables[code].cumsum(1)[:, :-1]).sum(1)
        return x, sizes

    return make


def mixed(world: World) -> tuple[Array, list[int]]:
    """Linear effects on numbers, and softmax models of categories with two or three levels."""
    rng = world.rng
    sizes = [0 if rng.random() < 0.5 else int(rng.integers(2, 4)) for _ in range(VARIABLES)]
    x = np.zeros((world.n, VARIABLES))
    for v in world.order:
        predictor = np.zeros((world.n, max(sizes[v], 1)))
        width = predictor.shape[1]
        for p in world.parents(v):
            if sizes[p] == 0:
                z = (x[:, p] - x[:, p].mean()) / max(x[:, p].std(), 1e-9)
                predictor += z[:, None] * np.array([world.weight() * 1.5 for _ in range(width)])
            else:
                effects = [[world.weight() * 1.5 for _ in range(width)] for _ in range(sizes[p])]
                predictor += np.array(effects)[x[:, p].astype(int)]
        if sizes[v] == 0:
            x[:, v] = predictor[:, 0] + rng.normal(size=world.n)
        else:
            x[:, v] = np.argmax(predictor + rng.gumbel(size=(world.n, sizes[v])), 1)
    return x, sizes


def counts(world: World) -> tuple[Array, list[int]]:
    """Poisson counts whose log rates depend on the square roots of their parents."""
    x = np.zeros((world.n, VARIABLES))
    for v in world.order:
        rate = np.full(world.n, world.rng.uniform(0.3, 1.2))
        for p in world.parents(v):
            root = np.sqrt(x[:, p])
            rate += world.weight() * 0.6 * (root - root.mean())
        x[:, v] = world.rng.poisson(np.exp(np.clip(rate, -3, 3.5)))
    return x.astype(int), [-1] * VARIABLES


KINDS: dict[str, tuple[str, int, Maker]] = {
    "Gaussian 500": ("gauss", 500, linear(lambda r, n: r.normal(size=n))),
    "Gaussian 60": ("gauss", 60, linear(lambda r, n: r.normal(size=n))),
    "Laplace 500": ("laplace", 500, linear(lambda r, n: r.laplace(size=n) / np.sqrt(2))),
    "exponential 500": ("exp", 500, linear(lambda r, n: r.exponential(size=n) - 1)),
    "t, 3 df 500": ("t3", 500, linear(lambda r, n: r.standard_t(3, size=n) / np.sqrt(3))),
    "t, 2 df 500": ("t2", 500, linear(lambda r, n: r.standard_t(2, size=n) / 2)),
    "lognormal 500": ("deterministic-mix", 500, lognormal),
    "nonlinear 500": ("nonlin", 500, nonlinear),
    "counts 500": ("counts", 500, counts),
    "ordinal, 7 levels 300": ("ordinal7", 300, ordinal(7)),
    "ordinal, 5 levels 500": ("ordinal", 500, ordinal(5)),
    "discrete 2000": ("disc", 2000, discrete()),
    "discrete 200": ("disc", 200, discrete()),
    "3 levels 100": ("disc3", 100, discrete(3)),
    "binary 100": ("binary", 100, discrete(2)),
    "mixed 1000": ("mixed", 1000, mixed),
    "mixed 300": ("mixed", 300, mixed),
}

Learn = Callable[[dict[str, Any]], Any]


def _with(**options: Any) -> Learn:
    return lambda table: ist.learn(table, seed=0, progress=False, **options)


def _numbers(table: dict[str, Any]) -> Any:
    """Learn with every column as a number."""
    floats = {name: np.asarray(column, dtype=float) for name, column in table.items()}
    return ist.learn(floats, score=ist.GaussianEBIC(), seed=0, progress=False)


_CONTINUOUS: dict[str, Learn] = {
    "GaussianEBIC": _numbers,
    "NotearsAdditive": _with(search=ist.NotearsAdditive()),
}
_ORDINAL: dict[str, Learn] = {"GaussianEBIC": _numbers}
_DISCRETE: dict[str, Learn] = {
    "EBIC exact": _with(score=ist.EBIC(), search=ist.SubsetDP()),
    "BIC exact": _with(score=ist.BIC(), search=ist.SubsetDP()),
    "BDeu exact": _with(score=ist.BDeu(), search=ist.SubsetDP()),
}
_MIXED: dict[str, Learn] = {"DegenerateGaussian": _with(score=ist.DegenerateGaussian())}


def others(name: str) -> dict[str, Learn]:
    """Return the methods besides the default that suit a kind of table."""
    if name.startswith(("discrete", "3 levels", "binary")):
        return _DISCRETE
    if name.startswith(("ordinal", "counts")):
        return _ORDINAL
    return _MIXED if name.startswith("mixed") else _CONTINUOUS


def table_of(name: str, seed: int) -> tuple[dict[str, Any], ist.DAG]:
    """Return one table as a user would pass it, and its true graph."""
    key, n, make = KINDS[name]
    world = World(seed, key, n)
    x, sizes = make(world)
    columns: dict[str, Any] = {}
    for v, size in enumerate(sizes):
        column = x[:, v]
        if size > 0:
            columns[f"v{v}"] = np.array([f"level {int(k)}" for k in column])
        else:
            columns[f"v{v}"] = column.astype(int) if size < 0 else column.astype(float)
    edges = [(f"v{a}", f"v{b}") for a, b in world.edges]
    return columns, ist.DAG(list(columns), edges)


def measure(name: str, seeds: int) -> dict[str, tuple[float, float]]:
    """Return the mean distance and F1 score of each method on one kind of table."""
    methods: dict[str, Learn] = {"default": _with(), **others(name)}
    results: dict[str, list[tuple[float, float]]] = {method: [] for method in methods}
    for seed in range(seeds):
        table, truth = table_of(name, seed)
        for method, learn in methods.items():
            dag = learn(table).dag
            f1 = edge_metrics(truth, dag).skeleton_f1
            results[method].append((float(shd_cpdag(truth, dag)), f1))
    return {method: tuple(np.mean(pairs, axis=0)) for method, pairs in results.items()}


def line(name: str, results: dict[str, tuple[float, float]]) -> str:
    """Return one row of the table."""
    best = min(distance for distance, _ in results.values())

    def cell(method: str) -> str:
        distance, f1 = results[method]
        text = f"{distance:.1f} / {f1:.2f}"
        return f"**{text}**" if distance == best else text

    rest = ", ".join(f"{method} {cell(method)}" for method in results if method != "default")
    behind = results["default"][0] > best + WITHIN
    return f"| {name} | {cell('default')}{' !' if behind else ''} | {rest} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--only", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--write", action="store_true", help="save the table")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ist.errors.DataWarning)
    lines = [
        "# Seventeen kinds of tables",
        "",
        f"`python benchmarks/tables/seventeen.py --seeds {options.seeds}`",
        "",
        "Ten variables, twelve edges; CPDAG-SHD / F1 score of the skeleton, means over the seeds.",
        "`!`: the default is worse than the best by more than one edge.",
        "",
        "| table (rows) | default | other methods |",
        "| --- | --- | --- |",
    ]
    print("\n".join(lines[-2:]))
    for name in options.only:
        lines.append(line(name, measure(name, options.seeds)))
        print(lines[-1], flush=True)
    if options.write:
        RESULTS.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
