"""Walks, visit counts and the replay buffer of the RBNets agent."""

from __future__ import annotations

import math
from typing import final

import numpy as np
from numpy.typing import NDArray

from isthmus.kernels import _native
from isthmus.types import Bools, Integers

_MAX_STATES = 300_000


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
