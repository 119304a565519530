"""Tools to test sources, scores and searches, shipped so that others can test theirs."""

from isthmus.testing.enumerate import enumerate_dags

__all__ = ["enumerate_dags"]
