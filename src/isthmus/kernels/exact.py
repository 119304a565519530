"""Compiled kernels of score tables and exact searches: parent sets, order graph, clusters."""

from __future__ import annotations

from isthmus.kernels._native import ScoreBound, TableBuilder

__all__ = ["ScoreBound", "TableBuilder"]
