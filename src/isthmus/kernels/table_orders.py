"""Compiled kernels of searches over the orders of a score table: swaps, windows, walks."""

from __future__ import annotations

from isthmus.kernels import _native

ScoreLines = _native.ScoreLines
SwapSearch = _native.SwapSearch
TableRun = _native.TableRun
TableWalks = _native.TableWalks

__all__ = ["ScoreLines", "SwapSearch", "TableRun", "TableWalks"]
