"""Posteriors over a few nodes by enumeration, from random weights of families."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np

from isthmus.kernels.mcmc import FamilyTables, partition_of
from isthmus.kernels.scoring import python_score
from isthmus.testing import enumerate_dags

State = tuple[int, ...]
Distribution = dict[State, float]


@dataclass(frozen=True)
class Weights:
    """Random weights of all families, with some of them left out.

    ``spread`` is the standard deviation of their logarithms. With ``count``, the candidates of
    each node are so many random others, and ``outside`` says whether one more may be a parent.
    """

    d: int
    seed: int
    spread: float = 3.0
    count: int | None = None
    outside: bool = False
    max_parents: int | None = None
    required: tuple[tuple[int, int], ...] = ()
    forbidden: tuple[tuple[int, int], ...] = ()

    @cached_property
    def values(self) -> np.ndarray:
        rng = np.random.default_rng([self.d, self.seed])
        sizes = np.array([mask.bit_count() for mask in range(2**self.d)])
        return self.spread * (rng.normal(size=(self.d, 2**self.d)) - 0.7 * sizes)

    @cached_property
    def candidates(self) -> np.ndarray:
        rng = np.random.default_rng([self.d, self.seed, 1])
        chosen = ~np.eye(self.d, dtype=np.bool_)
        if self.count is not None:
            for v in range(self.d):
                others = rng.permutation(np.delete(np.arange(self.d), v))
                chosen[others[self.count :], v] = False
        return chosen

    def edges(self, pairs: tuple[tuple[int, int], ...]) -> np.ndarray:
        flags = np.zeros((self.d, self.d), np.bool_)
        for a, b in pairs:
            flags[a, b] = True
        return flags

    def log_weight(self, child: int, parents: tuple[int, ...]) -> float:
        """Return the logarithm of the weight of a family; minus infinity if it is left out."""
        required = [a for a, b in self.required if b == child]
        strangers = [
            p for p in parents if not self.candidates[p, child] and (p, child) not in self.required
        ]
        most = self.d if self.max_parents is None else max(self.max_parents, len(required))
        allowed = (
            len(strangers) <= int(self.outside)
            and len(parents) <= most
            and set(required) <= set(parents)
            and not any((p, child) in self.forbidden for p in parents)
        )
        return float(self.values[child, sum(1 << p for p in parents)]) if allowed else -np.inf

    def tables(self) -> FamilyTables:
        def score(child: int, parents: tuple[int, ...]) -> float:
            return float(self.values[child, sum(1 << int(p) for p in parents)])

        tables = FamilyTables(
            python_score(self.d, score),
            self.candidates,
            outside=self.outside,
            required=self.edges(self.required),
            forbidden=self.edges(self.forbidden),
            max_parents=self.max_parents,
        )
        while not tables.step():
            pass
        return tables

    @cached_property
    def graphs(self) -> Distribution:
        """Posterior probability of every graph, which is the tuple of its parent masks."""
        names = [str(v) for v in range(self.d)]
        logs = {}
        for dag in enumerate_dags(names):
            parents = [tuple(sorted(int(p) for p in dag.parents(name))) for name in names]
            total = sum(self.log_weight(v, own) for v, own in enumerate(parents))
            if np.isfinite(total):
                logs[tuple(sum(1 << p for p in own) for own in parents)] = total
        top = max(logs.values())
        weights = {graph: float(np.exp(value - top)) for graph, value in logs.items()}
        total = sum(weights.values())
        return {graph: weight / total for graph, weight in weights.items()}

    @cached_property
    def partitions(self) -> Distribution:
        """Posterior probability of every partition that has a graph."""
        result: Distribution = defaultdict(float)
        for graph, probability in self.graphs.items():
            result[tuple(partition_of([members(own) for own in graph]).tolist())] += probability
        return dict(result)

    @cached_property
    def orders(self) -> Distribution:
        """The biased target of orders: a graph counts once for each of its orders."""
        result: Distribution = defaultdict(float)
        for graph, probability in self.graphs.items():
            for places in permutations(range(self.d)):
                if all(places[p] < places[v] for v, own in enumerate(graph) for p in members(own)):
                    result[places] += probability
        return normalised(result)


def members(mask: int) -> list[int]:
    """Return the members of a set."""
    return [p for p in range(mask.bit_length()) if mask >> p & 1]


def normalised(weights: Distribution, power: float = 1.0) -> Distribution:
    """Scale powers of weights so that they sum to one."""
    raised = {state: weight**power for state, weight in weights.items()}
    total = sum(raised.values())
    return {state: weight / total for state, weight in raised.items()}


def distance(a: Distribution, b: Distribution) -> float:
    """Return the largest difference between two distributions."""
    return max(abs(a.get(state, 0.0) - b.get(state, 0.0)) for state in a.keys() | b.keys())
