"""Fitted networks: a graph and the parameters of its conditional distributions."""

from isthmus.models.discrete import DiscreteNetwork, Level
from isthmus.models.gaussian import GaussianNetwork

__all__ = ["DiscreteNetwork", "GaussianNetwork", "Level"]
