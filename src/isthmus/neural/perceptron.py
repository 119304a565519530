"""Least squares of one small neural network per node, in JAX.

Numbers are 64 bits within these calls and nowhere else: no global flag is set.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from isthmus.neural.loading import load_jax
from isthmus.types import Floats, T, Work

_PIECE = 2**27
"""Multiplications in one piece of an evaluation; they take some 20 ms."""


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
    load_jax("NotearsMLP")
    import jax
    import jax.numpy as jnp

    compiled = _compiled(hidden, ridge)
    with _double(jax):
        rows = jnp.asarray(values)

    def call(parameters: Floats) -> tuple[float, Floats]:
        with _double(jax):
            value, gradient = compiled(parameters, rows)
            return float(value), np.array(gradient)

    return call


def evaluation(
    values: Floats, hidden: int, ridge: float
) -> Callable[[Floats], Work[tuple[float, Floats]]]:
    """Compile the loss of `value_and_gradient`, which is then computed in pieces: some nodes each.

    The first piece takes longer, because XLA compiles it, but others can work meanwhile.
    """
    n, d = values.shape
    width = min(d, max(1, _PIECE // max(3 * n * d * hidden, 1)))
    compiled = [False]
    if width == d:
        whole = value_and_gradient(values, hidden, ridge)

        def call(parameters: Floats) -> Work[tuple[float, Floats]]:
            if not compiled[0]:
                found = yield from _meanwhile(lambda: whole(parameters))
                compiled[0] = True
                return found
            yield
            return whole(parameters)

        return call
    part = _part(values, hidden, ridge, width)

    def call_parts(parameters: Floats) -> Work[tuple[float, Floats]]:
        value, gradient = 0.0, np.empty_like(parameters)
        for start in range(0, d, width):
            # All pieces have one shape, so the last may begin before the end of the one before.
            first = min(start, d - width)
            if not compiled[0]:
                losses = yield from _meanwhile(lambda: part(parameters, gradient, 0))
                compiled[0] = True
            else:
                losses = part(parameters, gradient, first)
            value += float(losses[start - first :].sum())
            yield
        return value, gradient

    return call_parts


def _meanwhile(call: Callable[[], T]) -> Work[T]:
    """Call a function in another thread, so that this one can be stopped."""
    found: list[T] = []
    failures: list[BaseException] = []
    ended = threading.Event()

    def run() -> None:
        try:
            found.append(call())
        except BaseException as failure:  # noqa: BLE001 - raised again where somebody waits for it
            failures.append(failure)
        finally:
            ended.set()

    # Ctrl-C in `Thread.join` makes Python 3.11 forget the thread, and then the process can crash if
    # it ends while XLA compiles.
    threading.Thread(target=run).start()
    while not ended.wait(0.01):
        yield
    if failures:
        raise failures[0]
    return found[0]


def _part(
    values: Floats, hidden: int, ridge: float, width: int
) -> Callable[[Floats, Floats, int], Floats]:
    """Return a function that fills in the gradient of some nodes, and returns their losses."""
    load_jax("NotearsMLP")
    import jax
    import jax.numpy as jnp

    compiled = _compiled_part(hidden, ridge)
    d = values.shape[1]
    with _double(jax):
        rows = jnp.asarray(values)

    def views(parameters: Floats, first: int) -> tuple[Floats, Floats, Floats, Floats]:
        size, inner = d * d * hidden, d * hidden
        own = slice(first * hidden, (first + width) * hidden)
        bias, outer = parameters[size:][:inner], parameters[size + inner :][:inner]
        return (
            parameters[:size].reshape(d, inner)[:, own],
            bias[own],
            outer[own],
            parameters[size + 2 * inner :][first : first + width],
        )

    def call(parameters: Floats, gradient: Floats, first: int) -> Floats:
        with _double(jax):
            seen = values[:, first : first + width]
            (_, losses), slopes = compiled(views(parameters, first), rows, seen)
            for place, slope in zip(views(gradient, first), slopes, strict=True):
                place[...] = slope
            return np.array(losses)

    return call


@lru_cache(maxsize=16)
def _compiled_part(hidden: int, ridge: float) -> Any:
    """The loss of some nodes, compiled once for tables of one shape."""
    import jax

    def loss(parameters: Any, x: Any, seen: Any) -> Any:
        weights, bias, outer, last = parameters
        (n, nodes), d = seen.shape, len(weights)
        active = jax.nn.sigmoid(x @ weights + bias)
        predicted = (active * outer).reshape(n, nodes, hidden).sum(axis=2) + last
        squares = ((predicted - seen) ** 2).sum(axis=0) / (2 * n)
        first = (weights**2).reshape(d, nodes, hidden).sum(axis=(0, 2))
        second = (outer**2).reshape(nodes, hidden).sum(axis=1)
        each = squares + 0.5 * ridge * (first + second)
        return each.sum(), each

    return jax.jit(jax.value_and_grad(loss, has_aux=True))


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
    found: AbstractContextManager[Any] = switch(True)  # noqa: FBT003 - JAX names the argument in some versions only
    return found
