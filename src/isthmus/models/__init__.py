"""Fitted networks: a graph and the parameters of its conditional distributions."""

from isthmus.models.discrete import DiscreteNetwork, Level
from isthmus.models.gaussian import GaussianNetwork
from isthmus.models.gp import Curve, Effect, GPNetwork

__all__ = ["Curve", "DiscreteNetwork", "Effect", "GPNetwork", "GaussianNetwork", "Level"]
