"""Reports of results as single HTML files that work offline."""

from isthmus.graphs.identification import Comparison, compare
from isthmus.report.page import Certainty, EdgeRow, Measure, Page, RunAgain, build_page
from isthmus.report.rendering import render

__all__ = [
    "Certainty",
    "Comparison",
    "EdgeRow",
    "Measure",
    "Page",
    "RunAgain",
    "build_page",
    "compare",
    "render",
]
