"""A result as one page that opens in a browser, without a network."""

from isthmus.report.page import EdgeRow, Page, render

__all__ = ["EdgeRow", "Page", "render"]
