"""Fitted networks: a graph and the parameters of its conditional distributions."""

from typing import TypeAlias

from isthmus.models.columns import Level
from isthmus.models.conditionals import (
    Conditional,
    ConditionalGaussian,
    Hurdle,
    MultinomialLogit,
    ProbabilityTable,
)
from isthmus.models.counterfactuals import Counterfactual
from isthmus.models.curved import CurvedGaussian, CurvedLogit, Factor
from isthmus.models.discrete import DiscreteNetwork
from isthmus.models.distributions import (
    Explanation,
    Nonparanormal,
    Normal,
    NormalMixture,
    Probabilities,
)
from isthmus.models.gaussian import GaussianNetwork
from isthmus.models.gp import Curve, Effect, GPNetwork
from isthmus.models.mixed import MixedNetwork
from isthmus.models.ranges import MeanRange, ProbabilityRange

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
