"""Notes about data and results that deserve a look; none of them stops a search."""

from __future__ import annotations

import warnings

import numpy as np

from isthmus.errors import DataWarning
from isthmus.graphs import DAG
from isthmus.objectives import ADDITIVE_MODEL, PARAMETRIC_MODEL, SECOND_MOMENTS, Objective
from isthmus.plurals import counted
from isthmus.statistics import Moments, Statistic
from isthmus.statistics.relations import linear_relations

_VARSORTABLE = 0.9
"""Fraction of directed paths along which the variance grows that is worth a warning."""
_EQUAL = 1e-4
"""Largest relative difference of variances that are called equal: standardised, then rounded."""
_FEWEST_EDGES = 3
"""With fewer edges that fraction says little."""
_MOST_SHOWN = 5
"""Number of linear relations that are listed."""
_ROWS_PER_VARIABLE = 1.0
"""With no more rows than variables, edges rest on very little; see the table of false edges."""
_FEWEST_ROWS = 10
"""With fewer rows than this, edges rest on very little however few the variables."""


def diagnose(objective: Objective, statistics: Statistic, dag: DAG) -> tuple[str, ...]:
    """Return notes about degenerate columns, few rows and scales, and issue them as warnings."""
    notes = (
        *_degenerate_columns(statistics),
        *_linear_relations(statistics),
        *_few_rows(objective, statistics),
        *_varsortable(objective, dag),
        *_standardised(objective, statistics),
        *objective.notes(dag),
    )
    for note in notes:
        warnings.warn(note, DataWarning, stacklevel=4)
    return notes


def _degenerate_columns(statistics: Statistic) -> tuple[str, ...]:
    """Name constant and duplicate columns."""
    notes = []
    constants = statistics.constants()
    if constants:
        notes.append(
            f"Constant columns: {list(constants)}. They have no edges; leave them out or check "
            "why they do not vary."
        )
    copies = statistics.duplicates()
    if copies:
        groups = "; ".join(" and ".join(map(repr, group)) for group in copies)
        notes.append(
            f"Columns that determine each other exactly: {groups}. "
            "The edges between them and to others are arbitrary; keep one of each."
        )
    return tuple(notes)


def _linear_relations(statistics: Statistic) -> tuple[str, ...]:
    """Name columns that are exact linear combinations of others, apart from mere copies."""
    moments = statistics.without_rows()
    if not isinstance(moments, Moments):
        return ()
    copies = [set(group) for group in statistics.duplicates()]
    relations = [
        list(group)
        for group in linear_relations(moments)
        if not any(set(group) <= copy for copy in copies)
    ]
    if not relations:
        return ()
    shown = ", ".join(map(str, relations[:_MOST_SHOWN]))
    more = len(relations) - _MOST_SHOWN
    note = (
        f"Columns with an exact linear relation: {shown}"
        + (f" and {more} more" if more > 0 else "")
        + ". One of each group is determined by the others, as a total is by its parts. The data "
        "cannot tell which one; leave one of them out."
    )
    return (note,)


def _few_rows(objective: Objective, statistics: Statistic) -> tuple[str, ...]:
    d = len(objective.nodes)
    if d < 2 or statistics.n > max(_ROWS_PER_VARIABLE * d, _FEWEST_ROWS - 1):
        return ()
    note = (
        f"{counted(statistics.n, 'row')} for {d} variables: with so few rows, only strong effects "
        "are found, and an edge may be a coincidence. Use more rows or fewer variables."
    )
    return (note,)


def _varsortable(objective: Objective, dag: DAG) -> tuple[str, ...]:
    """Warn when a scale-dependent loss found a graph along which variances grow."""
    loss = SECOND_MOMENTS.of(objective)
    if loss is None or loss.equivalent or len(dag.edges) < _FEWEST_EDGES:
        return ()
    from isthmus.simulate.sortability import order_alignment

    share = order_alignment(np.diagonal(loss.matrix), dag)
    if share < _VARSORTABLE:
        return ()
    note = (
        f"The variance grows along {share:.0%} of the directed paths found (varsortability). Least "
        "squares depends on the scale of the columns: if their units are arbitrary, so are the "
        "directions. solution.standardised_refit() lists the edges that depend on the scale; "
        "score=LinearLikelihood() does not depend on it."
    )
    return (note,)


def _standardised(objective: Objective, statistics: Statistic) -> tuple[str, ...]:
    """Warn when a loss that depends on scales is given columns without a scale of their own."""
    moments = statistics.without_rows() if _depends_on_scale(objective) else None
    if not isinstance(moments, Moments):
        return ()
    variances = np.diagonal(moments.without_features().covariance())
    variances = variances[variances > 0.0]
    if len(variances) < 2 or np.ptp(variances) > _EQUAL * float(variances.max()):
        return ()
    alternative = "score=LinearLikelihood()"
    if ADDITIVE_MODEL.of(objective) is not None:
        alternative = "score=AdditiveLeastSquares(equal_variances=False)"
    elif PARAMETRIC_MODEL.of(objective) is not None:
        alternative = "search=NotearsAdditive() with AdditiveLeastSquares(equal_variances=False)"
    note = (
        "All columns have the same variance, so they were probably standardised. Least squares "
        "finds directions by the scale of the noise, and standardising removes it: the directions, "
        "and edges that depend on them, are not reliable. Give the columns in their common unit, "
        f"use {alternative}, which does not depend on scale, or leave out the search."
    )
    return (note,)


def _depends_on_scale(objective: Objective) -> bool:
    linear, additive = SECOND_MOMENTS.of(objective), ADDITIVE_MODEL.of(objective)
    if linear is not None:
        return not linear.equivalent
    if additive is not None:
        return not additive.likelihood and additive.targets == len(additive.nodes)
    return PARAMETRIC_MODEL.of(objective) is not None
