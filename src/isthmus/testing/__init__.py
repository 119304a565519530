"""Conformance checks for your own sources, bases, scores and searches."""

from isthmus.testing.basis import check_basis
from isthmus.testing.enumerate import enumerate_dags
from isthmus.testing.oracle import SeparationOracle
from isthmus.testing.score import check_score
from isthmus.testing.search import check_search
from isthmus.testing.source import check_source

__all__ = [
    "SeparationOracle",
    "check_basis",
    "check_score",
    "check_search",
    "check_source",
    "enumerate_dags",
]
