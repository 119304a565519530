"""Checks of what a result rests on; each gives notes, and none of them stops a search.

One function per check, which documents its cost. ``docs/how-to/assumptions.md`` lists them;
``benchmarks/assumptions/measure.py`` measures how often they are wrong and what they find.
"""

from __future__ import annotations

from isthmus.compose.assumptions.columns import (
    constant_columns,
    determined_columns,
    duplicate_columns,
    few_rows,
    similar_levels,
    sparse_edges,
)
from isthmus.compose.assumptions.groups import unequal_slopes, unnamed_groups
from isthmus.compose.assumptions.rows import (
    copied_cells,
    dependent_rows,
    outlying_rows,
    repeated_units,
)
from isthmus.compose.assumptions.scales import rescaled, units
from isthmus.compose.assumptions.series import unchecked_series, unsteady_series
from isthmus.compose.assumptions.shapes import (
    common_scale,
    group_effects,
    heavy_tails,
    inflated,
    inflated_columns,
    residuals,
)
from isthmus.compose.assumptions.table import RowTable
from isthmus.compose.curves import note_on_lines
from isthmus.compose.prepare import Problem
from isthmus.errors import NotesWarning, warn
from isthmus.graphs import DAG
from isthmus.objectives import CURVES, INDEPENDENT_NOISE
from isthmus.statistics import Moments

__all__ = ["check_rows", "notes_on"]


def notes_on(problem: Problem, dag: DAG, *, named: bool, ranked: bool = False) -> tuple[str, ...]:
    """Return the notes of a result on its data and its graph; warn once if there are some.

    Parameters
    ----------
    problem
        The data, as they were read.
    dag
        The graph that was learned, or that represents an ensemble.
    named
        Whether the user named the score, so that curves have not challenged the graph before.
    ranked
        Whether the edges also hold for normal scores, so that heavy tails do not matter.
    """
    objective, statistics = problem.objective, problem.statistics
    table = RowTable.of(problem.source)
    directed = INDEPENDENT_NOISE.of(objective) is not None
    of_rows: tuple[str, ...] = ()
    if table is not None:
        linear = _is_linear(problem)
        of_rows = check_rows(table, dag, linear=linear, directed=directed, ranked=ranked)
    notes = (
        *constant_columns(statistics),
        *duplicate_columns(statistics),
        *determined_columns(statistics),
        *similar_levels(statistics.schema),
        *few_rows(objective, statistics),
        *sparse_edges(statistics, dag),
        *units(problem, dag),
        *rescaled(problem, table),
        *(copied_cells(statistics) if table is None else ()),
        *unsteady_series(problem.source),
        *of_rows,
        *(_of_groups(table, dag) if table is not None else ()),
        *(note_on_lines(problem, dag) if named and table is not None else ()),
        *objective.notes(dag),
    )
    if problem.reading.cautions or notes:
        warn(NotesWarning((*problem.reading.cautions, *notes)))
    read = (*problem.reading.notes, *problem.source.notes())
    return (*read, *notes, *unchecked_series(problem.source))


def _of_groups(table: RowTable, dag: DAG) -> tuple[str, ...]:
    if table.groups is not None:
        return unequal_slopes(table, dag)
    return unnamed_groups(table, dag, codes=not repeated_units(table))


def check_rows(
    table: RowTable, dag: DAG, *, linear: bool, directed: bool = False, ranked: bool = False
) -> tuple[str, ...]:
    """Return notes about rows and distributions.

    Parameters
    ----------
    table
        The rows.
    dag
        The graph whose residuals are checked.
    linear
        Whether the model is linear, so that curved effects are missed.
    directed
        Whether directions were learned from the shape of the noise.
    ranked
        Whether the edges also hold for normal scores.
    """
    outliers = outlying_rows(table)
    table = table.without(outliers.rows)
    dependent = dependent_rows(table)
    sample = None if dependent else residuals(table, dag)
    if sample is None:
        return (*outliers.notes, *dependent)
    lumps = inflated_columns(table)
    # A common scale gives every column heavy tails.
    scale = common_scale(table, sample)
    return (
        *outliers.notes,
        *inflated(table, dag, lumps),
        *(scale or (() if ranked else heavy_tails(table, sample, directed=directed, known=lumps))),
        *(group_effects(table, sample) if linear else ()),
    )


def _is_linear(problem: Problem) -> bool:
    moments: Moments | None = problem.statistics.as_moments()
    curved = CURVES in problem.plain_score.gives
    return moments is not None and (curved or not moments.schema.has_features)
