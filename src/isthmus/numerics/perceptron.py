"""Least squares of one small neural network a node, in JAX.

Numbers are 64 bits within these calls and nowhere else: no global flag is set.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MissingExtraError

Floats = NDArray[np.float64]


def size(nodes: int, hidden: int) -> int:
    """Number of parameters: first layer [cause, effect, unit], its biases, second layer, biases."""
    return nodes * nodes * hidden + 2 * nodes * hidden + nodes


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

    n, d = values.shape
    first, inner = d * d * hidden, d * hidden

    def loss(parameters: Any, x: Any) -> Any:
        weights = parameters[:first].reshape(d, inner)
        bias = parameters[first : first + inner]
        outer = parameters[first + inner : first + 2 * inner]
        last = parameters[first + 2 * inner :]
        active = jax.nn.sigmoid(x @ weights + bias)
        predicted = (active * outer).reshape(n, d, hidden).sum(axis=2) + last
        squares = ((predicted - x) ** 2).sum() / (2 * n)
        return squares + 0.5 * ridge * ((weights**2).sum() + (outer**2).sum())

    with _double(jax):
        rows = jnp.asarray(values)
        compiled = jax.jit(jax.value_and_grad(loss))

    def call(parameters: Floats) -> tuple[float, Floats]:
        with _double(jax):
            value, gradient = compiled(parameters, rows)
            return float(value), np.array(gradient)

    return call


def _double(jax: Any) -> AbstractContextManager[Any]:
    """Switch 64-bit numbers on for a block; the switch moved between versions of JAX."""
    switch: Any = getattr(jax, "enable_x64", None)
    if switch is None:
        switch = import_module("jax.experimental").enable_x64
    found: AbstractContextManager[Any] = switch(True)
    return found
