"""Limited-memory BFGS that can be interrupted at any time and resumed.

SciPy's runs to its end in one call, and one evaluation of a large problem takes seconds. Here both
the iterations and the evaluations are done in pieces. The line search is a bisection for the weak
Wolfe conditions (Lewis and Overton 2013): it needs no third derivative, and a value of infinity
just shortens the step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias, final

import numpy as np

from isthmus.types import Floats, Work

Function: TypeAlias = Callable[[Floats], Work[tuple[float, Floats]]]

LARGE = 2**15
"""Number of parameters from which there is a pause between two passes over them."""
_DECREASE = 1e-4
_CURVATURE = 0.9


@final
class LBFGS:
    """A minimisation in progress.

    Parameters
    ----------
    function
        Computes value and gradient; the value may be infinite outside its domain.
    start
        Initial point, at which the value must be finite.
    memory
        Number of pairs kept.
    """

    def __init__(self, function: Function, start: Floats, memory: int = 12) -> None:
        self._function = function
        self.x = start.copy()
        self.value, self.gradient = np.inf, np.zeros_like(start)
        self.iterations = 0
        self._large = len(start) >= LARGE
        self._pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=memory)

    def begin(self) -> Work[None]:
        """Evaluate the function at the start, before the first iteration."""
        self.value, self.gradient = yield from self._function(self.x)

    def iterate(self) -> Work[float]:
        """Do one iteration; return by how much the value fell, zero where it cannot fall.

        Until the iteration is finished, ``x``, ``value`` and ``gradient`` are those before it.
        """
        point = None
        while point is None:
            direction = yield from self._direction()
            slope = float(self.gradient @ direction)
            if not slope < 0.0:
                self._pairs.clear()
                direction = -self.gradient
                slope = -float(self.gradient @ self.gradient)
                if not slope < 0.0:
                    return 0.0
            # Without curvature the first step has the length of a small gradient at most.
            first = 1.0 if self._pairs else min(1.0, 1.0 / float(np.abs(self.gradient).sum()))
            point = yield from self._search(direction, slope, first)
            if point is None:
                if not self._pairs:
                    return 0.0
                self._pairs.clear()  # the model misled: try once more down the gradient
        x, value, gradient = point
        step, change = x - self.x, gradient - self.gradient
        if self._large:
            yield
        product = float(step @ change)
        if product > 1e-14 * float(change @ change):
            self._pairs.append((step, change, 1.0 / product))
        fell = self.value - value
        self.x, self.value, self.gradient = x, value, gradient
        self.iterations += 1
        return fell

    def _direction(self) -> Work[Floats]:
        direction = -self.gradient
        if not self._pairs:
            return direction
        weights = []
        for step, change, inverse in reversed(self._pairs):
            weight = inverse * float(step @ direction)
            weights.append(weight)
            direction -= weight * change
            if self._large:
                yield
        step, change, inverse = self._pairs[-1]
        direction *= 1.0 / (inverse * float(change @ change))
        for (step, change, inverse), weight in zip(self._pairs, reversed(weights), strict=True):
            direction += (weight - inverse * float(change @ direction)) * step
            if self._large:
                yield
        return direction

    def _search(
        self, direction: Floats, slope: float, first: float
    ) -> Work[tuple[Floats, float, Floats] | None]:
        low, high, length = 0.0, np.inf, first
        best: tuple[Floats, float, Floats] | None = None
        for _ in range(30):
            x = self.x + length * direction
            if self._large:
                yield
            value, gradient = yield from self._function(x)
            if not value <= self.value + _DECREASE * length * slope:
                high = length
            elif float(gradient @ direction) < _CURVATURE * slope:
                low = length
                best = x, value, gradient
            else:
                return x, value, gradient
            length = 2.0 * low if np.isinf(high) else 0.5 * (low + high)
        return best
