"""Compiled kernels of score tables and exact searches: parent sets, order graph, clusters."""

from __future__ import annotations

from isthmus.kernels import _native

ScoreBound = _native.ScoreBound
TableBuilder = _native.TableBuilder


__all__ = ["ScoreBound", "TableBuilder"]
