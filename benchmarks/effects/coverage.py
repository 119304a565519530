"""Coverage of the 95% intervals of `Solution.effect`, on tables simulated from linear models.

Each row of the result is a setting: how the tables were simulated and what was known. Each table
contributes one random ordered pair of variables to each kind of pair that it has. "identified"
means that the learned class identifies the effect; the true effect may be zero. If it does not, two
intervals are counted: that of the range, and that of the alternative whose parents of the cause are
the true ones. "zero by learned direction" has no interval: it counts how often zero is right.
"class right" counts the other identified pairs of tables whose learned equivalence class is the
true one. "posterior" is the central interval of `Posterior.effects` for a random pair, which
averages over graphs; it is computed for every 20th table. Run it with

    python benchmarks/effects/coverage.py --tables 1000 > benchmarks/results/effects-coverage.md
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from dataclasses import dataclass
from time import process_time

import numpy as np

import isthmus as ist
from isthmus.results import EffectEstimate, ZeroEffect

KINDS = (
    "identified, effect",
    "identified, no effect",
    "zero by learned direction",
    "not identified: range",
    "not identified: true parents",
    "identified, class right",
    "posterior",
)


@dataclass(frozen=True)
class Setting:
    """How tables are simulated, and what is told to the search."""

    name: str
    variables: int
    rows: int
    degree: float
    weights: tuple[float, float]
    ordered: bool
    unequal: bool = False  # whether the noise of a variable grows with its strongest parent


SETTINGS = (
    Setting("strong, order known", 6, 500, 2, (0.5, 1.0), ordered=True),
    Setting("weak, order known", 6, 200, 2, (0.05, 0.25), ordered=True),
    Setting("mixed, order known", 6, 200, 3, (0.05, 1.0), ordered=True),
    Setting("mixed, order known, 20 variables", 20, 300, 3, (0.05, 1.0), ordered=True),
    Setting(
        "strong, order known, unequal noise", 6, 500, 2, (0.5, 1.0), ordered=True, unequal=True
    ),
    Setting(
        "mixed, order known, unequal noise", 6, 200, 3, (0.05, 1.0), ordered=True, unequal=True
    ),
    Setting("strong", 6, 1000, 2, (0.5, 1.0), ordered=False),
    Setting("strong, 10,000 rows", 6, 10000, 2, (0.5, 1.0), ordered=False),
    Setting("strong, 20 variables", 20, 1000, 2, (0.5, 1.0), ordered=False),
    Setting("weak", 6, 200, 2, (0.05, 0.25), ordered=False),
    Setting("mixed", 6, 300, 2, (0.05, 1.0), ordered=False),
)


def simulate(setting: Setting, rng: np.random.Generator) -> tuple[ist.DAG, np.ndarray, np.ndarray]:
    """Return a graph, its total effects ``[cause, effect]``, and rows."""
    d = setting.variables
    names = [f"v{i}" for i in range(d)]
    order = rng.permutation(d)
    weights = np.zeros((d, d))
    for later in range(d):
        for earlier in range(later):
            if rng.random() < setting.degree / (d - 1):
                size = rng.uniform(*setting.weights) * rng.choice((-1, 1))
                weights[order[earlier], order[later]] = size
    edges = [(names[i], names[j]) for i, j in np.argwhere(weights)]
    effects = np.linalg.inv(np.eye(d) - weights)
    noise = rng.normal(size=(setting.rows, d))
    rows = noise @ effects
    if setting.unequal:
        rows = np.zeros_like(noise)
        for j in order:
            strongest = rows[:, np.abs(weights[:, j]).argmax()]
            scale = np.abs(strongest) / strongest.std() if weights[:, j].any() else 1.0
            rows[:, j] = rows @ weights[:, j] + scale * noise[:, j]
    return ist.DAG(names, edges), effects, rows


def classify(estimate: EffectEstimate, truth: float) -> str:
    """Return the kind of a pair."""
    if not estimate.identified:
        return "not identified: range"
    if estimate.zero is ZeroEffect.DIRECTION:
        return "zero by learned direction"
    return "identified, effect" if truth else "identified, no effect"


def covered(interval: tuple[float, float], truth: float) -> bool:
    """Return whether an interval contains the truth."""
    return bool(interval[0] - 1e-12 <= truth <= interval[1] + 1e-12)


def one_table(setting: Setting, seed: int) -> dict[str, bool]:
    """Return for each kind of pair whether the interval of a random one covers."""
    rng = np.random.default_rng([seed, *setting.name.encode()])
    dag, effects, rows = simulate(setting, rng)
    known = None
    if setting.ordered:
        known = ist.Knowledge(tiers=[[name] for name in dag.topological_order()])
    table = {name: rows[:, i] for i, name in enumerate(dag.nodes)}
    solution = ist.learn(table, knowledge=known)
    found: dict[str, bool] = {}
    true_class = dag.cpdag() if known is None else dag.cpdag(known)
    pairs = [(a, b) for a in dag.nodes for b in dag.nodes if a != b]
    if setting.variables <= 6 and seed % 20 == 0:
        open_pairs = [p for p in pairs if not (known and known.excludes_path(dag.nodes, *p))]
        cause, effect = open_pairs[rng.integers(len(open_pairs))]
        drawn = ist.sample(table, draws=250, knowledge=known, seed=seed).effects(cause, effect)
        low, high = np.quantile(drawn, [0.025, 0.975])
        truth = float(effects[dag.index(cause), dag.index(effect)])
        found["posterior"] = covered((low, high), truth)
    for place in rng.permutation(len(pairs))[:30]:
        cause, effect = pairs[place]
        estimate = solution.effect(cause, effect)
        truth = float(effects[dag.index(cause), dag.index(effect)])
        kind = classify(estimate, truth)
        if estimate.zero is ZeroEffect.KNOWLEDGE or kind in found:
            continue
        interval = (0.0, 0.0) if estimate.zero else estimate.interval()
        found[kind] = covered(interval, truth)
        if estimate.identified and not estimate.zero and solution.cpdag == true_class:
            found["identified, class right"] = found[kind]
        for each in estimate.alternatives if not estimate.identified else ():
            if each.parents == dag.parents(cause) and effect not in each.parents:
                found["not identified: true parents"] = covered(each.interval(), truth)
    return found


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--only", type=int, nargs="*", help="positions of settings")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    started = process_time()
    print("# Coverage of the 95% intervals of effects\n\n<!-- table -->\n")
    print(f"| setting | variables | rows | {' | '.join(KINDS)} |")
    print(f"| {' | '.join(['---'] * (3 + len(KINDS)))} |")
    for place, setting in enumerate(SETTINGS):
        if options.only and place not in options.only:
            continue
        hits = defaultdict(list)
        for seed in range(options.tables):
            for kind, hit in one_table(setting, seed).items():
                hits[kind].append(hit)
        cells = [
            f"{100 * np.mean(hits[kind]):.1f} ({len(hits[kind])})" if hits[kind] else "–"
            for kind in KINDS
        ]
        row = (setting.name, str(setting.variables), f"{setting.rows:,}", *cells)
        print(f"| {' | '.join(row)} |", flush=True)
    seconds = process_time() - started
    print("\nPercent of intervals that cover the true effect, and the number of pairs in brackets.")
    print("Pairs that are zero by a learned direction have no interval: the percentage says how")
    print("often zero is right.")
    print(
        f"`python benchmarks/effects/coverage.py --tables {options.tables}`, {seconds:.0f} CPU s."
    )


if __name__ == "__main__":
    main()
