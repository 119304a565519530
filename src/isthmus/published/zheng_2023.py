"""RBNets (Zheng, Wang, Gao and Chen 2023)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.errors import ArgumentError
from isthmus.graphs import DAG
from isthmus.scores import BIC
from isthmus.searches.base import TableLines
from isthmus.searches.boss import KnownOrder
from isthmus.searches.rbnets import Replay, Visits, Walks
from isthmus.verbs.learn import solve
from isthmus.verbs.score import parent_sets
from isthmus.watch import Watch

_LEARNING_RATE, _REPLAY, _BATCH, _REPLACE_EVERY = 0.001, 2000, 200, 300
"""α, N_r, N_b and N⁻ of section 4.1."""
_HIDDEN = (64, 64)
"""Units of the hidden layers: our choice, because the paper does not say."""


@final
@dataclass(frozen=True, eq=False)
class LearnedOrder:
    """The network of the order that the final policy takes.

    Attributes
    ----------
    dag
        The network: the best listed parents of each variable among those before it.
    score
        Its BIC.
    order
        The order of the policy.
    walks
        The BIC of the order of each episode, in the order of the episodes.
    """

    dag: DAG
    score: float
    order: tuple[str, ...] = field(repr=False)
    walks: Floats = field(repr=False)


def rbnets(
    data: object,
    *,
    episodes: int = 300,
    epsilon: float | None = None,
    max_parents: int | None = None,
    seed: int = 0,
) -> LearnedOrder:
    """Learn an order of discrete variables by a double deep Q-network, as published (RBNets).

    Algorithms 1 and 2: list the parent sets that can be optimal under the BIC, learn by walks
    through the order graph, and return the network of the order that the final policy takes. Needs
    the extra ``neural``. We recommend ``learn(data)``: exact and greedy searches over the same
    parent sets find better networks in less time in all our measurements.

    Parameters
    ----------
    data
        A table of discrete variables.
    episodes
        M, the number of walks.
    epsilon
        None explores by upper confidence bounds, as the paper proposes. A number takes a random
        action with this probability instead: the ε-greedy rule that section 3.2 compares with.
    max_parents
        Maximum number of parents; None for the limit that the BIC implies.
    seed
        Random seed.

    References
    ----------
    Z. Zheng, C. Wang, X. Gao and G. Chen. RBNets: A Reinforcement Learning Approach for Learning
    Bayesian Network Structure. ECML PKDD 2023. doi:10.1007/978-3-031-43418-1_12.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import published
    >>> data = ist.datasets.asia(rows=500, seed=1)
    >>> result = published.rbnets(data, episodes=30)
    >>> sorted(result.order) == sorted(data.dag.nodes), len(result.walks)
    (True, 30)
    """
    if episodes < 1:
        raise ArgumentError(f"episodes must be at least 1; {episodes} was given.")
    if epsilon is not None and not 0 <= epsilon <= 1:
        raise ArgumentError(f"epsilon must be between 0 and 1; {epsilon} was given.")
    table = parent_sets(data, score=BIC(), max_parents=max_parents, jobs=1)
    agent = _Learner(TableLines(table, Watch()), epsilon, np.random.default_rng(seed))
    walks = [agent.episode() for _ in range(episodes)]
    order = tuple(table.nodes[v] for v in agent.policy().tolist())
    solution = solve(table, search=KnownOrder(order))
    assert solution.score is not None
    return LearnedOrder(solution.dag, solution.score, order, np.array(walks))


@final
class _Learner:
    """Algorithm 1, with one target per transition of a batch."""

    def __init__(self, lines: TableLines, epsilon: float | None, rng: np.random.Generator) -> None:
        from isthmus.neural.dqn import QNetwork

        self._network = QNetwork(
            lines.needed, hidden=_HIDDEN, rate=_LEARNING_RATE, discount=1.0, duelling=False, rng=rng
        )
        self._lines, self._epsilon, self._rng = lines, epsilon, rng
        self._visits = Visits()
        self._replay = Replay(_REPLAY, len(lines.table.nodes))
        self._steps = 0

    def episode(self) -> float:
        """Walk once, with one training step per action; return the sum of the rewards."""
        from isthmus.neural.dqn import ReplayBatch

        walk = Walks(self._lines.kernel, 1)
        while not walk.ended:
            before, action = walk.sets[0].copy(), self._explore(walk)
            self._replay.add(before, action, float(walk.take(np.array([action]))[0]))
            self._network.learn(ReplayBatch(*self._replay.draw(_BATCH, self._rng)))
            self._steps += 1
            if self._steps % _REPLACE_EVERY == 0:
                self._network.replace_target()
        return float(walk.totals[0])

    def policy(self) -> Integers:
        """Return the order of the actions with the highest values."""
        walk = Walks(self._lines.kernel, 1)
        while not walk.ended:
            walk.take(np.array([self._best(walk)]))
        order: Integers = walk.orders[0]
        return order

    def _explore(self, walk: Walks) -> int:
        allowed = np.flatnonzero(walk.allowed()[0])
        if self._epsilon is not None:
            if self._rng.random() < self._epsilon:
                return int(self._rng.choice(allowed))
            return self._best(walk)
        values = self._values(walk)
        key, bonus = self._visits.bonuses(walk.sets[0])
        worth = values[allowed]
        if bonus is not None:
            extra = bonus[allowed]
            # The bonus of an untried action is infinite; among several, the values decide.
            untried = np.isinf(extra)
            worth = np.where(untried, worth, -np.inf) if untried.any() else worth + extra
        action = int(allowed[np.argmax(worth)])
        self._visits.count(key, action, len(values))
        return action

    def _best(self, walk: Walks) -> int:
        return int(np.argmax(np.where(walk.allowed()[0], self._values(walk), -np.inf)))

    def _values(self, walk: Walks) -> Floats:
        values: Floats = self._network.values(walk.sets.astype(np.float32))[0]
        return values
