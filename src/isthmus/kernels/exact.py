"""Compiled kernels of score tables and exact searches: parent sets, order graph, clusters."""

from __future__ import annotations

from isthmus.kernels import _native

ClusterSearch = _native.ClusterSearch
Decomposition = _native.Decomposition
OrderGraph = _native.OrderGraph
ScoreBound = _native.ScoreBound
SubsetDP = _native.SubsetDP
TableBuilder = _native.TableBuilder

__all__ = ["ClusterSearch", "Decomposition", "OrderGraph", "ScoreBound", "SubsetDP", "TableBuilder"]
