"""Checks of columns that statistics are enough for, so that they work for every source."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isthmus.compose.assumptions.table import listed
from isthmus.objectives import Objective
from isthmus.plurals import counted
from isthmus.statistics import Moments, Schema, Summary
from isthmus.statistics.relations import linear_relations

_MOST_SHOWN = 5
"""Number of relations that are listed."""
_DETERMINED = 1e-6
"""Share of the variance of a column that may be left by columns that determine it."""
_ROWS_PER_VARIABLE = 1.0
"""With no more rows than variables, edges rest on very little; see the table of false edges."""
_FEWEST_ROWS = 20
"""With fewer rows than this, edges rest on very little however few the variables. Of 40 tables of
two independent normal columns, `GP` found an edge in 19 with 5 rows, 8 with 15 and 4 with 20; of 40
tables of three independent columns of three levels, `BDeu` found one in 11 with 6 rows, 6 with 12
and 2 with 20."""


def constant_columns(statistics: Summary) -> tuple[str, ...]:
    """Name columns with one value. Cost: none. It cannot be wrong."""
    constants = statistics.constants()
    if not constants:
        return ()
    moments: Moments | None = statistics.as_moments()
    if moments is not None and moments.groups is not None:
        note = (
            f"Constant within the groups: {listed(constants)}. Drop them, or learn without groups "
            "if they are what you ask about: their effects cannot be told from those of the "
            "groups, so they have no edges."
        )
        return (note,)
    return (f"Constant columns: {listed(constants)}. Drop them; they have no edges.",)


def duplicate_columns(statistics: Summary) -> tuple[str, ...]:
    """Name columns that determine each other. Cost: one pass over the pairs of columns."""
    copies = statistics.duplicates()
    if not copies:
        return ()
    groups = _joined([f"{listed(group)} determine each other exactly" for group in copies])
    keep = "Keep one" if len(copies) == 1 else "Keep one of each"
    return (f"{groups}. {keep}: edges to the others are arbitrary.",)


def determined_columns(statistics: Summary) -> tuple[str, ...]:
    """Name columns that are exact linear combinations of others, apart from mere copies.

    Cost: one Cholesky factor of the correlations.
    """
    moments: Moments | None = statistics.without_rows().as_moments()
    if moments is None:
        return ()
    copies = [set(group) for group in statistics.duplicates()]
    relations = [
        group
        for group in linear_relations(moments)
        if not any(set(group) <= copy for copy in copies)
    ]
    if not relations:
        return ()
    values = moments.without_features()
    drop = "Drop one" if len(relations) == 1 else "Drop one of each"
    return (f"{_joined([_relation(group, values) for group in relations])}. {drop}.",)


def _relation(group: Sequence[str], moments: Moments) -> str:
    """Say which variable of a linear relation is determined, if all of its columns are."""
    # The last variable of one column: totals follow their parts.
    for name in sorted(group, key=lambda name: (moments.schema[name].width, -group.index(name))):
        others = [other for other in group if other != name]
        if _is_determined(moments.select([*others, name]), len(others)):
            verb = "determines" if len(others) == 1 else "determine"
            return f"{listed(others)} {verb} {name!r} exactly"
    return f"{listed(group)} have an exact linear relation"


def _is_determined(moments: Moments, variables: int) -> bool:
    """Whether the first variables determine the last one."""
    given = moments.blocks[variables - 1][1]
    correlation = moments.correlation()
    cross = correlation[:given, given:]
    explained = np.linalg.lstsq(correlation[:given, :given], cross, rcond=1e-10)[0]
    left = 1.0 - np.einsum("ij,ij->j", cross, explained)
    return bool((left < _DETERMINED).all())


def _joined(sentences: Sequence[str]) -> str:
    more = len(sentences) - _MOST_SHOWN
    return "; ".join(sentences[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def similar_levels(schema: Schema) -> tuple[str, ...]:
    """Name levels that differ only in spaces or in upper and lower case. Cost: none."""
    alike = []
    for variable in schema.variables:
        forms: dict[str, str] = {}
        for level in variable.levels:
            if not isinstance(level, str):
                continue
            other = forms.setdefault(" ".join(level.split()).casefold(), level)
            if other != level:
                alike.append(f"{other!r} and {level!r} in {variable.name!r}")
                break
    if not alike:
        return ()
    note = (
        "Merge levels that differ only in spaces or in upper and lower case: "
        f"{_joined(alike)}. They count as different values."
    )
    return (note,)


def few_rows(objective: Objective, statistics: Summary) -> tuple[str, ...]:
    """Note that there are fewer than 20 rows, or no more than variables. Cost: none."""
    d = len(objective.nodes)
    if d < 2 or statistics.n > max(_ROWS_PER_VARIABLE * d, _FEWEST_ROWS - 1):
        return ()
    note = (
        f"{counted(statistics.n, 'row')} for {d} variables. Use more rows or fewer variables: with "
        "so few rows only strong effects are found, and an edge may be a coincidence."
    )
    return (note,)
