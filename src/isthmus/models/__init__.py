"""Fitted networks: a graph and the parameters of its conditional distributions."""

from typing import TypeAlias

from isthmus.models.conditionals import (
    Conditional,
    ConditionalGaussian,
    MultinomialLogit,
    ProbabilityTable,
)
from isthmus.models.discrete import DiscreteNetwork, Level
from isthmus.models.gaussian import GaussianNetwork
from isthmus.models.gp import Curve, Effect, GPNetwork
from isthmus.models.mixed import MixedNetwork

Network: TypeAlias = DiscreteNetwork | GaussianNetwork | MixedNetwork
"""A network with parameters."""

__all__ = [
    "Conditional",
    "ConditionalGaussian",
    "Curve",
    "DiscreteNetwork",
    "Effect",
    "GPNetwork",
    "GaussianNetwork",
    "Level",
    "MixedNetwork",
    "MultinomialLogit",
    "Network",
    "ProbabilityTable",
]
