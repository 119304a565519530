"""Limited-memory BFGS that can be stopped and taken up between iterations.

SciPy's runs to its end in one call; a search that shows progress and can be interrupted needs
one iteration at a time. The line search is a bisection for the weak Wolfe conditions (Lewis and
Overton 2013): it needs no third derivative, and a value of infinity just shortens the step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Function: TypeAlias = Callable[[Floats], tuple[float, Floats]]

_DECREASE = 1e-4
_CURVATURE = 0.9


@final
class LBFGS:
    """A minimisation under way.

    Parameters
    ----------
    function
        Gives value and gradient; the value may be infinite outside its domain.
    start
        Where to begin; the value must be finite there.
    memory
        Number of pairs kept.
    """

    def __init__(self, function: Function, start: Floats, memory: int = 12) -> None:
        self._function = function
        self.x = start.copy()
        self.value, self.gradient = function(self.x)
        self.evaluations = 1
        self.iterations = 0
        self._pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)

    def iterate(self) -> float:
        """Do one iteration; return by how much the value fell, zero where it cannot fall."""
        direction = self._direction()
        slope = float(self.gradient @ direction)
        if not slope < 0.0:
            self._pairs.clear()
            direction = -self.gradient
            slope = -float(self.gradient @ self.gradient)
            if not slope < 0.0:
                return 0.0
        # Without curvature the first step has the length of a small gradient at most.
        first = 1.0 if self._pairs else min(1.0, 1.0 / float(np.abs(self.gradient).sum()))
        found = self._search(direction, slope, first)
        if found is None:
            if not self._pairs:
                return 0.0
            self._pairs.clear()  # the model misled: try once more down the gradient
            return self.iterate()
        x, value, gradient = found
        step, change = x - self.x, gradient - self.gradient
        product = float(step @ change)
        if product > 1e-14 * float(change @ change):
            self._pairs.append((step, change, 1.0 / product))
        fell = self.value - value
        self.x, self.value, self.gradient = x, value, gradient
        self.iterations += 1
        return fell

    def _direction(self) -> Floats:
        found = -self.gradient
        if not self._pairs:
            return found
        weights = []
        for step, change, inverse in reversed(self._pairs):
            weight = inverse * float(step @ found)
            weights.append(weight)
            found -= weight * change
        step, change, inverse = self._pairs[-1]
        found *= 1.0 / (inverse * float(change @ change))
        for (step, change, inverse), weight in zip(self._pairs, reversed(weights), strict=True):
            found += (weight - inverse * float(change @ found)) * step
        return found

    def _search(
        self, direction: Floats, slope: float, first: float
    ) -> tuple[Floats, float, Floats] | None:
        low, high, length = 0.0, np.inf, first
        best: tuple[Floats, float, Floats] | None = None
        for _ in range(30):
            x = self.x + length * direction
            value, gradient = self._function(x)
            self.evaluations += 1
            if not value <= self.value + _DECREASE * length * slope:
                high = length
            elif float(gradient @ direction) < _CURVATURE * slope:
                low = length
                best = x, value, gradient
            else:
                return x, value, gradient
            length = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
        return best
