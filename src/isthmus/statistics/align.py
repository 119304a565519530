"""Alignment of the levels of two statistics, so that they can be added."""

from __future__ import annotations

from typing import TypeVar

from isthmus.statistics.counts import Counts
from isthmus.statistics.moments import Moments
from isthmus.statistics.schema import union_levels

Statistic = TypeVar("Statistic", Moments, Counts)


def align_levels(first: Statistic, second: Statistic) -> tuple[Statistic, Statistic]:
    """Recode two statistics to the union of their levels, sorted where they differ.

    Levels are the same when they are equal: 1, 1.0 and True are one level. Text and numbers are
    never equal, so where one has 0 and the other ``"0"`` nothing tells whether they mean the same;
    that is refused.

    Raises
    ------
    SchemaError
        If names or kinds differ, or levels differ only in being text or not.
    """
    schema = union_levels(first.schema, second.schema)
    return first.with_schema(schema), second.with_schema(schema)
