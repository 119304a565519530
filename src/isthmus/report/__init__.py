"""Reports of results as single HTML files that work offline."""

from isthmus.report.build import Reportable, build_page
from isthmus.report.page import EdgeRow, Page, render

__all__ = ["EdgeRow", "Page", "Reportable", "build_page", "render"]
