"""Reports of results as single HTML files that work offline."""

from isthmus.graphs.comparison import Comparison, compare
from isthmus.report.build import Reportable, build_page
from isthmus.report.page import EdgeRow, Measure, Page, RunAgain
from isthmus.report.rendering import render

__all__ = [
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
