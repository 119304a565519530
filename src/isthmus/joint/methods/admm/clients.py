"""The clients of ADMM at the sites: they fit parameters of their own near the common ones.

After Ng and Zhang 2022, section 5. A site contributes ``B + β/ρ`` to a sum, and the coordinator's
step needs only that sum.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import final

import numpy as np

from isthmus.errors import RefusedError
from isthmus.types import Floats


class Client(ABC):
    """The state of one site in ADMM.

    A step may be requested again with the same parameters, because a round may fail after the site
    has answered. It becomes final when the next step is requested. Other parameters for the same
    step are refused. All attributes are numbers, bytes and arrays, so that they can be saved.

    Parameters
    ----------
    shape
        Shape of the parameters.
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
        """Minimise the site's loss plus ``β · (B - W) + ρ/2 |B - W|²``."""

    def answer(self, step: int, common: Floats, rho: float) -> Floats:
        """Return ``B + β/ρ`` for these common parameters."""
        if not (np.isfinite(common).all() and np.isfinite(rho) and rho > 0):
            raise RefusedError(
                "The parameters and the penalty of a step must be finite, and the penalty positive."
            )
        if common.shape != self._shape:
            raise RefusedError(
                f"The step has parameters of shape {common.shape}; this site expects {self._shape}."
            )
        asked = hashlib.sha256(common.tobytes() + np.float64(rho).tobytes()).digest()
        if step == self._step + 1:
            if step > 1:
                # The new common parameters show that the last step succeeded; only now it is final.
                self._multipliers = self._multipliers + self._rho * (self._own - common)
            self._step, self._asked, self._rho = step, asked, rho
            self._own = self._fit(common, rho)
        elif step != self._step or asked != self._asked:
            raise RefusedError(
                f"Step {step} was requested after step {self._step}. Steps must follow each other, "
                "and each step has only one set of parameters."
            )
        contribution: Floats = self._own + self._multipliers / rho
        return contribution


@final
class LinearClient(Client):
    """A site in ADMM for linear models.

    Parameters
    ----------
    second
        Second moments of the site's rows about the centre, divided by the number of rows of *all*
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
        The site's rows.
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
        super().__init__((perceptron.size(d, hidden),))
        self._values = values
        self._hidden = hidden
        self._share = n / rows
        self._iterations = iterations
        # No network uses the variable that it predicts.
        own = np.repeat(np.eye(d, dtype=bool).ravel(), hidden)
        self._held = np.zeros(self._shape, dtype=bool)
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

        start = common if self._step == 1 else np.where(self._held, common, self._own)
        optimum = minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self._iterations, "ftol": 1e-10, "gtol": 1e-6},
        )
        return np.asarray(optimum.x, dtype=np.float64)
