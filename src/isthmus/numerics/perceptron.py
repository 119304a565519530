"""Least squares of one small neural network a node, in JAX.

Numbers are 64 bits within these calls and nowhere else: no global flag is set.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MissingExtraError

Floats = NDArray[np.float64]


def size(nodes: int, hidden: int) -> int:
    """Number of parameters: first layer [cause, effect, unit], its biases, second layer, biases."""
    return nodes * nodes * hidden + 2 * nodes * hidden + nodes


def drawn(nodes: int, hidden: int, rng: np.random.Generator) -> Floats:
    """Draw parameters to begin with: hidden units that are all alike would stay so.

    Weights from causes are small enough that their squares have a spectral radius of about a
    half; biases and the second layer are not small, or nothing would be curved at first.
    """
    found = rng.uniform(-1.0, 1.0, size=size(nodes, hidden))
    first = nodes * nodes * hidden
    found[:first] *= np.sqrt(1.5 * nodes / first * nodes / max(nodes - 1, 1))
    return found


def value_and_gradient(
    values: Floats, hidden: int, ridge: float
) -> Callable[[Floats], tuple[float, Floats]]:
    """Compile the loss for these rows.

    ``|x - f(x)|² / 2n + ridge / 2 (|first layer|² + |second layer|²)``, f of one hidden layer of
    sigmoids for each node.
    """
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        raise MissingExtraError("jax", "numerics", "NotearsMLP") from None

    compiled = _compiled(hidden, ridge)
    with _double(jax):
        rows = jnp.asarray(values)

    def call(parameters: Floats) -> tuple[float, Floats]:
        with _double(jax):
            value, gradient = compiled(parameters, rows)
            return float(value), np.array(gradient)

    return call


@lru_cache(maxsize=16)
def _compiled(hidden: int, ridge: float) -> Any:
    """The function of parameters and rows, compiled once for tables of one shape."""
    import jax

    def loss(parameters: Any, x: Any) -> Any:
        n, d = x.shape
        first, inner = d * d * hidden, d * hidden
        weights = parameters[:first].reshape(d, inner)
        bias = parameters[first : first + inner]
        outer = parameters[first + inner : first + 2 * inner]
        last = parameters[first + 2 * inner :]
        active = jax.nn.sigmoid(x @ weights + bias)
        predicted = (active * outer).reshape(n, d, hidden).sum(axis=2) + last
        squares = ((predicted - x) ** 2).sum() / (2 * n)
        return squares + 0.5 * ridge * ((weights**2).sum() + (outer**2).sum())

    return jax.jit(jax.value_and_grad(loss))


def _double(jax: Any) -> AbstractContextManager[Any]:
    """Switch 64-bit numbers on for a block; the switch moved between versions of JAX."""
    switch: Any = getattr(jax, "enable_x64", None)
    if switch is None:
        switch = import_module("jax.experimental").enable_x64
    found: AbstractContextManager[Any] = switch(True)
    return found
