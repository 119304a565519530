"""Coverage of the 95% intervals of `Solution.effect` for discrete causes.

Tables are drawn from random networks of discrete, or of discrete and continuous variables. The true
effect of changing a binary cause is that of simulated interventions: rows drawn from the network
after the cause is set to both of its levels with the same random numbers (discrete networks: the
exact distribution). Each table contributes one random pair of variables with a directed path, and
one without, to each kind that it has. "identified" means that the learned class identifies the
effect. If it does not, the interval of the range is counted. Run it with

    python benchmarks/effects/discrete.py --tables 1000 > benchmarks/results/effects-discrete.md
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

import isthmus as ist
from isthmus.errors import DataError
from isthmus.networks import (
    ConditionalGaussian,
    DiscreteNetwork,
    MixedNetwork,
    MultinomialLogit,
    ProbabilityTable,
)

KINDS = ("effect", "no effect", "not identified: range")


@dataclass(frozen=True)
class Setting:
    """How tables are simulated, and what is told to the search."""

    name: str
    rows: int
    continuous: int
    ordered: bool = True
    smallest: float = 1.0


SETTINGS = (
    Setting("discrete, order known", 500, 0),
    Setting("discrete, order known", 2000, 0),
    Setting("discrete, rare levels, order known", 1000, 0, smallest=0.3),
    Setting("mixed, order known", 500, 3),
    Setting("mixed, order known", 2000, 3),
    Setting("discrete", 2000, 0, ordered=False),
    Setting("mixed", 2000, 3, ordered=False),
)


def random_network(setting: Setting, rng: np.random.Generator) -> DiscreteNetwork | MixedNetwork:
    """Return a network of six variables, on average with two neighbours each."""
    nodes = [f"v{i}" for i in range(6)]
    order = rng.permutation(nodes).tolist()
    edges = [(a, b) for j, b in enumerate(order) for a in order[:j] if rng.random() < 0.4]
    dag = ist.DAG(nodes, edges)
    numbers = set(nodes[6 - setting.continuous :])
    levels = {v: tuple("abc"[: rng.integers(2, 4)]) for v in nodes if v not in numbers}
    levels["v0"] = ("a", "b")
    parts: dict[str, Any] = {}
    for v in nodes:
        discrete = tuple(p for p in dag.parents(v) if p not in numbers)
        linear = tuple(p for p in dag.parents(v) if p in numbers)
        sizes = tuple(len(levels[p]) for p in discrete)
        if v in numbers:
            intercepts = rng.normal(size=sizes)
            slopes = rng.normal(0, 0.7, size=(*sizes, len(linear)))
            spread = rng.uniform(0.5, 1.5, size=sizes)
            parts[v] = ConditionalGaussian(discrete, linear, intercepts, slopes, spread)
        elif linear:
            size = len(levels[v])
            parts[v] = MultinomialLogit(
                levels[v], discrete, linear, rng.normal(0, 0.7, size),
                tuple(rng.normal(0, 0.7, (s, size)) for s in sizes),
                rng.normal(0, 0.7, (len(linear), size)),
            )  # fmt: skip
        else:
            chances = rng.dirichlet(np.full(len(levels[v]), 2.0 * setting.smallest), size=sizes)
            parts[v] = ProbabilityTable(levels[v], discrete, chances)
    if numbers:
        return MixedNetwork(dag, parts)
    tables = {v: parts[v].probabilities for v in nodes}
    return DiscreteNetwork(dag, levels, tables)


def truth_of(network: Any, cause: str, effect: str) -> float:
    """Return the effect of changing the cause from its first to its second level."""
    answers = []
    for level in network.levels[cause][:2]:
        if isinstance(network, DiscreteNetwork):
            answers.append(network.query(effect, do={cause: level})[network.levels[effect][1]])
            continue
        rng, columns, n = np.random.default_rng(0), {}, 60_000
        for v in network.dag.topological_order():
            columns[v] = network.conditionals[v].draw(columns, n, rng)
            if v == cause:
                columns[v] = np.full(n, network.levels[cause].index(level))
        column = columns[effect]
        answers.append(float((column == 1).mean() if effect in network.levels else column.mean()))
    return answers[1] - answers[0]


def one_table(setting: Setting, seed: int) -> dict[str, bool | None]:
    """Return for each kind of pair whether the interval of a random one covers."""
    rng = np.random.default_rng([seed, setting.rows, *setting.name.encode()])
    network = random_network(setting, rng)
    known = None
    if setting.ordered:
        known = ist.Knowledge(tiers=[[v] for v in network.dag.topological_order()])
    table = network.sample(setting.rows, seed=seed)
    kinds = {v: "discrete" if v in network.levels else "continuous" for v in network.dag.nodes}
    solution = ist.learn(table, knowledge=known, kinds=kinds)
    found: dict[str, bool | None] = {}
    causes = [v for v in network.levels if v in solution.dag.nodes]
    pairs = [(a, b) for a in causes for b in solution.dag.nodes if a != b]
    for place in rng.permutation(len(pairs)):
        cause, effect = pairs[place]
        if known is not None and known.excludes_path(solution.dag.nodes, cause, effect):
            continue
        if effect in network.levels and len(set(table[effect])) < len(network.levels[effect]):
            continue
        options: dict[str, Any] = {"change": network.levels[cause][:2]}
        if effect in network.levels:
            options["outcome"] = network.levels[effect][1]
        path = effect in network.dag.descendants(cause)
        kind = "effect" if path else "no effect"
        if kind in found and (setting.ordered or "not identified: range" in found):
            continue
        try:
            estimate = solution.effect(cause, effect, **options)
        except (DataError, ist.errors.SchemaError):
            found.setdefault("refused", None)
            continue
        if estimate.zero is not None:
            continue
        kind = kind if estimate.identified else "not identified: range"
        if kind not in found:
            low, high = estimate.interval()
            found[kind] = low <= truth_of(network, cause, effect) <= high
    return found


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--only", type=int, nargs="*", default=range(len(SETTINGS)))
    options = parser.parse_args()
    print("# Coverage of the 95% intervals of effects of discrete causes\n\n<!-- table -->\n")
    print(f"| setting | rows | {' | '.join(KINDS)} | tables with a refusal |")
    print("| --- | --- |" + " --- |" * (len(KINDS) + 1))
    for setting in (SETTINGS[i] for i in options.only):
        results = defaultdict(list)
        for seed in range(options.tables):
            for kind, inside in one_table(setting, seed).items():
                results[kind].append(inside)
        cells = [
            f"{100 * np.mean(results[kind]):.1f} ({len(results[kind])})" if results[kind] else "–"
            for kind in KINDS
        ]
        cells.append(str(len(results["refused"])))
        print(f"| {setting.name} | {setting.rows:,} | {' | '.join(cells)} |", flush=True)
    print(
        "\nPercent of intervals that cover the true effect, and the number of pairs in brackets. "
        f"Command: `python benchmarks/effects/discrete.py --tables {options.tables}`."
    )


if __name__ == "__main__":
    import warnings

    warnings.simplefilter("ignore")
    main()
