"""Checks of what a result rests on; each gives notes, and none of them stops a search.

One function per check, which documents its cost. ``docs/how-to/assumptions.md`` lists them;
``benchmarks/assumptions/measure.py`` measures how often they are wrong and what they find.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.errors import NotesWarning, counted, warn
from isthmus.graphs import DAG, Knowledge
from isthmus.objectives import (
    ADDITIVE_MODEL,
    INDEPENDENT_NOISE,
    PARAMETRIC_MODEL,
    SECOND_MOMENTS,
    Objective,
)
from isthmus.objectives.additive import CURVES
from isthmus.scores import GaussianEBIC
from isthmus.searches import Boss
from isthmus.statistics import Kind, Moments, Schema, Summary
from isthmus.statistics.coded import Codes
from isthmus.statistics.relations import linear_relations
from isthmus.verbs.curves import note_on_lines
from isthmus.verbs.notes_groups import unequal_slopes, unnamed_groups
from isthmus.verbs.notes_rows import (
    MOST_COLUMNS,
    MOST_ROWS,
    RowTable,
    copied_cells,
    dependent_rows,
    listed,
    outlying_rows,
    repeated_units,
    spaced,
    unchecked_series,
    unsteady_series,
)
from isthmus.verbs.notes_shapes import (
    common_scale,
    group_effects,
    heavy_tails,
    inflated,
    inflated_columns,
    products,
    residuals,
)
from isthmus.verbs.prepare import Problem
from isthmus.watch import Watch

# --- Checks of columns that statistics are enough for, so that they work for every source -------

_MOST_SHOWN = 5
"""Number of relations that are listed."""
_DETERMINED = 1e-6
"""Share of the variance of a column that may be left by columns that determine it."""
_NO_CHANCE = 14.0
"""Logarithm of the odds against levels that determine others by chance, as for copies of rows."""
_ROWS_PER_VARIABLE = 1.0
"""With no more rows than variables, edges rest on very little; see the table of false edges."""
_FEWEST_ROWS = 20
"""With fewer rows than this, edges rest on very little however few the variables. Of 40 tables of
two independent normal columns, `GP` found an edge in 19 with 5 rows, 8 with 15 and 4 with 20; of 40
tables of three independent columns of three levels, `BDeu` found one in 11 with 6 rows, 6 with 12
and 2 with 20."""

_FEW_TOGETHER = 30
"""With fewer rows in which both ends have values, an edge is named. Not tuned: the standard error
of a correlation is then about 0.2."""


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
    note = f"Constant columns: {listed(constants)}. Drop them; they have no edges."
    schema = statistics.schema
    discrete = schema.of_kind(Kind.DISCRETE)
    if discrete and len(discrete) < len(schema) and set(discrete) <= set(constants):
        note += " Without them all columns are numbers, and the default score is another one."
    return (note,)


def duplicate_columns(statistics: Summary) -> tuple[str, ...]:
    """Name columns that determine each other. Cost: one pass over the pairs of columns."""
    copies = statistics.duplicates()
    if not copies:
        return ()
    groups = _joined([f"{listed(group)} determine each other exactly" for group in copies])
    keep = "Keep one" if len(copies) == 1 else "Keep one of each"
    return (f"{groups}. {keep}: edges to the others are arbitrary.",)


def determined_columns(statistics: Summary) -> tuple[str, ...]:
    """Name columns that others determine, apart from mere copies.

    They are exact linear combinations of others or, in counts, have one level for each level of
    another. Cost: one Cholesky factor of the correlations; or one pass over a thousand rows for
    each column, and over all rows for each pair that it leaves.
    """
    copies = [set(group) for group in statistics.duplicates()]
    moments: Moments | None = statistics.without_rows().as_moments()
    if moments is None:
        pairs = [pair for pair in _coarser(statistics) if not any({*pair} <= c for c in copies)]
        drop = "Drop one" if len(pairs) == 1 else "Drop one of each"
        shown = _joined([f"{a!r} determines {b!r} exactly" for a, b in pairs])
        return (f"{shown}. {drop}.",) if pairs else ()
    relations = [
        group
        for group in linear_relations(moments)
        if not any(set(group) <= copy for copy in copies)
    ]
    values = moments.without_features()
    sentences = [_relation(group, values) for group in relations]
    # Rare levels of such columns hide their relations from the search above.
    known = [{*group} for group in (*relations, *copies)]
    sentences += [
        f"{a!r} determines {b!r} exactly"
        for a, b in _numbers_of_levels(values)
        if not any({a, b} <= group for group in known)
    ]
    drop = "Drop one" if len(sentences) == 1 else "Drop one of each"
    return (f"{_joined(sentences)}. {drop}.",) if sentences else ()


def _numbers_of_levels(moments: Moments) -> Iterator[tuple[str, str]]:
    """Yield discrete columns, and numbers that have one value for each of their levels."""
    if not moments.schema.of_kind(Kind.DISCRETE):
        return
    constants = set(moments.constants())
    numbers = [
        (v.name, start)
        for v, (start, _) in zip(moments.schema.variables, moments.blocks, strict=True)
        if v.kind is Kind.CONTINUOUS and v.name not in constants
    ]
    columns = [column for _, column in numbers]
    correlation = moments.correlation()
    for variable, (start, stop) in zip(moments.schema.variables, moments.blocks, strict=True):
        if variable.kind is Kind.CONTINUOUS or not columns or 2 * (stop - start) > moments.n:
            continue
        own = correlation[start:stop, start:stop]
        cross = correlation[start:stop, columns]
        explained = np.linalg.lstsq(own, cross, rcond=1e-10)[0]
        left = 1.0 - np.einsum("ij,ij->j", cross, explained)
        for (name, _), rest in zip(numbers, left.tolist(), strict=True):
            if rest < _DETERMINED:
                yield variable.name, name


def _coarser(statistics: Summary) -> Iterator[tuple[str, str]]:
    """Yield discrete columns, and others that have one level for each of theirs."""
    joint = statistics.joint
    if joint is None or not joint.codes.size:
        return
    rows = joint.nonzero()
    codes, weights = rows.codes, rows.filled()
    names = statistics.schema.names
    places = spaced(len(names), MOST_COLUMNS)
    head = codes[places][:, spaced(codes.shape[1], MOST_ROWS)].astype(np.int64)
    for i, own in zip(places.tolist(), head, strict=True):
        order = np.argsort(own, kind="stable")
        again = np.diff(own[order]) == 0
        changes = np.diff(head[:, order], axis=1)[:, again].any(axis=1)
        for j in places[~changes].tolist():
            if i != j and _determines(codes[i], codes[j], weights):
                yield names[i], names[j]


def _determines(finer: Codes, coarser: Codes, weights: Integers) -> bool:
    """Whether levels of one column have one level of the other each, and not by chance."""
    own, other = finer.astype(np.int64), coarser.astype(np.int64)
    level = np.zeros(int(own.max()) + 1, np.int64)
    level[own] = other
    sizes = np.bincount(other, weights)
    levels, n = len(np.unique(own)), float(weights.sum())
    if levels <= np.count_nonzero(sizes) or sizes.max() == n or (level[own] != other).any():
        return False
    # Rows of a level after its first one have the most frequent level of the other by chance.
    return (n - levels) * -math.log(float(sizes.max()) / n) > _NO_CHANCE


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


def sparse_edges(statistics: Summary, dag: DAG) -> tuple[str, ...]:
    """Name edges between variables of which few rows have both values. Cost: none."""
    fewest = min(_FEW_TOGETHER, statistics.number_of_rows)
    few = [(edge, rows) for edge in dag.edges if (rows := statistics.rows_about(edge)) < fewest]
    if not few:
        return ()
    shown = [f"{a} – {b} ({rows})" for (a, b), rows in few[:_MOST_SHOWN]]
    more = f" and {len(few) - _MOST_SHOWN} more" if len(few) > _MOST_SHOWN else ""
    verb = "rests" if len(few) == 1 else "rest"
    note = (
        f"{counted(len(few), 'edge')} {verb} on fewer than {fewest} rows in which both columns "
        f"have values (the number that counts is in parentheses): {', '.join(shown)}{more}."
    )
    return (note,)


# --- Checks of the units of columns, for losses that depend on them -----------------------------

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


# --- Checks of what a result rests on; none of them stops a search -------------------------------


def notes_on(problem: Problem, dag: DAG, *, named: bool, ranked: bool = False) -> tuple[str, ...]:
    """Return the notes of a result on its data and its graph; warn once if there are some.

    Parameters
    ----------
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
        *(products(table) if table is not None else ()),
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
