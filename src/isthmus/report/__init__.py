"""Reports of results as single HTML files that work offline."""

from isthmus.graphs.identification import Comparison, compare
from isthmus.report.page import Certainty, Measure

__all__ = [
    "Certainty",
    "Comparison",
    "Measure",
    "compare",
]
