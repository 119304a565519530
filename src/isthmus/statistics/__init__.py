"""Statistics: moments and counts, which sources compute and scores need. They can be added."""

from __future__ import annotations

from isthmus.statistics.base import CountPlan, Resampler, Statistic, Summary
from isthmus.statistics.coded import CodedRows
from isthmus.statistics.counts import Counts, align_levels
from isthmus.statistics.expansion import Expansion
from isthmus.statistics.features import Basis, Chebyshev, Features, Products, register_basis
from isthmus.statistics.incomplete import ExpectedCounts, IncompleteCounts
from isthmus.statistics.moments import Moments
from isthmus.statistics.regimes import Regimes
from isthmus.statistics.rows import MomentsBuilder, Rows
from isthmus.statistics.schema import Column, Kind, Level, Role, Schema, Variable
from isthmus.statistics.within import StandardisedColumns

__all__ = [
    "Basis",
    "Chebyshev",
    "CodedRows",
    "Column",
    "CountPlan",
    "Counts",
    "Expansion",
    "ExpectedCounts",
    "Features",
    "IncompleteCounts",
    "Kind",
    "Level",
    "Moments",
    "MomentsBuilder",
    "Products",
    "Regimes",
    "Resampler",
    "Role",
    "Rows",
    "Schema",
    "StandardisedColumns",
    "Statistic",
    "Summary",
    "Variable",
    "align_levels",
    "register_basis",
]
