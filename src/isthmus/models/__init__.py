"""Fitted networks: a graph with the numbers that make it a distribution."""

from isthmus.models.discrete import DiscreteNetwork, Level
from isthmus.models.gaussian import GaussianNetwork

__all__ = ["DiscreteNetwork", "GaussianNetwork", "Level"]
