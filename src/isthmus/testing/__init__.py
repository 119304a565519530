"""Conformance checks for your own sources, bases, scores, tests and searches."""

from isthmus.testing.independence import check_test
from isthmus.testing.search import SeparationOracle, check_score, check_search, enumerate_dags
from isthmus.testing.source import check_basis, check_source

__all__ = [
    "SeparationOracle",
    "check_basis",
    "check_score",
    "check_search",
    "check_source",
    "check_test",
    "enumerate_dags",
]
