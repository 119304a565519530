"""Small classic networks with data simulated from them, and files from the internet."""

from isthmus.datasets.networks import Dataset, asia, burglary, fetch, sprinkler, water_level

__all__ = ["Dataset", "asia", "burglary", "fetch", "sprinkler", "water_level"]
