"""Changes of one mechanism among ten: is it named, is its share right, and no other named?

python benchmarks/changes.py [repetitions]
python benchmarks/changes.py without 4000
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np

import isthmus as ist
from isthmus import simulate
from isthmus.networks import GaussianNetwork

ROWS, NODES, EDGES = 2000, 10, 15


def network(dag: ist.DAG, rng: np.random.Generator) -> GaussianNetwork:
    weights = {
        v: {p: rng.uniform(0.4, 0.9) * rng.choice([-1, 1]) for p in dag.parents(v)}
        for v in dag.nodes
    }
    spread = {v: rng.uniform(0.7, 1.3) ** 2 for v in dag.nodes}
    return GaussianNetwork(dag, {v: rng.normal() for v in dag.nodes}, weights, spread)


def changed(
    old: GaussianNetwork, kind: str, node: str, rng: np.random.Generator
) -> GaussianNetwork:
    """Return a network with one change: a quarter of a deviation, 0.2 of a slope, or 44%."""
    if kind == "intercept":
        moved = old.intercepts[node] + 0.25 * np.sqrt(old.variances[node])
        return replace(old, intercepts={**old.intercepts, node: moved})
    if kind == "variance":
        return replace(old, variances={**old.variances, node: 1.44 * old.variances[node]})
    own = dict(old.coefficients[node])
    own[str(rng.choice(sorted(own)))] += 0.2 * rng.choice([-1, 1])
    return replace(old, coefficients={**old.coefficients, node: own})


def without(repetitions: int) -> None:
    """Print how often a change is named where there is none, with rows and from sums."""
    found = []
    for r in range(500, 500 + repetitions):
        if r % 1000 == 500:
            rng = np.random.default_rng(1000 + r)
        dag = simulate.erdos_renyi(NODES, EDGES, seed=r)
        same = network(dag, rng)
        outcome = max(dag.nodes, key=lambda v: len(dag.ancestors(v)))
        before, after = (same.sample(ROWS, seed=10_000_000 + 2 * r + k) for k in (0, 1))
        answer = ist.changes(before, after, dag, outcome, draws=20)
        smallest = min(m.p_from_sums for m in answer.mechanisms)
        found.append((bool(answer.changed), NODES * smallest <= answer.alpha))
    rows, sums = np.mean(found, axis=0)
    print(f"A change was named in {rows:.4f} of {repetitions} pairs, from sums in {sums:.4f}.")


def main() -> None:
    if sys.argv[1:2] == ["without"]:
        without(int(sys.argv[2]))
        return
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rng = np.random.default_rng(5)
    found: dict[str, list[tuple[float, ...]]] = {"intercept": [], "slope": [], "variance": []}
    begin = time.process_time()
    for r in range(repetitions):
        kind = [*found][r % 3]
        dag = simulate.erdos_renyi(NODES, EDGES, seed=r)
        old = network(dag, rng)
        outcome = max(dag.nodes, key=lambda v: len(dag.ancestors(v)))
        causes = [*dag.ancestors(outcome), outcome]
        target = str(rng.choice([v for v in causes if kind != "slope" or dag.parents(v)]))
        new = changed(old, kind, target, rng)
        tables = [net.sample(ROWS, seed=3 * r + k) for k, net in enumerate((old, new, old))]
        spread = kind == "variance"
        answer = ist.changes(tables[0], tables[1], dag, outcome, spread=spread)
        same = ist.changes(tables[0], tables[2], dag, outcome, spread=spread, draws=20)
        place = dag.index(outcome)
        ends = [n.covariance()[place, place] if spread else n.mean()[place] for n in (old, new)]
        truth = float(ends[1] - ends[0])
        own = next((m for m in answer.changed if m.node == target), None)
        first = bool(answer.changed) and answer.changed[0].node == target
        covered = own is not None and own.interval[0] <= truth <= own.interval[1]
        whole = sum(m.share for m in answer.changed) + answer.others - answer.total
        found[kind].append((own is not None, first, covered, bool(same.changed), abs(whole)))
    seconds = (time.process_time() - begin) / repetitions / 2
    print("| change of | named | first by share | interval contains the truth | false without |")
    print("| --- | --- | --- | --- | --- |")
    everything = [row for rows in found.values() for row in rows]
    for kind, rows in {**found, "any of them": everything}.items():
        named, first, covered, false, _ = np.mean(rows, axis=0)
        print(f"| {kind} | {named:.3f} | {first:.3f} | {covered:.3f} | {false:.3f} |")
    gap = max(row[-1] for row in everything)
    print(
        f"\nShares differ from the whole change by at most {gap:.0e}; {seconds:.2f} s per answer."
    )


if __name__ == "__main__":
    main()
