"""A double deep Q-network over sets, in JAX: values of actions, one step of learning.

All arrays are 32 bits by their own type; no global flag is read or set.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.neural.perceptron import load_jax

Floats = NDArray[np.float32]

_DECAY = 0.99
_SMALL = 1e-8


class ReplayBatch(NamedTuple):
    """Transitions: the set before, the node added, the reward."""

    sets: Floats  # [transition, node]
    actions: NDArray[np.int32]
    rewards: Floats


@final
class QNetwork:
    """A network, its slower copy, and RMSProp.

    Parameters
    ----------
    needed
        ``needed[v, p]``: p must be in the set before v is added.
    hidden
        Units of the hidden layers.
    duelling
        Whether the value of the set and the advantages of the nodes have heads of their own.
    """

    def __init__(
        self,
        needed: NDArray[np.bool_],
        *,
        hidden: tuple[int, ...],
        rate: float,
        discount: float,
        duelling: bool,
        rng: np.random.Generator,
    ) -> None:
        load_jax("RBNets")
        import jax

        d = len(needed)
        self._parameters = _draw(d, hidden, rng, duelling=duelling)
        self._target = self._parameters
        self._squares = jax.tree_util.tree_map(np.zeros_like, self._parameters)
        self._needed = needed.astype(np.float32) if needed.any() else None
        self._rates = np.float32(rate), np.float32(discount)
        self._values, self._step = _compiled(len(hidden), duelling=duelling)

    def compile(self, walks: int, batch: int) -> None:
        """Compile for this many sets and transitions, which takes a second or more."""
        d = len(self._parameters[0][0])
        for count in {walks, 1}:
            self.values(np.zeros((count, d), np.float32))
        empty = np.zeros((batch, d), np.float32)
        nothing = ReplayBatch(empty, np.zeros(batch, np.int32), np.zeros(batch, np.float32))
        self._gradient_step(nothing)

    def values(self, sets: Floats) -> NDArray[np.float64]:
        """Value of adding each node to each set; what is not allowed has one, too."""
        return np.asarray(self._values(self._parameters, sets, self._needed), dtype=np.float64)

    def learn(self, batch: ReplayBatch) -> float:
        """Do one gradient step with a target for each transition; return the loss."""
        self._parameters, self._squares, loss = self._gradient_step(batch)
        return float(loss)

    def _gradient_step(self, batch: ReplayBatch) -> Any:
        return self._step(
            self._parameters, self._target, self._squares, *batch, self._needed, *self._rates
        )

    def replace_target(self) -> None:
        """Copy the network to the slower one."""
        self._target = self._parameters


def _draw(d: int, hidden: tuple[int, ...], rng: np.random.Generator, *, duelling: bool) -> Any:
    def layer(inside: int, outside: int) -> tuple[Floats, Floats]:
        weights = rng.normal(size=(inside, outside)) * np.sqrt(2.0 / inside)
        return weights.astype(np.float32), np.zeros(outside, np.float32)

    sizes = (d, *hidden)
    layers = [layer(a, b) for a, b in pairwise(sizes)]
    layers.append(layer(sizes[-1], d))
    if duelling:
        layers.append(layer(sizes[-1], 1))
    return layers


@lru_cache
def _compiled(depth: int, *, duelling: bool) -> tuple[Any, Any]:
    """The values and the step, compiled once for each shape they are called with."""
    import jax
    import jax.numpy as jnp

    def legal(sets: Any, needed: Any) -> Any:
        free = 1.0 - sets
        return free if needed is None else free * (free @ needed.T < 0.5)

    def network(parameters: Any, sets: Any, needed: Any) -> Any:
        inside = sets
        for weights, bias in parameters[:depth]:
            inside = jax.nn.relu(inside @ weights + bias)
        weights, bias = parameters[depth]
        found = inside @ weights + bias
        if duelling:
            open_ = legal(sets, needed)
            mean = (found * open_).sum(-1, keepdims=True)
            mean = mean / jnp.maximum(open_.sum(-1, keepdims=True), 1.0)
            weights, bias = parameters[depth + 1]
            found = found - mean + inside @ weights + bias
        return found

    def loss(
        parameters: Any,
        target: Any,
        sets: Any,
        actions: Any,
        rewards: Any,
        needed: Any,
        discount: Any,
    ) -> Any:
        taken = jax.nn.one_hot(actions, sets.shape[1], dtype=jnp.float32)
        after = sets + taken
        open_ = legal(after, needed)
        ended = open_.sum(-1) < 0.5
        ahead = jnp.where(open_ > 0.5, network(parameters, after, needed), -jnp.inf)
        choice = jax.nn.one_hot(jnp.argmax(ahead, -1), sets.shape[1], dtype=jnp.float32)
        later = (network(target, after, needed) * choice).sum(-1)
        wanted = rewards + jnp.where(ended, 0.0, discount * later)
        wanted = jax.lax.stop_gradient(wanted)
        return ((wanted - (network(parameters, sets, needed) * taken).sum(-1)) ** 2).mean()

    def step(
        parameters: Any,
        target: Any,
        squares: Any,
        sets: Any,
        actions: Any,
        rewards: Any,
        needed: Any,
        rate: Any,
        discount: Any,
    ) -> Any:
        value, gradient = jax.value_and_grad(loss)(
            parameters, target, sets, actions, rewards, needed, discount
        )
        tree = jax.tree_util.tree_map
        squares = tree(lambda s, g: _DECAY * s + (1.0 - _DECAY) * g * g, squares, gradient)
        parameters = tree(
            lambda p, g, s: p - rate * g / (jnp.sqrt(s) + _SMALL), parameters, gradient, squares
        )
        return parameters, squares, value

    return jax.jit(network), jax.jit(step)
