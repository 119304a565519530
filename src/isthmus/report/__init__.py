"""Reports of results as single HTML files that work offline."""

from isthmus.graphs.comparison import Comparison, compare
from isthmus.report.build import Certainty, Reportable, build_page
from isthmus.report.page import EdgeRow, Measure, Page, RunAgain
from isthmus.report.rendering import render

__all__ = [
    "Certainty",
    "Comparison",
    "EdgeRow",
    "Measure",
    "Page",
    "Reportable",
    "RunAgain",
    "build_page",
    "compare",
    "render",
]
