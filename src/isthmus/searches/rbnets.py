"""RBNets: a deep Q-network that learns in which order to place the variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools, Integers
from isthmus.graphs import BoundKnowledge
from isthmus.kernels import _native
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, LocalScore, ScoreTable
from isthmus.options import (
    require_boolean,
    require_instance,
    require_integer,
    require_integers,
    require_number,
)
from isthmus.results.details import RBNetsDetails
from isthmus.searches.base import Accepts, Search, SearchResult, climb
from isthmus.searches.table_searches import OrderSearchState
from isthmus.watch import Watch

_SWEEPS = 20
_WARM_STARTS = 3
_MAX_STATES = 300_000


@final
@dataclass(frozen=True)
class RBNetsVariant:
    """Changes to the published algorithm of :class:`RBNets`.

    Parameters
    ----------
    walks
        Number of parallel walks; each training step follows one step of all of them.
    shaping
        Whether the reward of a node is its loss compared with its best parents overall, in units
        of the average loss per node of a random order. This is potential-based shaping: the best
        orders stay the same.
    duelling
        Whether the network has separate heads for the value of a set and the advantages of nodes.
    warm_start
        Whether to train first on a few local optima of :class:`OBS`.
    polish
        Whether to improve the best walk of each episode by single moves, as :class:`Boss` does,
        and train on the result. Nearly all of the improvement comes from this.
    noise
        Scale of the random numbers added to the values, in units of the shaped reward. It grows
        from 0 in the first walk to this value in the last.
    """

    walks: int = 16
    shaping: bool = True
    duelling: bool = True
    warm_start: bool = True
    polish: bool = True
    noise: float = 0.3

    def __post_init__(self) -> None:
        require_integer(self, "walks", least=1)
        for name in ("shaping", "duelling", "warm_start", "polish"):
            require_boolean(self, name)
        require_number(self, "noise", least=0)


@final
@dataclass(frozen=True)
class RBNets(Search[LocalScore]):
    """Double deep Q-network that learns in which order to place the variables (Zheng et al. 2023).

    The state is the set of variables placed so far, an action places one more, and the reward is
    the score of its best listed parents within the set. Exploration uses upper confidence bounds,
    untried actions first. The defaults are those of the paper, except the size of the network,
    which the paper does not give. Unlike the printed algorithm, a target is computed for each
    transition of a batch, and the best order of all walks is returned instead of that of the final
    policy. In our benchmarks other order-based searches are better and faster.
    :func:`isthmus.published.rbnets` returns the order of the final policy, as printed. Needs the
    extra ``[neural]``.

    Parameters
    ----------
    episodes
        Number of walks from the empty set to all variables (per parallel walk).
    faithful
        Whether to follow the paper. If not, ``variant`` lists the changes.
    variant
        Changes to the published algorithm, used only if not ``faithful``.
    hidden
        Number of units of each hidden layer.
    learning_rate
        Learning rate of RMSProp.
    discount
        Discount factor of later rewards.
    replay
        Number of transitions in the replay buffer.
    batch
        Number of transitions per training step.
    replace_every
        Number of training steps between updates of the target network.
    max_parents
        Maximum number of parents of a node; None for no limit.
    max_parent_sets
        Maximum number of parent sets per node to score if the search is given a score instead of
        a score table; None for all that can be part of an optimal graph.
    """

    episodes: int = 300
    faithful: bool = True
    variant: RBNetsVariant = RBNetsVariant()
    hidden: tuple[int, ...] = (64, 64)
    learning_rate: float = 0.001
    discount: float = 1.0
    replay: int = 2000
    batch: int = 200
    replace_every: int = 300
    max_parents: int | None = None
    max_parent_sets: int | None = 20_000
    accepts: ClassVar[Accepts] = (LOCAL_SCORES, PARENT_SETS)

    def __post_init__(self) -> None:
        for name in ("episodes", "replay", "batch", "replace_every"):
            require_integer(self, name, least=1)
        require_boolean(self, "faithful")
        require_instance(self, "variant", RBNetsVariant, "RBNetsVariant()")
        require_integers(self, "hidden", least=1)
        require_number(self, "learning_rate", above=0)
        require_number(self, "discount", least=0)
        require_integer(self, "max_parents", least=0, optional=True)
        require_integer(self, "max_parent_sets", least=1, optional=True)

    @classmethod
    def improved(cls, **options: Any) -> RBNets:
        """Return the improved variant; see :class:`RBNetsVariant`."""
        return cls(faithful=False, **options)

    def search(
        self,
        objective: LocalScore | ScoreTable,
        knowledge: BoundKnowledge,
        rng: np.random.Generator,
        watch: Watch,
    ) -> SearchResult:
        # It takes about a second, in which Ctrl-C is held back.
        from isthmus.neural import perceptron

        perceptron.load_jax("RBNets")
        orders = OrderSearchState(
            objective, knowledge, rng, watch, self.max_parents, self.max_parent_sets
        )
        agent = _Agent(self, orders)
        with watch.until_stopped():
            agent.search()
        return agent.result()


def _in_thread(function: Callable[[], None], watch: Watch) -> None:
    """Wait for a function that takes long and hears no Ctrl-C."""
    threads = ThreadPoolExecutor(1)
    future = threads.submit(function)
    threads.shutdown(wait=False)
    watch.run(lambda: bool(wait([future], 0.01).done))
    future.result()


_PUBLISHED = RBNetsVariant(
    walks=1, shaping=False, duelling=False, warm_start=False, polish=False, noise=0.0
)


@final
class _Agent:
    """The network, its walks, and the best order so far."""

    def __init__(self, options: RBNets, orders: OrderSearchState) -> None:
        from isthmus.neural import dqn

        self._dqn = dqn
        self._options = options
        self._variant = _PUBLISHED if options.faithful else options.variant
        self._orders = orders
        self._episode = 0
        self._learned = 0
        self._walked = -np.inf
        self._warm: float | None = None
        self._policy: float | None = None
        self._loss = 0.0

    def search(self) -> None:
        """Walk and learn; then walk by what was learned."""
        self._orders.prepare()
        self._prepare()
        while self._episode < self._options.episodes:
            while not self._walks.ended:
                self._move()
                self._poll()
            self._end_episode()
        self._walk_greedily()

    def _prepare(self) -> None:
        options, orders = self._options, self._orders
        d = len(orders.nodes)
        self._walks = Walks(orders.lines.kernel, self._variant.walks)
        self._visits = Visits()
        self._replay = Replay(options.replay, d)
        self._network = self._dqn.QNetwork(
            orders.lines.needed,
            hidden=options.hidden,
            rate=options.learning_rate,
            discount=options.discount,
            duelling=self._variant.duelling,
            rng=orders.rng,
        )
        _in_thread(lambda: self._network.compile(self._variant.walks, options.batch), orders.watch)
        # A random order, so that a run interrupted early has a result.
        run = orders.begin(orders.draw())
        total = run.total
        orders.keep(run.order, total)
        self._base = np.zeros(d)
        self._unit = 1.0
        if self._variant.shaping:
            table = orders.table
            self._base = table.scores[table.starts[:-1]]
            self._unit = max(1e-6, float(self._base.sum() - total) / d)
        if self._variant.warm_start:
            self._start_warm()

    def _start_warm(self) -> None:
        """Train on local optima of swaps of neighbours."""
        orders, d = self._orders, len(self._orders.nodes)
        for _ in range(_WARM_STARTS):
            swaps = _native.SwapSearch(
                orders.lines.kernel, orders.draw(), memory=10, patience=d, most=20 * d
            )
            orders.watch.run(swaps.step)
            self._remember(swaps.order)
            orders.keep(swaps.order, swaps.score)
        self._warm = orders.score

    def _remember(self, order: Integers) -> None:
        """Add the transitions of an order to the replay buffer."""
        walk = Walks(self._orders.lines.kernel, 1)
        for v in order.tolist():
            before = walk.sets[0].copy()
            reward = float(walk.take(np.array([v]))[0])
            self._replay.add(before, v, (reward - self._base[v]) / self._unit)
            if walk.at % 100 == 0:
                self._poll()

    def _move(self) -> None:
        walks = self._walks
        before = walks.sets.copy()
        actions = self._choose(self._network.values(before.astype(np.float32)))
        rewards = (walks.take(actions) - self._base[actions]) / self._unit
        for e in range(walks.walks):
            self._replay.add(before[e], int(actions[e]), float(rewards[e]))
        batch = self._replay.draw(self._options.batch, self._orders.rng)
        self._loss = self._network.learn(self._dqn.ReplayBatch(*batch))
        self._learned += 1
        if self._learned % self._options.replace_every == 0:
            self._network.replace_target()

    def _choose(self, values: NDArray[np.float64]) -> Integers:
        """Choose for each walk the allowed action with the highest value plus bonus."""
        walks, rng = self._walks, self._orders.rng
        allowed = walks.allowed()
        actions: Integers = np.empty(walks.walks, np.int64)
        spread = np.linspace(0.0, self._variant.noise, walks.walks)
        if self._variant.noise > 0.0:
            values = values + spread[:, None] * rng.gumbel(size=values.shape)
        for e in range(walks.walks):
            key, bonus = self._visits.bonuses(walks.sets[e])
            candidates = np.flatnonzero(allowed[e])
            if bonus is not None:
                fresh = candidates[np.isinf(bonus[candidates])]
                # Among untried actions, take the one with the highest value.
                candidates, extra = (fresh, 0.0) if len(fresh) else (candidates, bonus[candidates])
                worth = values[e, candidates] + extra
            else:
                worth = values[e, candidates]
            actions[e] = candidates[int(np.argmax(worth))]
            self._visits.count(key, int(actions[e]), values.shape[1])
        return actions

    def _end_episode(self) -> None:
        walks, orders = self._walks, self._orders
        self._episode += 1
        best = int(np.argmax(walks.totals))
        self._walked = max(self._walked, float(walks.totals[best]))
        order = walks.orders[best].copy()
        orders.keep(order, float(walks.totals[best]))
        if self._variant.polish:
            run = orders.begin(order)
            total = run.total
            total += climb(run, orders.rng, _SWEEPS, orders.watch)
            orders.keep(run.order, total)
            self._remember(run.order)
        walks.restart()

    def _walk_greedily(self) -> None:
        """Walk by the values of the network alone."""
        walk = Walks(self._orders.lines.kernel, 1)
        while not walk.ended:
            values = self._network.values(walk.sets.astype(np.float32))
            walk.take(np.argmax(np.where(walk.allowed(), values, -np.inf), axis=1))
            self._poll()
        self._orders.keep(walk.orders[0], float(walk.totals[0]))
        self._policy = float(walk.totals[0])

    def _poll(self) -> None:
        text = f"episode {self._episode}, loss {self._loss:.3g}"
        done = self._episode / self._options.episodes
        self._orders.watch.poll(text, self._orders.score, done)

    def result(self) -> SearchResult:
        """Return the graph of the best order so far, at the end also that of the policy."""
        episodes = "1 episode" if self._episode == 1 else f"{self._episode} episodes"
        return self._orders.result(
            f"{episodes} completed; more episodes or another seed may find a better order.",
            RBNetsDetails,
            episodes=self._episode,
            learned=self._learned,
            best_walk=self._walked,
            warm_start=self._warm,
            policy=self._policy,
            faithful=self._options.faithful,
        )


@final
class Walks:
    """Several parallel walks through the order graph, one node per step.

    Attributes
    ----------
    sets
        ``sets[walk, node]``: whether the walk has placed the node.
    orders
        The nodes that each walk has placed, in order.
    """

    def __init__(self, lines: _native.ScoreLines, walks: int) -> None:
        self._size = lines.size
        self._native = _native.TableWalks(lines, walks)
        self.walks = walks
        self.restart()

    def restart(self) -> None:
        """Restart all walks from the empty set."""
        d = self._size
        self._native.restart()
        self.sets: Bools = np.zeros((self.walks, d), np.bool_)
        self.orders: Integers = np.zeros((self.walks, d), np.int64)
        self.totals = np.zeros(self.walks)
        self.at = 0

    @property
    def ended(self) -> bool:
        """Whether all nodes are placed."""
        return self.at == self._size

    def allowed(self) -> Bools:
        """Return which nodes each walk can place next."""
        return self._native.allowed()

    def take(self, actions: Integers) -> NDArray[np.float64]:
        """Place a node in each walk and return the unshaped rewards."""
        rewards = self._native.take(actions)
        self.sets[np.arange(self.walks), actions] = True
        self.orders[:, self.at] = actions
        self.totals += rewards
        self.at += 1
        return rewards


@final
class Visits:
    """Counts of visited sets and of the nodes added to them."""

    def __init__(self) -> None:
        self._counts: dict[bytes, Integers] = {}

    def bonuses(self, state: Bools) -> tuple[bytes, NDArray[np.float64] | None]:
        """Return the key of a set, and sqrt(2 ln visits / tries) per node; None if it is new."""
        key = np.packbits(state).tobytes()
        counts = self._counts.get(key)
        if counts is None:
            return key, None
        top = 2.0 * math.log(max(1, int(counts.sum())))
        # Untried actions come first, whatever their value.
        with np.errstate(divide="ignore", invalid="ignore"):
            return key, np.where(counts > 0, np.sqrt(top / counts), np.inf)

    def count(self, key: bytes, action: int, nodes: int) -> None:
        """Count one more try of an action."""
        counts = self._counts.get(key)
        if counts is None:
            if len(self._counts) >= _MAX_STATES:
                return
            counts = self._counts[key] = np.zeros(nodes, np.int64)
        counts[action] += 1


@final
class Replay:
    """Replay buffer of the most recent transitions."""

    def __init__(self, room: int, nodes: int) -> None:
        self._sets: Bools = np.zeros((room, nodes), np.bool_)
        self._actions = np.zeros(room, np.int32)
        self._rewards = np.zeros(room, np.float32)
        self._count = 0

    def add(self, state: Bools, action: int, reward: float) -> None:
        """Add one transition; the oldest is overwritten when the buffer is full."""
        at = self._count % len(self._actions)
        self._sets[at] = state
        self._actions[at] = action
        self._rewards[at] = reward
        self._count += 1

    def draw(
        self, size: int, rng: np.random.Generator
    ) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float32]]:
        """Draw transitions uniformly at random, with replacement."""
        picked = rng.integers(0, min(self._count, len(self._actions)), size)
        return (
            self._sets[picked].astype(np.float32),
            self._actions[picked],
            self._rewards[picked],
        )
