"""Small classic networks with data simulated from them, and files from the internet."""

from isthmus.datasets.download import fetch
from isthmus.datasets.networks import Dataset, asia, burglary, sprinkler, water_level

__all__ = ["Dataset", "asia", "burglary", "fetch", "sprinkler", "water_level"]
