"""Fitted networks: a graph and the parameters of its conditional distributions."""

from typing import TypeAlias

from isthmus.networks.columns import Level
from isthmus.networks.conditionals import (
    Conditional,
    ConditionalGaussian,
    CurvedGaussian,
    CurvedLogit,
    Factor,
    Hurdle,
    MultinomialLogit,
    ProbabilityTable,
)
from isthmus.networks.counterfactuals import Counterfactual
from isthmus.networks.discrete import DiscreteNetwork
from isthmus.networks.distributions import (
    Explanation,
    Nonparanormal,
    Normal,
    NormalMixture,
    Probabilities,
)
from isthmus.networks.gaussian import GaussianNetwork
from isthmus.networks.gp import Curve, Effect, GPNetwork
from isthmus.networks.mixed import MixedNetwork
from isthmus.networks.support import MeanRange, ProbabilityRange

Network: TypeAlias = DiscreteNetwork | GaussianNetwork | MixedNetwork
"""A network with parameters."""

__all__ = [
    "Conditional",
    "ConditionalGaussian",
    "Counterfactual",
    "Curve",
    "CurvedGaussian",
    "CurvedLogit",
    "DiscreteNetwork",
    "Effect",
    "Explanation",
    "Factor",
    "GPNetwork",
    "GaussianNetwork",
    "Hurdle",
    "Level",
    "MeanRange",
    "MixedNetwork",
    "MultinomialLogit",
    "Network",
    "Nonparanormal",
    "Normal",
    "NormalMixture",
    "Probabilities",
    "ProbabilityRange",
    "ProbabilityTable",
]
