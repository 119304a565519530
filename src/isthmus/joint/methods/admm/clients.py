"""The clients of ADMM at the sites: they fit parameters of their own near the common ones.

After Ng and Zhang 2022, section 5. A site contributes ``B + β/ρ`` to a sum, and the coordinator's
step needs only that sum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from isthmus.types import Floats


class Client(ABC):
    """One site in ADMM, before its next step.

    Parameters
    ----------
    shape
        Shape of the parameters.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._multipliers = np.zeros(shape)
        self._own: Floats | None = None
        self._rho = 0.0

    @abstractmethod
    def _fit(self, common: Floats, rho: float) -> Floats:
        """Minimise the site's loss plus ``β · (B - W) + ρ/2 |B - W|²``."""

    def answer(self, common: Floats, rho: float) -> Floats:
        """Do one step, and return ``B + β/ρ`` for these common parameters."""
        if self._own is not None:
            self._multipliers = self._multipliers + self._rho * (self._own - common)
        self._own, self._rho = self._fit(common, rho), rho
        contribution: Floats = self._own + self._multipliers / rho
        return contribution


@final
class LinearClient(Client):
    """A site in ADMM for linear models.

    Parameters
    ----------
    second
        Second moments of the site's rows about their means, divided by the number of rows of *all*
        sites.
    targets
        Number of effects. The first variables are effects, the others are only causes (such as
        lagged variables). By default all variables are effects.
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
    """A site in ADMM for one small neural network per variable. Needs JAX.

    Parameters
    ----------
    values
        The site's rows, less their means.
    hidden
        Units in the hidden layer of each network.
    rows
        Number of rows of *all* sites.
    iterations
        Maximum number of L-BFGS iterations per step. Exact minima in early steps are not useful.
    """

    def __init__(self, values: Floats, hidden: int, rows: int, iterations: int = 30) -> None:
        from isthmus.neural import perceptron

        n, d = values.shape
        size = perceptron.size(d, hidden)
        super().__init__((size,))
        self._values = values
        self._hidden = hidden
        self._share = n / rows
        self._iterations = iterations
        # No network uses the variable that it predicts.
        own = np.repeat(np.eye(d, dtype=bool).ravel(), hidden)
        self._held = np.zeros(size, dtype=bool)
        self._held[: len(own)] = own

    def _fit(self, common: Floats, rho: float) -> Floats:
        from scipy.optimize import minimize

        from isthmus.neural import perceptron

        loss = perceptron.value_and_gradient(self._values, self._hidden, 0.0)
        # Divided by ρ, so that tolerances have the same meaning in early and late steps.
        pull, share = self._multipliers / rho, self._share / rho

        def objective(parameters: Floats) -> tuple[float, Floats]:
            value, gradient = loss(parameters)
            away = parameters - common
            value = share * value + float((pull + 0.5 * away) @ away)
            return value, np.where(self._held, 0.0, share * gradient + pull + away)

        optimum = minimize(
            objective,
            common if self._own is None else np.where(self._held, common, self._own),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self._iterations, "ftol": 1e-10, "gtol": 1e-6},
        )
        return np.asarray(optimum.x, dtype=np.float64)
