"""Losses of models with parameters of any shape, such as small neural networks."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from isthmus.objectives.base import PARAMETRIC_MODEL, Capabilities, Objective, Sense
from isthmus.types import Floats, Integers


class ParametricLoss(Objective):
    """A differentiable objective of a vector of parameters, to be minimised.

    Attributes
    ----------
    nodes
        Names of the variables.
    edge
        For each parameter the edge it belongs to, as ``cause * len(nodes) + effect``; -1 for none.
        The model of a node does not depend on a cause when all parameters of that edge are zero.
    """

    sense: ClassVar[Sense] = Sense.MINIMISE
    capabilities: Capabilities = frozenset({PARAMETRIC_MODEL})
    equivalent = False
    edge: Integers

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Floats:
        """Draw parameters to begin with."""

    @abstractmethod
    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the loss at ``parameters`` and its gradient."""
