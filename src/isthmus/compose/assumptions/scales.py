"""Checks of the units of columns, for losses that depend on them."""

from __future__ import annotations

import numpy as np

from isthmus.compose.assumptions.table import RowTable
from isthmus.compose.prepare import Problem
from isthmus.graphs import DAG, Knowledge
from isthmus.objectives import ADDITIVE_MODEL, PARAMETRIC_MODEL, SECOND_MOMENTS
from isthmus.runs import Watch
from isthmus.scores import GaussianEBIC
from isthmus.searches import Boss
from isthmus.statistics import Kind, Moments
from isthmus.types import Floats

_EQUAL = 1e-4
"""Largest relative difference of scales that are called equal: rescaled, then rounded."""
_MOST_COMPARED = 300
"""Up to this many variables, a graph is learned that does not depend on units: a tenth of a
second. Above, only the directions that its equivalence class leaves open are counted."""


def units(problem: Problem, dag: DAG) -> tuple[str, ...]:
    """Count the edges of a linear least-squares graph that rest on the units of the columns.

    An edge is confirmed if a score that does not depend on units finds it in the same direction,
    and its equivalence class determines that direction. Works from moments. Cost: one start of
    Boss.
    """
    loss = SECOND_MOMENTS.of(problem.objective)
    if loss is None or loss.equivalent or not dag.edges:
        return ()
    moments: Moments | None = problem.statistics.without_rows().as_moments()
    reference = dag
    plain = moments is not None and not moments.schema.of_kind(Kind.DISCRETE)
    if moments is not None and plain and len(dag.nodes) <= _MOST_COMPARED:
        score = GaussianEBIC().bind(moments.without_features().select(dag.nodes))
        rng = np.random.default_rng(0)
        found = Boss(starts=1).search(score, problem.constraints, rng, Watch())
        reference = DAG.from_parents(dag.nodes, found.parents)
    known = problem.knowledge
    pattern = reference.cpdag() if known == Knowledge() else reference.cpdag(known)
    confirmed = set(pattern.directed)
    open_edges = sum(edge not in confirmed for edge in dag.edges)
    if not open_edges:
        return ()
    note = (
        "Unless all columns have one common unit, use score=LinearLikelihood() or leave out the "
        "search: least squares directs edges by the scales of the columns, and a score that does "
        f"not depend on them does not confirm {open_edges} of {len(dag.edges)} edges. "
        "solution.standardised_refit() lists edges that change when columns are standardised."
    )
    return (note,)


def rescaled(problem: Problem, table: RowTable | None) -> tuple[str, ...]:
    """Notice columns without a scale of their own under a nonlinear loss that depends on scales.

    Standardised columns are noticed from moments; scaling by range, largest value or quartiles
    needs rows. Cost: one pass over the rows.
    """
    objective = problem.objective
    additive = ADDITIVE_MODEL.of(objective)
    if additive is not None:
        if additive.likelihood or additive.targets != len(additive.nodes):
            return ()
        alternative = "score=AdditiveLeastSquares(equal_variances=False)"
    elif PARAMETRIC_MODEL.of(objective) is not None:
        alternative = "search=NotearsAdditive() with AdditiveLeastSquares(equal_variances=False)"
    else:
        return ()
    moments: Moments | None = problem.statistics.without_rows().as_moments()
    scales = {} if table is None else _scales(table)
    if moments is not None:
        variances = np.diagonal(moments.without_features().covariance())
        scales["standard deviation"] = np.sqrt(variances[variances > 0.0])
    equal = [name for name, values in scales.items() if _is_equal(values)]
    if not equal:
        return ()
    note = (
        f"Give the columns in their common unit, use {alternative}, or leave out the search: all "
        f"columns have the same {equal[-1]}, so they were probably standardised or rescaled. Least "
        "squares finds directions by the scale of the noise, and rescaling removes it."
    )
    return (note,)


def _scales(table: RowTable) -> dict[str, Floats]:
    columns = [np.asarray(table.columns[j], dtype=np.float64) for j in table.numeric]
    if not columns:
        return {}
    quartiles = [np.quantile(x, [0.25, 0.75]) for x in columns]
    return {
        "interquartile range": np.array([q[1] - q[0] for q in quartiles]),
        "largest absolute value": np.array([np.abs(x).max() for x in columns]),
        "range": np.array([np.ptp(x) for x in columns]),
    }


def _is_equal(values: Floats) -> bool:
    return len(values) > 1 and bool(np.ptp(values) <= _EQUAL * values.max())
