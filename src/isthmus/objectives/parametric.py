"""Losses of models with parameters of any shape, such as small neural networks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from isthmus.objectives.base import Capabilities, Capability, Objective, Sense
from isthmus.types import Bools, Floats, Integers, Work


@final
@dataclass(frozen=True, eq=False)
class NodeModel:
    """The model of one node, fitted on its parents alone.

    Attributes
    ----------
    parents
        Nodes that it depends on.
    parameters
        Its parameters, in a layout of the loss's own.
    variance
        Mean squared residual, in squared units of the noise.
    loss
        Value of the objective of this node.
    freedom
        Effective degrees of freedom, not counting a constant.
    residual
        Largest violation of optimality, in units of the noise.
    contributions
        Standard deviation of what each parent contributes to the prediction.
    """

    parents: tuple[int, ...]
    parameters: Floats
    variance: float
    loss: float
    freedom: float
    residual: float
    contributions: Floats


PARAMETRIC_MODEL: Capability[ParametricLoss] = Capability("a loss of parametric models")
"""A loss of a vector of parameters, such as those of neural networks; see `ParametricLoss`."""


class ParametricLoss(Objective):
    """A differentiable objective of a vector of parameters, to be minimised.

    It is in units of the noise, so that no penalty depends on the unit of the data.

    Attributes
    ----------
    nodes
        Names of the variables.
    edge
        For each parameter the edge it belongs to, as ``cause * len(nodes) + effect``; -1 for none.
        The model of a node does not depend on a cause when all parameters of that edge are zero.
    sample_size
        Number of observations.
    unit
        Size of the noise in the unit of the data; the loss is divided by its square.
    """

    sense: ClassVar[Sense] = Sense.MINIMISE
    capabilities: Capabilities = frozenset({PARAMETRIC_MODEL})
    equivalent = False
    edge: Integers
    sample_size: int
    unit: float

    @abstractmethod
    def start(self, rng: np.random.Generator) -> Floats:
        """Draw parameters to begin with."""

    @abstractmethod
    def value_and_gradient(self, parameters: Floats) -> tuple[float, Floats]:
        """Return the loss at ``parameters`` and its gradient."""

    def evaluation(self, parameters: Floats) -> Work[tuple[float, Floats]]:
        """Compute `value_and_gradient` in pieces; override it where that takes long."""
        yield
        return self.value_and_gradient(parameters)

    @abstractmethod
    def refit(
        self, target: int, parents: Sequence[int], start: Floats | NodeModel
    ) -> Work[NodeModel]:
        """Fit the model of one node on its parents alone, without a penalty on edges.

        Parameters
        ----------
        target, parents
            The node, and what it depends on.
        start
            Parameters of all nodes, or a model of this node with more parents, to begin with.
        """

    @abstractmethod
    def joined(self, models: Sequence[NodeModel]) -> Floats:
        """Return the parameters of all nodes, from one model for each."""

    @abstractmethod
    def restricted(self, nodes: Sequence[int]) -> ParametricLoss:
        """Return the loss of some of the nodes, as if there were no others."""

    @abstractmethod
    def looks_dependent(self) -> Work[Bools]:
        """Return for each pair of nodes whether they depend on each other more than noise does."""
