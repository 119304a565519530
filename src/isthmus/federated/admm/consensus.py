"""ADMM at a site: fit its own parameters near the common ones, and remember the multipliers.

After Ng and Zhang 2022, section 5. A site gives ``B + β/ρ`` into a sum; the coordinator's step
needs no more than that sum.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import RefusedError

Floats: TypeAlias = NDArray[np.float64]


class Client(ABC):
    """The state of one site in ADMM.

    A step may be asked for again with the same parameters, for a round may fail after the site
    has answered; it is final when the next step is asked for. Other parameters for the same step
    are refused. All attributes are numbers, bytes and arrays, so that a site can keep them over a
    restart.

    Parameters
    ----------
    shape
        Of the parameters.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._multipliers = np.zeros(shape)
        self._step = 0
        self._asked = bytes(32)
        self._own = np.zeros(shape)
        self._rho = 0.0

    @property
    def step(self) -> int:
        """The last step that was answered."""
        return self._step

    @abstractmethod
    def _fit(self, common: Floats, rho: float) -> Floats:
        """Minimise the site's loss, ``β · (B - W)`` and ``ρ/2 |B - W|²``."""

    def answer(self, step: int, common: Floats, rho: float) -> Floats:
        """``B + β/ρ`` for these common parameters."""
        if not (np.isfinite(common).all() and np.isfinite(rho) and rho > 0):
            raise RefusedError("Parameters and penalty of a step must be finite.")
        if common.shape != self._shape:
            raise RefusedError(f"The step is for parameters of the shape {common.shape}.")
        asked = hashlib.sha256(common.tobytes() + np.float64(rho).tobytes()).digest()
        if step == self._step + 1:
            if step > 1:
                # The common parameters tell how the last step ended; only now is it final.
                self._multipliers = self._multipliers + self._rho * (self._own - common)
            self._step, self._asked, self._rho = step, asked, rho
            self._own = self._fit(common, rho)
        elif step != self._step or asked != self._asked:
            raise RefusedError(
                f"Step {step} was asked for after step {self._step}. Steps follow each other, "
                "and a step has one set of weights."
            )
        found: Floats = self._own + self._multipliers / rho
        return found

    def published(self) -> Floats:
        """What a site sends in the protocol as published: its own parameters, bare.

        Not used by the library: for linear models a coordinator that sees them computes the
        site's second moments. It is here for the test that shows it.
        """
        return self._own.copy()


@final
class LinearClient(Client):
    """A site in ADMM for linear models.

    Parameters
    ----------
    second
        Second moments of the site's rows about the centre, divided by the number of rows of *all*
        sites.
    targets
        The first so many variables are effects, the others only causes (such as earlier steps);
        by default all are effects.
    """

    def __init__(self, second: Floats, targets: int | None = None) -> None:
        self._second = second
        self._targets = len(second) if targets is None else targets
        super().__init__((len(second), self._targets))

    def _fit(self, common: Floats, rho: float) -> Floats:
        right = rho * common - self._multipliers + self._second[:, : self._targets]
        solved = np.linalg.solve(self._second + rho * np.eye(len(self._second)), right)
        return solved.astype(np.float64)


@final
class NetworkClient(Client):
    """A site in ADMM for one small neural network a node. Needs JAX.

    Parameters
    ----------
    values
        The site's rows.
    hidden
        Units in the hidden layer of each node.
    rows
        Number of rows of *all* sites.
    iterations
        The most iterations of L-BFGS in a step; in early steps exact minima are wasted work.
    """

    def __init__(self, values: Floats, hidden: int, rows: int, iterations: int = 30) -> None:
        from isthmus.numerics import perceptron

        n, d = values.shape
        super().__init__((perceptron.size(d, hidden),))
        self._values = values
        self._hidden = hidden
        self._share = n / rows
        self._iterations = iterations
        # No network reads the variable that it predicts.
        own = np.repeat(np.eye(d, dtype=bool).ravel(), hidden)
        self._held = np.zeros(self._shape, dtype=bool)
        self._held[: len(own)] = own

    def _fit(self, common: Floats, rho: float) -> Floats:
        from scipy.optimize import minimize

        from isthmus.numerics import perceptron

        loss = perceptron.value_and_gradient(self._values, self._hidden, 0.0)
        # Divided by ρ, so that tolerances mean the same in early and in late steps.
        pull, share = self._multipliers / rho, self._share / rho

        def objective(parameters: Floats) -> tuple[float, Floats]:
            value, gradient = loss(parameters)
            away = parameters - common
            value = share * value + float((pull + 0.5 * away) @ away)
            return value, np.where(self._held, 0.0, share * gradient + pull + away)

        start = common if self._step == 1 else np.where(self._held, common, self._own)
        found = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self._iterations, "ftol": 1e-10, "gtol": 1e-6},
        )
        return np.asarray(found.x, dtype=np.float64)
