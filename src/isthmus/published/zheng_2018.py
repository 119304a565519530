"""NOTEARS (Zheng, Aragam, Ravikumar and Xing 2018)."""

from __future__ import annotations

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError
from isthmus.published.weighted_graph import WeightedGraph
from isthmus.searches.notears_penalties import exponential
from isthmus.statistics import Kind
from isthmus.tables import as_source

_LARGEST = 1e16
"""The authors' program stops when the weight of the quadratic term reaches this."""
_STEPS = 100
"""Its maximum number of dual steps."""


def notears(
    data: object,
    *,
    penalty: float = 0.1,
    threshold: float = 0.3,
    progress_rate: float = 0.25,
    tolerance: float = 1e-8,
) -> WeightedGraph:
    """Learn a linear network by continuous optimisation, as published (NOTEARS).

    Algorithm 1: minimise ``1/(2n) |X - XW|² + penalty |W|₁`` under ``tr exp(W ∘ W) = d`` by an
    augmented Lagrangian with L-BFGS-B on the positive and negative parts of the weights, and drop
    small weights. The graph can have cycles, and depends on the units of the columns. We recommend
    ``learn(data, search=Notears())``, which is acyclic, chooses penalty and threshold from the data
    and makes fewer errors.

    The stopping rules are those of the authors' program. The optimiser stops early and the problem
    is not convex, so rounding can decide between optima: in our tests on the same rows the weights
    are equal to those of the program, but other units or another order of the rows can change them.

    Parameters
    ----------
    data
        A table of numbers in memory. Columns are centred but not scaled.
    penalty
        λ, the coefficient of the ℓ1 norm.
    threshold
        ω: smaller weights are dropped.
    progress_rate
        c: the weight of the quadratic term is multiplied by ten until the acyclicity measure falls
        to this fraction.
    tolerance
        ε: stop when the acyclicity measure is at most this.

    References
    ----------
    X. Zheng, B. Aragam, P. Ravikumar and E. P. Xing. DAGs with NO TEARS: Continuous Optimization
    for Structure Learning. NeurIPS 2018. arXiv:1803.01422.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import published, simulate
    >>> truth = ist.DAG(["a", "b", "c"], [("a", "b"), ("b", "c")])
    >>> table = simulate.linear(truth, 500, seed=1).data
    >>> published.notears(table).edges
    (('a', 'b'), ('b', 'c'))
    """
    for name, value in (("penalty", penalty), ("threshold", threshold), ("tolerance", tolerance)):
        if not 0 <= value < np.inf:
            raise ArgumentError(f"{name} must be a number of at least 0; {value} was given.")
    if not 0 < progress_rate < 1:
        raise ArgumentError(f"progress_rate must be between 0 and 1; {progress_rate} was given.")
    source = as_source(data)
    schema = source.schema()
    schema.require(Kind.CONTINUOUS, "NOTEARS needs")
    weights = _optimum(source.rows(), penalty, progress_rate, tolerance)
    return WeightedGraph(schema.names, weights, threshold)


def _optimum(rows: Floats, penalty: float, progress_rate: float, tolerance: float) -> Floats:
    """Return the weights before the threshold.

    The order of the operations is that of the authors' program: the optimiser amplifies rounding.
    """
    from scipy.optimize import Bounds, minimize

    n, d = rows.shape
    x = rows - rows.mean(axis=0, keepdims=True)
    scaled = -1.0 / n * x.T
    upper = np.where(np.tile(np.eye(d, dtype=bool).ravel(), 2), 0.0, np.inf)
    bounds = Bounds(np.zeros(2 * d * d), upper)
    rho, alpha, h = 1.0, 0.0, np.inf

    def lagrangian(halves: Floats) -> tuple[float, Floats]:
        w = _whole(halves, d)
        residual = x - x @ w
        cyclic, slope = exponential(w)
        loss = 0.5 / n * (residual**2).sum()
        value = loss + 0.5 * rho * cyclic * cyclic + alpha * cyclic + penalty * halves.sum()
        smooth = (scaled @ residual + (rho * cyclic + alpha) * slope).ravel()
        return float(value), np.concatenate([smooth + penalty, penalty - smooth])

    outer = np.zeros(2 * d * d)
    for _ in range(_STEPS):
        inner, left = outer, h
        while rho < _LARGEST:
            inner = minimize(lagrangian, outer, jac=True, method="L-BFGS-B", bounds=bounds).x
            left = exponential(_whole(inner, d))[0]
            if left <= progress_rate * h:
                break
            rho *= 10.0
        outer, h = inner, left
        alpha += rho * h
        if h <= tolerance or rho >= _LARGEST:
            break
    return _whole(outer, d)


def _whole(halves: Floats, d: int) -> Floats:
    """Return the weights of which these are the positive and the negative parts."""
    weights: Floats = (halves[: d * d] - halves[d * d :]).reshape(d, d)
    return weights
