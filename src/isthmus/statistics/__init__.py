"""Waist 1: what leaves the place where data live. Statistics add up."""

from __future__ import annotations

from isthmus.statistics.align import align_levels
from isthmus.statistics.basis import Chebyshev, Expansion
from isthmus.statistics.builder import MomentsBuilder
from isthmus.statistics.coded import CodedRows
from isthmus.statistics.counts import Counts
from isthmus.statistics.moments import Moments
from isthmus.statistics.plan import Plan
from isthmus.statistics.rows import Rows
from isthmus.statistics.schema import Kind, Level, Schema, Variable

__all__ = [
    "Chebyshev",
    "CodedRows",
    "Counts",
    "Expansion",
    "Kind",
    "Level",
    "Moments",
    "MomentsBuilder",
    "Plan",
    "Rows",
    "Schema",
    "Variable",
    "align_levels",
]
