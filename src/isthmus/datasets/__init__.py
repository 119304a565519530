"""Small classic networks with data simulated from them, for examples and tests."""

from isthmus.datasets.base import Dataset
from isthmus.datasets.networks import asia, burglary, sprinkler, water_level

__all__ = ["Dataset", "asia", "burglary", "sprinkler", "water_level"]
