"""ADMM at a site: fit its own weights near the common ones, and remember the multipliers.

After Ng and Zhang 2022, section 5.1. A site gives ``B + β/ρ`` into a sum; the coordinator's step
needs no more than that sum.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import RefusedError

Floats: TypeAlias = NDArray[np.float64]


@final
class LinearClient:
    """The state of one site in ADMM for linear models.

    A step may be asked for again with the same weights, for a round may fail after the site
    has answered; it is final when the next step is asked for. Other weights for the same step
    are refused.

    Parameters
    ----------
    second
        Second moments of the site's rows about the centre, divided by the number of rows of *all*
        sites.
    """

    def __init__(self, second: Floats) -> None:
        self._second = second
        self._multipliers = np.zeros_like(second)
        self._step = 0
        self._asked = b""
        self._own = np.zeros_like(second)
        self._rho = 0.0

    @property
    def step(self) -> int:
        """The last step that was answered."""
        return self._step

    def answer(self, step: int, weights: Floats, rho: float) -> Floats:
        """``B + β/ρ`` for these common weights."""
        if not (np.isfinite(weights).all() and np.isfinite(rho) and rho > 0):
            raise RefusedError("Weights and penalty of a step must be finite.")
        asked = hashlib.sha256(weights.tobytes() + np.float64(rho).tobytes()).digest()
        if step == self._step + 1:
            if step > 1:
                # The common weights tell how the last step ended; only now is it final.
                self._multipliers = self._multipliers + self._rho * (self._own - weights)
            self._step, self._asked, self._rho = step, asked, rho
        elif step != self._step or asked != self._asked:
            raise RefusedError(
                f"Step {step} was asked for after step {self._step}. Steps follow each other, "
                "and a step has one set of weights."
            )
        d = len(self._second)
        right = rho * weights - self._multipliers + self._second
        solved: Floats = np.linalg.solve(self._second + rho * np.eye(d), right).astype(np.float64)
        self._own = solved
        found: Floats = self._own + self._multipliers / rho
        return found

    def published(self) -> Floats:
        """What a site sends in the protocol as published: its own weights, bare.

        Not used by the library: a coordinator that sees them computes the site's second
        moments. It is here for the test that shows it.
        """
        return self._own.copy()
