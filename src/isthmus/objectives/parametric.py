"""Losses of models with parameters of any shape, such as small neural networks."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class ParametricLoss(ABC):
    """A differentiable objective of a vector of parameters, to be minimised.

    Attributes
    ----------
    nodes
        Names of the variables.
    edge
        For each parameter the edge it belongs to, as ``cause * len(nodes) + effect``; -1 for none.
        The model of a node does not depend on a cause when all parameters of that edge are zero.
    """

    nodes: tuple[str, ...]
    edge: Integers

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Floats:
        """Draw parameters to begin with."""

    @abstractmethod
    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the loss at ``parameters`` and its gradient."""
