"""Statistics: moments and counts, which sources compute and scores need. They can be added."""

from __future__ import annotations

from isthmus.statistics.base import CountPlan, Resampler, Statistic, Summary
from isthmus.statistics.counts import Counts
from isthmus.statistics.expansion import Expansion
from isthmus.statistics.features import Basis, Chebyshev, Features, Products, register_basis
from isthmus.statistics.moments import Moments
from isthmus.statistics.rows import Rows
from isthmus.statistics.schema import Column, Kind, Level, Role, Schema, Variable

__all__ = [
    "Basis",
    "Chebyshev",
    "Column",
    "CountPlan",
    "Counts",
    "Expansion",
    "Features",
    "Kind",
    "Level",
    "Moments",
    "Products",
    "Resampler",
    "Role",
    "Rows",
    "Schema",
    "Statistic",
    "Summary",
    "Variable",
    "register_basis",
]
