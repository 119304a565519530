"""Reports of results as single HTML files that work offline."""

from isthmus.report.build import Reportable, build_page
from isthmus.report.page import EdgeRow, Page, render
from isthmus.report.posterior_page import PosteriorPage, ProbabilityRow, render_posterior

__all__ = [
    "EdgeRow",
    "Page",
    "PosteriorPage",
    "ProbabilityRow",
    "Reportable",
    "build_page",
    "render",
    "render_posterior",
]
