"""One small network of a single node: least squares by damped Newton steps, in NumPy.

Parameters are the first layer [parent, unit], its biases, the second layer, and the last bias.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isthmus.types import Floats, Work

_ITERATIONS = 300
_TOLERANCE = 1e-7
_SLOW = 3
_ROWS = 4096
"""Maximum number of rows of the Jacobian in memory at a time."""
_PIECE = 2**28
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


def size(parents: int, hidden: int) -> int:
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
    p, first = size(parents, hidden), parents * hidden
    gram, slope, curved = np.zeros((p, p)), np.zeros(p), np.zeros((p, p))
    weights, bias, outer, last = _parts(parameters, parents, hidden)
    units = [np.append(np.arange(parents) * hidden + m, first + m) for m in range(hidden)]
    rows = min(_ROWS, max(1, _PIECE // (p * p)))
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
        parameters = np.zeros(size(0, hidden))
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
