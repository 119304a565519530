"""Coverage of the 95% intervals of `effect` in situations with a known graph and average effect.

Each row of the result is a situation. "error / spread" is the mean standard error, divided by the
standard deviation of the estimates over tables. Run it with

    python benchmarks/effects/one_question.py > benchmarks/results/effects-one-question.md

A name after ``--only`` selects the situations that contain it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

import numpy as np

import isthmus as ist

Generator = np.random.Generator
Table = dict[str, np.ndarray]


@dataclass(frozen=True)
class Situation:
    """How a table is simulated; its columns are the causes z…, then x, then y.

    Attributes
    ----------
    name
        What it shows.
    simulate
        Returns a table with so many rows.
    truth
        The average effect of one unit, or of the second level.
    rows
        Number of rows.
    hidden
        Columns that are not in the graph, such as that of clusters.
    clusters
        The column of clusters.
    absent
        Share of missing values, to be completed by expectation-maximisation.
    """

    name: str
    simulate: Callable[[Generator, int], Table]
    truth: float
    rows: int = 500
    hidden: tuple[str, ...] = ()
    clusters: str | None = None
    absent: float = 0.0


def logistic(u: np.ndarray) -> np.ndarray:
    """Return probabilities."""
    return 1.0 / (1.0 + np.exp(-u))


def levels(chance: np.ndarray, rng: Generator) -> np.ndarray:
    """Draw "t" with some probabilities, and "c" otherwise."""
    return np.where(rng.random(len(chance)) < chance, "t", "c")


def linear(confounders: int, *, spread: bool = False) -> Callable[[Generator, int], Table]:
    """Return a simulation with straight effects of independent confounders."""

    def simulate(rng: Generator, n: int) -> Table:
        z = rng.normal(size=(n, confounders))
        pull = z.sum(axis=1) / max(confounders, 1) ** 0.5
        x = pull + rng.normal(size=n)
        noise = (0.2 + np.abs(x)) if spread else 1.0
        y = x + pull + noise * rng.normal(size=n)
        return {f"z{i}": z[:, i] for i in range(confounders)} | {"x": x, "y": y}

    return simulate


def binary(
    shape: Callable[[np.ndarray], np.ndarray], chance: Callable[[np.ndarray], np.ndarray]
) -> Callable[[Generator, int], Table]:
    """Return a simulation of a binary cause, with an effect of one."""

    def simulate(rng: Generator, n: int) -> Table:
        z = rng.normal(size=n)
        x = levels(logistic(chance(z)), rng)
        return {"z0": z, "x": x, "y": (x == "t") + shape(z) + rng.normal(size=n)}

    return simulate


def continuous(
    shape: Callable[[np.ndarray], np.ndarray], slope: Callable[[np.ndarray], np.ndarray]
) -> Callable[[Generator, int], Table]:
    """Return a simulation of a continuous cause with one confounder."""

    def simulate(rng: Generator, n: int) -> Table:
        z = rng.normal(size=n)
        x = shape(z) + rng.normal(size=n)
        return {"z0": z, "x": x, "y": slope(z) * x + 2 * shape(z) + rng.normal(size=n)}

    return simulate


def by_group(rng: Generator, n: int) -> Table:
    """Simulate a cause that varies less where its slope is 2, and otherwise 0."""
    z = rng.integers(0, 2, n)
    x = z + np.where(z, 0.4, 2) * rng.normal(size=n)
    y = x * np.where(z, 2, 0) + z + rng.normal(size=n)
    return {"z0": np.array(["p", "q"])[z], "x": x, "y": y}


def two_interact(*, discrete: bool) -> Callable[[Generator, int], Table]:
    """Return a simulation in which the product of two variables confounds."""

    def simulate(rng: Generator, n: int) -> Table:
        z = rng.normal(size=(n, 2))
        product = z[:, 0] * z[:, 1]
        x = levels(logistic(product), rng) if discrete else product + rng.normal(size=n)
        own = (x == "t") if discrete else x
        y = own + 2 * product + rng.normal(size=n)
        return {"z0": z[:, 0], "z1": z[:, 1], "x": x, "y": y}

    return simulate


def many_binary(confounders: int) -> Callable[[Generator, int], Table]:
    """Return a simulation of a binary cause with several confounders, the first one curved."""

    def simulate(rng: Generator, n: int) -> Table:
        z = rng.normal(size=(n, confounders))
        pull = z.sum(axis=1) / confounders**0.5 if confounders else np.zeros(n)
        bend = z[:, 0] ** 2 - 1 if confounders else 0.0
        x = levels(logistic(0.7 * pull + bend), rng)
        y = (x == "t") + pull + bend + rng.normal(size=n)
        return {f"z{i}": z[:, i] for i in range(confounders)} | {"x": x, "y": y}

    return simulate


def clustered(*, discrete: bool) -> Callable[[Generator, int], Table]:
    """Return a simulation in which clusters of 30 rows share parts of cause and effect."""

    def simulate(rng: Generator, n: int) -> Table:
        g = np.repeat(np.arange(n // 30), 30)
        u, v = rng.normal(size=(2, n // 30))
        z = rng.normal(size=n)
        pull = 0.7 * u[g] + 0.5 * z
        x = levels(logistic(pull), rng) if discrete else pull + rng.normal(size=n)
        own = (x == "t") if discrete else x
        y = own + 0.5 * z + 0.7 * v[g] + rng.normal(size=n)
        return {"z0": z, "x": x, "y": y, "clinic": np.array([f"clinic {i}" for i in g])}

    return simulate


def curved_cause(rng: Generator, n: int) -> Table:
    """Simulate an effect that is a curve: its average slope is 1 + 2 * 0.5 * E[x] = 2."""
    z = rng.normal(size=n)
    x = 1 + 0.5 * z + rng.normal(size=n)
    return {"z0": z, "x": x, "y": x + 0.5 * x**2 + z + rng.normal(size=n)}


def event(rng: Generator, n: int) -> Table:
    """Simulate a binary effect of a binary cause, with a curved confounder."""
    z = rng.normal(size=n)
    x = levels(logistic(z**2 - 1), rng)
    y = levels(logistic((x == "t") + z**2 - 1), rng)
    return {"z0": z, "x": x, "y": y}


def event_truth() -> float:
    """Return the average change of the probability of `event`, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    change = logistic(nodes**2) - logistic(nodes**2 - 1)
    return float(weights @ change / weights.sum())


def square(z: np.ndarray) -> np.ndarray:
    """Return a curve."""
    return z**2


def unit(z: np.ndarray) -> np.ndarray:
    """Return the slope of an effect of one per unit."""
    return np.ones_like(z)


SITUATIONS = (
    *(Situation(f"linear, {k} confounders", linear(k), 1.0) for k in (0, 1, 6, 10)),
    Situation("linear, 1 confounder, 100 rows", linear(1), 1.0, rows=100),
    *(Situation(f"unequal spread, {k} confounders", linear(k, spread=True), 1.0) for k in (0, 3)),
    Situation("curved confounder", continuous(square, unit), 1.0),
    Situation("curved confounder, 5,000 rows", continuous(square, unit), 1.0, rows=5000),
    Situation("tanh confounder", continuous(lambda z: 2 * np.tanh(2 * z), unit), 1.0),
    Situation("weakly curved confounder", continuous(lambda z: z + 0.1 * z**2, unit), 1.0),
    Situation("exponential confounder", continuous(lambda z: np.exp(z / 2), unit), 1.0),
    Situation("product of two confounders", two_interact(discrete=False), 1.0),
    Situation("slope by a number", continuous(square, lambda z: 1 + z), 1.0),
    Situation("slope by a group, unequal spread", by_group, 1.0),
    Situation("curved effect", curved_cause, 2.0),
    Situation("binary cause, linear", binary(lambda z: z, lambda z: z), 1.0),
    Situation("binary cause, curved", binary(square, lambda z: z**2 - 1), 1.0),
    Situation("binary cause, curved, 5,000 rows", binary(square, lambda z: z**2 - 1), 1.0, 5000),
    Situation("binary cause, weakly curved", binary(lambda z: z + 0.2 * z**2, square), 1.0),
    Situation("binary cause, exponential", binary(np.exp, lambda z: z), 1.0),
    Situation("binary cause, product of two", two_interact(discrete=True), 1.0),
    *(Situation(f"binary cause, {k} confounders", many_binary(k), 1.0) for k in (0, 6, 10)),
    Situation("binary cause and effect, curved", event, event_truth(), rows=1000),
    *(
        Situation(
            f"30 clusters of 30, {name}", clustered(discrete=d), 1.0, 900, ("clinic",), "clinic"
        )
        for name, d in (("continuous", False), ("binary", True))
    ),
    *(
        Situation(f"linear, {k} confounders, 30% missing", linear(k), 1.0, absent=0.3)
        for k in (0, 1, 6, 10)
    ),
    Situation("unequal spread, 30% missing", linear(3, spread=True), 1.0, absent=0.3),
    Situation("curved confounder, 30% missing", continuous(square, unit), 1.0, absent=0.3),
)


def graph(situation: Situation, table: Table) -> ist.DAG:
    """Return the true graph: all z are causes of x and y."""
    nodes = [name for name in table if name not in situation.hidden]
    causes = [name for name in nodes if name.startswith("z")]
    edges = [(z, end) for z in causes for end in ("x", "y")]
    return ist.DAG(nodes, [*edges, ("x", "y")])


def simulated(situation: Situation, seed: int) -> Table:
    """Return a table, with values missing completely at random if there are some."""
    rng = np.random.default_rng([seed, *situation.name.encode()])
    table = situation.simulate(rng, situation.rows)
    if situation.absent:
        table = {
            name: np.where(rng.random(len(column)) < situation.absent, np.nan, column)
            for name, column in table.items()
        }
    return table


def estimated(situation: Situation, table: Table) -> Any:
    """Return the answer of `effect`."""
    options: dict[str, Any] = {}
    if situation.clusters:
        options["clusters"] = situation.clusters
    if situation.absent:
        options["missing"] = ist.ExpectationMaximisation()
    if table["x"].dtype.kind == "U":
        options["change"] = ("c", "t")
    return ist.effect(table, graph(situation, table), "x", "y", **options)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    started = process_time()
    print("# Effects in situations with a known answer\n\n<!-- table -->\n")
    print("| situation | rows | coverage of `effect` | mean | truth | error / spread |")
    print("| --- | --- | --- | --- | --- | --- |")
    for situation in SITUATIONS:
        if options.only not in situation.name:
            continue
        hits, values, errors = [], [], []
        for seed in range(options.tables):
            answer = estimated(situation, simulated(situation, seed))
            low, high = answer.interval()
            hits.append(low <= situation.truth <= high)
            values.append(answer.value)
            errors.append(answer.standard_error)
        ratio = np.mean(errors) / np.std(values)
        print(
            f"| {situation.name} | {situation.rows:,} | {100 * np.mean(hits):.1f}% "
            f"| {np.mean(values):.3f} | {situation.truth:.3f} | {ratio:.2f} |",
            flush=True,
        )
    seconds = process_time() - started
    command = f"python benchmarks/effects/one_question.py --tables {options.tables}"
    print(f"\n`{command}`, {seconds:.0f} CPU s.")


if __name__ == "__main__":
    main()
