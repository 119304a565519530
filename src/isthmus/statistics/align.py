"""Giving the statistics of two sites the same levels, so that they add up."""

from __future__ import annotations

from typing import TypeVar

from isthmus.statistics.counts import Counts
from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import union_levels

Statistic = TypeVar("Statistic", Moments, Counts)


def align_levels(first: Statistic, second: Statistic) -> tuple[Statistic, Statistic]:
    """Give both statistics the levels that either has, sorted where they differ."""
    schema = union_levels(first.schema, second.schema)
    return first.with_schema(schema), second.with_schema(schema)
