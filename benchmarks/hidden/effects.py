"""Effects in PAGs: is an adjustment set found exactly if one is valid in all graphs of the class?

    python benchmarks/hidden/effects.py > benchmarks/results/hidden-effects.md

All classes of up to 4 variables: their maximal ancestral graphs, also with hidden common causes of
one, two or all pairs of cause and effect where that changes no separation, are compared with the
answer by the adjustment criterion for DAGs. Random DAGs with 6 to 9 variables, of which up to 2 are
hidden: the regression coefficient in the exact covariance of a linear model is compared with the
sum over directed paths, without knowledge and with two tiers. It takes about five CPU minutes.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from functools import partial
from itertools import combinations, permutations
from pathlib import Path

import numpy as np

import isthmus as ist
from isthmus import simulate
from isthmus.graphs.identification import find_adjustment
from isthmus.graphs.names import mask_of, reach, topological, transpose
from isthmus.graphs.orientation import is_valid_adjustment
from isthmus.searches import drive
from isthmus.testing import SeparationOracle

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.graphs.classes_with_hidden_causes import (
    _maximal,
    _with_hidden,
    orientations,
    signature,
)

MODELS = 800


def with_more_hidden(parents, pairs):
    more = list(parents)
    for a, b in pairs:
        more[a] |= 1 << len(more)
        more[b] |= 1 << len(more)
        more.append(0)
    return more


def classes(size):
    groups = defaultdict(list)
    pairs = list(combinations(range(size), 2))
    for skeleton in (s for k in range(len(pairs) + 1) for s in combinations(pairs, k)):
        for marks in orientations(size, skeleton):
            parents = _with_hidden(size, skeleton, marks)
            key = signature(parents, size)
            if not _maximal(key, size, skeleton):
                continue
            groups[key].append(parents)
            directed = [pair for pair, mark in zip(skeleton, marks, strict=True) if mark != 2]
            for number in {1, 2, len(directed)} - {0}:
                for chosen in combinations(directed, number):
                    more = with_more_hidden(parents, chosen)
                    if signature(more, size) == key:
                        groups[key].append(more)
    return list(groups.values())


def enumerated(size):
    counts, groups = Counter(), classes(size)
    for own in groups:
        names = tuple(f"v{i}" for i in range(len(own[0])))
        pag = ist.PAG.from_dag(ist.DAG.from_masks(names, own[0]), names[size:])
        graphs = [(p, transpose(p, len(p))) for p in own]
        for x, y in permutations(range(size), 2):
            answer = find_adjustment(pag, names[x], names[y])
            others = [v for v in range(size) if v not in (x, y)]
            sets = [mask_of(z) for k in range(size - 1) for z in combinations(others, k)]
            if not answer.has_path:
                counts["zero"] += 1
                counts["wrong"] += any(reach(1 << x, c) >> y & 1 for _, c in graphs)
                continue
            valid = [z for z in sets if all(is_valid_adjustment(*g, x, y, z) for g in graphs)]
            if answer.variables is None:
                counts["none"] += 1
                counts["wrong"] += bool(valid)
            else:
                counts["adjusted"] += 1
                counts["wrong"] += mask_of(map(pag.index, answer.variables)) not in valid
    return len(groups), sum(map(len, groups)), counts


def learned(dag, hidden, rng):
    """Return the PAG of an oracle that knows two tiers."""
    oracle = SeparationOracle(dag, hidden)
    order = topological([[dag.index(p) for p in dag.parents(v)] for v in dag.nodes])
    seen = [dag.nodes[i] for i in order if dag.nodes[i] not in hidden]
    cut = int(rng.integers(1, len(seen)))
    knowledge = ist.Knowledge(tiers=[seen[:cut], seen[cut:]]).bind(oracle.nodes)
    return drive(partial(ist.FCI().search, oracle, knowledge, rng), "oracle")[0].pag


def linear(tiers):
    counts = Counter()
    for seed in range(MODELS):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(6, 10))
        dag = simulate.erdos_renyi(size, int(rng.integers(size, 2 * size)), seed=seed)
        hidden = [dag.nodes[i] for i in rng.choice(size, int(rng.integers(0, 3)), replace=False)]
        pag = learned(dag, hidden, rng) if tiers else ist.PAG.from_dag(dag, hidden)
        weights = np.zeros((size, size))
        for a, b in dag.edges:
            weights[dag.index(a), dag.index(b)] = rng.uniform(0.4, 1.2) * rng.choice([-1, 1])
        total = np.linalg.inv(np.eye(size) - weights)
        covariance = total.T @ np.diag(rng.uniform(0.5, 2, size)) @ total
        for x, y in permutations(pag.nodes, 2):
            answer = find_adjustment(pag, x, y)
            i, j = dag.index(x), dag.index(y)
            if not answer.has_path:
                counts["zero"] += 1
                counts["wrong"] += abs(total[i, j]) > 1e-9
            elif answer.variables is None:
                counts["none"] += 1
            else:
                given = [i, *map(dag.index, answer.variables)]
                inner = covariance[np.ix_(given, given)]
                found = np.linalg.solve(inner, covariance[given, j])[0]
                counts["adjusted"] += 1
                counts["wrong"] += abs(found - total[i, j]) > 1e-8
    return counts


def main():
    print("# Effects in PAGs: the adjustment criterion against enumeration\n")
    print("`python benchmarks/hidden/effects.py`; see there for what is compared.\n")
    print("| graphs | pairs, effect zero | adjusted | not identified | wrong answers |")
    print("| --- | --- | --- | --- | --- |")
    names = ("zero", "adjusted", "none", "wrong")
    for size in (3, 4):
        number, members, counts = enumerated(size)
        text = f"all {number} classes of {size} variables, {members:,} members"
        print(f"| {text} | {' | '.join(f'{counts[name]:,}' for name in names)} |", flush=True)
    for tiers in (False, True):
        counts = linear(tiers)
        text = f"{MODELS} random linear models{', two tiers known' if tiers else ''}"
        print(f"| {text} | {' | '.join(f'{counts[name]:,}' for name in names)} |", flush=True)


if __name__ == "__main__":
    main()
