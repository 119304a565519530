"""The most probable levels of discrete nodes of a mixed network, by elimination.

If every number that matters is observed, the rest is a discrete network: its tables are computed
from the distributions at these numbers, and the density of what is observed is a likelihood.
"""

from __future__ import annotations

from math import prod

import numpy as np

from isthmus.graphs import DAG
from isthmus.models.inference import Elimination
from isthmus.models.mixed_queries import MixedQuery
from isthmus.types import Floats

_CELLS = 1_000_000
"""Maximum number of cells of a table."""


def most_probable_codes(question: MixedQuery) -> tuple[dict[str, int], float] | None:
    """Return the most probable codes of the targets, jointly, and their log-probability.

    None if a number that matters is not known exactly, or a table is too large.
    """
    known, own = {**question.evidence, **question.do}, question.conditionals
    nodes = question.relevant()
    hidden = [v for v in nodes if v not in known]
    if any(not own[v].levels for v in hidden):
        return None
    tables: dict[str, Floats] = {}
    edges: list[tuple[str, str]] = []
    for name in nodes:
        if name in question.do:
            continue
        parents = [p for p in hidden if p in own[name].parents]
        sizes = [len(own[p].levels) for p in parents]
        shape = [*sizes, len(own[name].levels) if name in hidden else 1]
        if prod(shape) > _CELLS:
            return None
        places = np.indices(shape).reshape(len(shape), -1)
        columns = {v: np.full(places.shape[1], x) for v, x in known.items()}
        columns |= dict(zip(parents, places[:-1], strict=True))
        value = places[-1] if name in hidden else columns[name]
        logs = own[name].log_density(value, columns).reshape(shape)
        if name in hidden:
            tables[name] = np.exp(logs)
        else:  # an event whose probability is proportional to the density
            chance = np.exp(logs - logs.max())
            tables[name] = np.concatenate([chance, 1.0 - chance], axis=-1)
        edges += [(p, name) for p in parents]
    dag = DAG(list(tables), edges)
    order = {name: [p for p in hidden if p in own[name].parents] for name in tables}
    for name, parents in order.items():  # the axes are in the order of the graph
        axes = [parents.index(p) for p in dag.parents(name)]
        tables[name] = tables[name].transpose([*axes, len(parents)])
    codes, logarithm = Elimination(dag, tables).most_probable(
        [dag.index(v) for v in question.targets],
        {dag.index(v): 0 for v in tables if v in question.evidence},
        {dag.index(v): likelihood for v, likelihood in question.likelihoods.items()},
    )
    return {v: codes[dag.index(v)] for v in question.targets}, logarithm


def likely_codes(question: MixedQuery, simulations: int, seed: int) -> tuple[dict[str, int], float]:
    """Return the same from simulations: the best of the levels that were drawn often.

    The probability of a candidate is that of its levels given the drawn numbers, on average; levels
    are then changed one by one as long as that makes them more probable.
    """
    columns, weights = question.drawn(simulations, seed)
    targets, own = question.targets, question.conditionals
    codes = np.array([columns[v] for v in targets], np.intp).T
    distinct, place = np.unique(codes, axis=0, return_inverse=True)
    shares = np.bincount(place.ravel(), weights, len(distinct))
    some = min(len(weights), _DRAWS)
    total = question.log_weight(some, seed)

    def value(candidate: tuple[int, ...]) -> float:
        told = dict(zip(targets, map(float, candidate), strict=True))
        return question.given(told).log_weight(some, seed) - total

    starts = distinct[np.argsort(-shares)[:_STARTS]].tolist()
    known = {tuple(start): value(tuple(start)) for start in starts}
    best = max(known, key=known.__getitem__)
    while True:
        near = [
            (*best[:i], code, *best[i + 1 :])
            for i, v in enumerate(targets)
            for code in range(len(own[v].levels))
        ]
        known |= {c: value(c) for c in near if c not in known}
        better = max(known, key=known.__getitem__)
        if better == best:
            return dict(zip(targets, best, strict=True)), known[best]
        best = better


_STARTS = 20
"""Drawn combinations of levels from which the search starts."""
_DRAWS = 5000
"""Draws of the unknown numbers for the probability of each candidate."""
