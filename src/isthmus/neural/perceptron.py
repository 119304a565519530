"""Least squares of one small neural network per node, in JAX.

Numbers are 64 bits within these calls and nowhere else: no global flag is set.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from isthmus import watch
from isthmus.arrays import Floats, T, Work
from isthmus.errors import MissingExtraError

# --- One small network of a single node: least squares by damped Newton steps, in NumPy ---------
#
# Parameters are the first layer [parent, unit], its biases, the second layer, and the last bias.

_ITERATIONS = 300
_TOLERANCE = 1e-7
_SLOW = 3
_ROWS = 4096
"""Maximum number of rows of the Jacobian in memory at a time."""
_PERCEPTRON_NODES_PIECE = 2**28
"""Multiplications in one piece of work; they take some 20 ms."""


class NodeFit(NamedTuple):
    """A fitted network of one node.

    ``variance`` is the mean squared residual, ``freedom`` the effective degrees of freedom without
    the constant, ``residual`` the largest gradient of the objective, and ``contributions`` the
    standard deviation of what each parent changes in the prediction.
    """

    parameters: Floats
    variance: float
    freedom: float
    residual: float
    contributions: Floats


def size_of_nodes(parents: int, hidden: int) -> int:
    """Return the number of parameters of a node."""
    return parents * hidden + 2 * hidden + 1


def _parts(parameters: Floats, parents: int, hidden: int) -> tuple[Floats, Floats, Floats, float]:
    first = parents * hidden
    return (
        parameters[:first].reshape(parents, hidden),
        parameters[first : first + hidden],
        parameters[first + hidden : first + 2 * hidden],
        float(parameters[-1]),
    )


def predict(parameters: Floats, x: Floats, hidden: int) -> Floats:
    """Return the prediction for each row of the parents' values."""
    weights, bias, outer, last = _parts(parameters, x.shape[1], hidden)
    found: Floats = _sigmoid(x @ weights + bias) @ outer + last
    return found


def _sigmoid(z: Floats) -> Floats:
    found: Floats = 0.5 * (1.0 + np.tanh(0.5 * z))
    return found


def _derivatives(
    parameters: Floats, x: Floats, y: Floats, hidden: int
) -> Work[tuple[Floats, Floats, Floats]]:
    """Return ``J'J / n``, the gradient ``J'r / n`` with r prediction minus y, and the Hessian."""
    n, parents = x.shape
    p, first = size_of_nodes(parents, hidden), parents * hidden
    gram, slope, curved = np.zeros((p, p)), np.zeros(p), np.zeros((p, p))
    weights, bias, outer, last = _parts(parameters, parents, hidden)
    units = [np.append(np.arange(parents) * hidden + m, first + m) for m in range(hidden)]
    rows = min(_ROWS, max(1, _PERCEPTRON_NODES_PIECE // (p * p)))
    for at in range(0, n, rows):
        part = x[at : at + rows]
        active = _sigmoid(part @ weights + bias)
        r = active @ outer + last - y[at : at + rows]
        steep = active * (1.0 - active)
        inner = steep * outer
        jacobian = np.empty((len(part), p))
        jacobian[:, :first] = (part[:, :, None] * inner[:, None, :]).reshape(len(part), first)
        jacobian[:, first : first + hidden] = inner
        jacobian[:, first + hidden : first + 2 * hidden] = active
        jacobian[:, -1] = 1.0
        gram += jacobian.T @ jacobian
        slope += jacobian.T @ r
        wide = np.column_stack([part, np.ones(len(part))])
        # Units do not meet in second derivatives.
        bend = r[:, None] * inner * (1.0 - 2.0 * active)
        cross = wide.T @ (r[:, None] * steep)
        for m, own in enumerate(units):
            curved[np.ix_(own, own)] += (wide * bend[:, m, None]).T @ wide
            curved[own, first + hidden + m] += cross[:, m]
            curved[first + hidden + m, own] += cross[:, m]
        yield
    return gram / n, slope / n, (gram + curved) / n


def fit(
    start: Floats, x: Floats, y: Floats, hidden: int, ridge: float, tolerance: float = 0.0
) -> Work[NodeFit]:
    """Minimise ``|y - f(x)|² / 2n + ridge / 2 (|first layer|² + |second layer|²)``.

    Parameters
    ----------
    start
        First parameters.
    x, y
        Values of the parents, shape (n, parents), and of the node.
    hidden
        Number of hidden units.
    ridge
        Weight of the squares.
    tolerance
        Stop when the objective falls by a smaller share in several steps in a row.
    """
    parents = x.shape[1]
    if parents == 0:
        parameters = np.zeros(size_of_nodes(0, hidden))
        parameters[-1] = y.mean()
        return NodeFit(parameters, float(y.var()), 0.0, 0.0, np.empty(0))
    decay = np.full(len(start), ridge)
    decay[parents * hidden : (parents + 1) * hidden] = 0.0
    decay[-1] = 0.0
    parameters = start.copy()
    value = _value(parameters, x, y, hidden, decay)
    gram, slope, hessian = yield from _derivatives(parameters, x, y, hidden)
    damping, slow = 0.1, 0
    for _ in range(_ITERATIONS):
        gradient = slope + decay * parameters
        if float(np.abs(gradient).max()) <= _TOLERANCE or slow >= _SLOW or damping > 1e10:
            break
        step = _step(hessian + np.diag(decay + damping * (gram.diagonal() + 1e-3)), gradient)
        yield
        trial = None if step is None else parameters - step
        new = np.inf if trial is None else _value(trial, x, y, hidden, decay)
        if trial is None or not new < value:
            damping *= 4.0
            continue
        slow = slow + 1 if value - new <= tolerance * value else 0
        parameters, value = trial, new
        gram, slope, hessian = yield from _derivatives(parameters, x, y, hidden)
        damping = max(damping / 5.0, 1e-12)
    residual = float(np.abs(slope + decay * parameters).max())
    r = predict(parameters, x, hidden) - y
    hat = np.linalg.lstsq(gram + np.diag(decay), gram, rcond=1e-12)[0]
    freedom = max(float(np.trace(hat)) - 1.0, 0.0)
    square = float(r @ r) / len(r)
    yield
    return NodeFit(parameters, square, freedom, residual, _contributions(parameters, x, hidden))


def _value(parameters: Floats, x: Floats, y: Floats, hidden: int, decay: Floats) -> float:
    r = predict(parameters, x, hidden) - y
    return 0.5 * float(r @ r) / len(r) + 0.5 * float(decay @ parameters**2)


def _step(hessian: Floats, gradient: Floats) -> Floats | None:
    """Return the Newton step; None where the curvature is not positive."""
    try:
        factor = np.linalg.cholesky(hessian)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(
        np.linalg.solve(factor.T, np.linalg.solve(factor, gradient)), dtype=np.float64
    )


def _contributions(parameters: Floats, x: Floats, hidden: int) -> Floats:
    """Return the standard deviation of the change when a parent is held at its mean."""
    whole = predict(parameters, x, hidden)
    found = np.empty(x.shape[1])
    for k in range(x.shape[1]):
        held = x.copy()
        held[:, k] = x[:, k].mean()
        found[k] = float(np.std(whole - predict(parameters, held, hidden)))
    return found


# --- Import JAX, in one place for all networks --------------------------------------------------


def load_jax(feature: str) -> None:
    """Import JAX and start its backend; raise `MissingExtraError` if it is not installed.

    Ctrl-C is held back meanwhile, which takes about a second in the first call of a process.

    Parameters
    ----------
    feature
        Feature that needs JAX, for the error message.
    """
    with watch.held_back():
        try:
            import jax  # noqa: F401 - imported to see whether it is installed
        except ImportError:
            raise MissingExtraError("jax", "neural", feature) from None
        _compile()


@cache
def _compile() -> None:
    """Compile a first function, which imports more of JAX."""
    import jax.numpy as jnp

    jnp.zeros(1)


# --- Least squares of one small neural network per node, in JAX ---------------------------------

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
