"""Groups that are in the table and were not named, and effects that differ between named groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.errors import DataError, counted
from isthmus.graphs import DAG
from isthmus.statistics import Kind, Moments
from isthmus.statistics.within import moments_within
from isthmus.verbs.notes_rows import RowTable, listed, spaced

_MOST_ROWS = 20_000
_MOST_CANDIDATES = 20
_MOST_EDGES = 200
_ROWS_PER_GROUP = 5
"""Columns with fewer rows per value on average are no groups."""
_FEWEST_LEVELS, _FEWEST_NUMBERS = 9, 5
"""Fewer levels cost a graph so little that it has the edges of a discrete column itself."""
_VANISHED, _CHANGED = 2.0, 2.0
"""An edge vanishes if its slope within groups is less than two standard errors from zero, and more
than two from that of all rows. Both must hold for the regressions of either end on the
other: a column that follows from one end leaves one of them as it is. See
``benchmarks/groups/measure.py``."""
_NAMED = 10
"""Columns and edges that a note names, because it is about each of them."""
_MANY = 0.15
"""Share of edges that vanish from which the levels of groups are worth a note. Fewer may vanish
within the levels of any column, whose own effects the model does not describe well."""
_SURE = 1e-3
"""Level of the tests that groups differ, and that their means follow no polynomial of numbers."""
_CODED, _OFF_CURVE = 1e-6, 0.5
"""Level at which the means of two columns must follow no polynomial of numbers to call them codes,
and the share of the squares of the differences that it must leave."""
_LARGEST = 0.5
"""Share of the rows above which a value, such as no capital gain, is an amount and no code."""
_MANY_LEVELS, _ROWS_PER_LEVEL = 19, 100
"""A discrete column with at least this many levels beside the first, and fewer rows per level,
costs so much that its edges are missed, and other directions were wrong: see
``benchmarks/claims/registry.py``."""
_LARGE_GROUP = 30
"""Rows of a group from which its slope has a usable standard error."""
_LEVEL = 1e-3
"""Level of the test of equal slopes, over all edges."""
_NOTABLE = 0.2
"""Standard deviation of slopes between groups, as a share of the slope, that is worth a note."""


def unnamed_groups(table: RowTable, dag: DAG, *, codes: bool = True) -> tuple[str, ...]:
    """Find a column whose groups differ in level, so that edges can come from that.

    Either edges vanish within the groups. Or (`codes`) most columns differ between whole numbers
    that say nothing but who belongs together, or between levels of few rows each. Cost: one pass
    over the rows per column of text or of whole numbers with few values, up to 20 columns and
    20,000 rows.
    """
    rows = spaced(table.n, _MOST_ROWS)
    best: tuple[str, list[tuple[str, str]], list[str]] = ("", [], [])
    for name, groups in _candidates(table, rows):
        means = _means(table, name, groups, rows)
        is_number = table.schema[name].kind is Kind.CONTINUOUS
        if is_number and not _are_labels([*means.values()]):
            continue
        largest = np.bincount(groups).max() / len(groups)
        few = groups.max() >= _MANY_LEVELS and len(groups) < _ROWS_PER_LEVEL * groups.max()
        differ = [n for n, m in means.items() if m.are_of_codes or not is_number]
        differ = [n for n in differ if n in dag.nodes and means[n].surely_differ]
        named = codes and (is_number or few) and largest <= _LARGEST
        if not named or len(differ) < max(2, len(means) // 2):
            differ = []
        vanished = _vanished(table, dag, name, groups, rows)
        if len(vanished) < _MANY * sum(name not in edge for edge in dag.edges):
            vanished = []
        if (len(vanished), len(differ)) > (len(best[1]), len(best[2])):
            best = name, vanished, differ
    name, edges, differ = best
    if not name:
        return ()
    note = f"Learn within the groups of {name!r}: groups={name!r}, if they are sites, clinics or "
    note += "batches."
    if differ:
        note += f" The means of {listed(differ, _NAMED)} differ between them"
        if table.schema[name].kind is Kind.CONTINUOUS:
            note += ", and its numbers look like codes, because these means follow no curve of them"
        else:
            note += ", and an edge from so many levels of few rows costs so much that it is missed"
        note += ". Edges and directions between these columns can come from that."
    if edges:
        shown = listed([f"{a} – {b}" for a, b in edges], _NAMED)
        note += (
            f" The {'edge' if len(edges) == 1 else 'edges'} {shown} "
            f"{'vanishes' if len(edges) == 1 else 'vanish'} within them: they come from groups of "
            "different levels."
        )
    return (note,)


def _means(table: RowTable, name: str, groups: Integers, rows: Integers) -> dict[str, _Means]:
    """Return how the means of the other columns differ between groups."""
    numbers = table.numbers(table.names.index(name), rows)
    if table.schema[name].kind is Kind.DISCRETE:
        numbers = groups.astype(np.float64)
    return {
        other: _Means.of(numbers, groups, table.numbers(j, rows))
        for j, other in enumerate(table.names)
        if other != name
    }


def _candidates(table: RowTable, rows: Integers) -> Iterator[tuple[str, Integers]]:
    """Yield columns that look like groups, with the group of each row."""
    found = 0
    for variable, column in zip(table.schema.variables, table.columns, strict=True):
        if found == _MOST_CANDIDATES:
            return
        x = np.asarray(column)[rows]
        if variable.kind is Kind.CONTINUOUS and not _is_whole(x):
            continue
        values, groups = np.unique(x, return_inverse=True)
        least = _FEWEST_LEVELS if variable.kind is Kind.DISCRETE else _FEWEST_NUMBERS
        if least <= len(values) <= len(rows) // _ROWS_PER_GROUP:
            found += 1
            yield variable.name, groups.ravel()


def _are_labels(means: Sequence[_Means]) -> bool:
    """Whether most columns that differ between groups follow no polynomial of their numbers."""
    return 2 * sum(m.unlike for m in means) >= sum(m.differ for m in means) > 0


@final
class _Means(NamedTuple):
    """How the means of a column differ between groups with numbers.

    Attributes
    ----------
    differ
        Whether they do.
    surely_differ
        Whether they do beyond doubt.
    unlike
        Whether they follow no polynomial of the numbers.
    are_of_codes
        Whether the numbers are hardly more than names: beyond doubt, and most of the differences
        are away from the polynomial.
    """

    differ: bool
    surely_differ: bool
    unlike: bool
    are_of_codes: bool

    @classmethod
    def of(cls, numbers: Floats, groups: Integers, x: Floats) -> _Means:
        """Return this for the numbers of the groups, the group of each row, and a column."""
        from scipy.stats import f as f_distribution

        sizes = np.bincount(groups)
        own = np.bincount(groups, numbers) / sizes
        degree = 3 if len(sizes) > 8 else min(2, len(sizes) - 2)
        powers = np.vander((own - own.mean()) / own.std(), degree + 1) * np.sqrt(sizes)[:, None]
        means = np.bincount(groups, x) / sizes
        second = len(groups) - len(sizes)
        noise = max(float(((x - means[groups]) ** 2).sum()) / second, 1e-300)
        between = np.sqrt(sizes) * (means - x.mean())
        left = between - powers @ np.linalg.lstsq(powers, between, rcond=None)[0]
        first = len(sizes) - degree - 1
        ratios = [between @ between / (len(sizes) - 1) / noise, left @ left / first / noise]
        p_values = np.asarray(f_distribution.sf(ratios, [len(sizes) - 1, first], second))
        most = left @ left > _OFF_CURVE * (between @ between)
        differ, unlike = np.less(p_values, _SURE).tolist()
        certain = np.less(p_values, _CODED).tolist()
        return cls(differ, certain[0], unlike, bool(most and certain[1]))


def _is_whole(x: Floats) -> bool:
    head = x[:100]
    return bool((head == np.floor(head)).all() and (x == np.floor(x)).all())


def _vanished(
    table: RowTable, dag: DAG, name: str, groups: Integers, rows: Integers
) -> list[tuple[str, str]]:
    """Return the edges of the graph that vanish within groups."""
    edges = [edge for edge in dag.edges if name not in edge][:_MOST_EDGES]
    used = sorted({n for a, b in edges for n in (a, *dag.parents(b), b)} - {name})
    if not used:
        return []
    schema = table.schema.subset(used)
    columns = [np.asarray(table.columns[i])[rows] for i in table.schema.indices(used)]
    try:
        within = moments_within(schema, columns, groups)
    except DataError:
        return []
    pooled = Moments.from_columns(schema, columns)
    return [
        (a, b)
        for a, b in edges
        if _vanishes(pooled, within, a, b, [p for p in dag.parents(b) if p not in (a, name)])
    ]


def _vanishes(pooled: Moments, within: Moments, a: str, b: str, given: Sequence[str]) -> bool:
    """Whether the strongest relation of two variables, given others, vanishes within groups."""
    before, after = _Slopes.of(pooled, a, b, given), _Slopes.of(within, a, b, given)
    if before is None or after is None:
        return False
    # The columns of the two variables, such as their levels, that are most closely related.
    i, j = np.unravel_index(int(np.abs(before.scores).argmax()), before.scores.shape)
    gone = np.abs(after.scores).max() < _VANISHED * np.sqrt(after.scores.size)
    changed = (
        abs(slope[i, j] - was[i, j]) > _CHANGED * error[i, j]
        for slope, was, error in zip(after.slopes, before.slopes, after.errors, strict=True)
    )
    return bool(gone and abs(before.scores[i, j]) > _CHANGED and all(changed))


@final
class _Slopes(NamedTuple):
    """Slopes between the columns of two variables, given others.

    Attributes
    ----------
    scores
        Partial correlations in units of their standard errors, one row per column of the first
        variable and one column per column of the second.
    slopes, errors
        The slope of the second on the first and of the first on the second, with standard errors.
    """

    scores: Floats
    slopes: tuple[Floats, Floats]
    errors: tuple[Floats, Floats]

    @classmethod
    def of(cls, moments: Moments, a: str, b: str, given: Sequence[str]) -> _Slopes | None:
        """Return the slopes; None if a variable is constant, or follows from the others."""
        part = moments.select([a, b, *given])
        width = part.blocks[1][1]
        split, scatter = part.blocks[0][1], part.scatter()
        left = scatter[:width, :width]
        if len(scatter) > width:
            inner = scatter[width:, width:]
            explained = np.linalg.lstsq(inner, scatter[width:, :width], rcond=1e-10)[0]
            left = left - scatter[:width, width:] @ explained
        degrees = part.n - 2 - (len(scatter) - width)
        x, y = left.diagonal()[:split], left.diagonal()[split:]
        total = scatter.diagonal()[:width]
        if degrees < 10 or (left.diagonal() <= 1e-9 * total).any() or not len(x) or not len(y):
            return None
        cross = left[:split, split:]
        r = np.clip(cross / np.sqrt(np.outer(x, y)), -1.0, 1.0)
        error = np.sqrt((1.0 - r**2) / degrees)
        scale = np.sqrt(np.outer(1.0 / x, y))  # of slopes of the second on the first
        errors = error * scale, error / scale
        return cls(r / np.maximum(error, 1e-12), (r * scale, r / scale), errors)


def unequal_slopes(table: RowTable, dag: DAG) -> tuple[str, ...]:
    """Find edges whose slope differs between named groups of at least 30 rows.

    Cost: one regression per edge, and one sum over its rows.
    """
    groups = table.groups
    if groups is None or table.schema.of_kind(Kind.DISCRETE):
        return ()
    sizes = np.bincount(groups)
    large = np.flatnonzero(sizes >= _LARGE_GROUP)
    edges = dag.edges[:_MOST_EDGES]
    if len(large) < 2 or not edges:
        return ()
    from scipy.stats import chi2

    limit, found = float(chi2.isf(_LEVEL / len(edges), len(large) - 1)), []
    for a, b in edges:
        given = [p for p in dag.parents(b) if p != a]
        # Groups of different variance have different slopes in one direction only, so that no
        # difference is claimed if the other direction has equal ones.
        if all(_differ(table, [*pair], given, groups, large, limit) for pair in ((a, b), (b, a))):
            found.append(f"{a} – {b}")
    if not found:
        return ()
    note = (
        f"Learn large groups on their own to see how they differ: the slope of {listed(found)} "
        f"is not the same in {counted(len(large), 'group')}. The graph and its effects are "
        "averages over groups."
    )
    return (note,)


def _differ(
    table: RowTable,
    pair: Sequence[str],
    given: Sequence[str],
    groups: Integers,
    large: Integers,
    limit: float,
) -> bool:
    """Whether the slope of the second variable on the first differs between groups.

    Parameters
    ----------
    table
        The rows, about the means of their groups.
    pair, given
        Two variables, and others that are adjusted for.
    groups, large
        The group of each row, and the groups to compare.
    limit
        Largest statistic of Cochran for which slopes count as equal.
    """
    places = table.schema.indices([*pair, *given])
    x, y, *others = (np.asarray(table.columns[i], np.float64) for i in places)
    if others:
        columns = np.stack(others)
        x, y = (v - np.linalg.lstsq(columns.T, v, rcond=1e-10)[0] @ columns for v in (x, y))
    squares = np.bincount(groups, x * x)
    if not (squares[large] > 0.0).all():
        return False
    slopes = np.bincount(groups, x * y) / np.maximum(squares, 1e-300)
    errors = np.bincount(groups, (x * (y - slopes[groups] * x)) ** 2)[large]
    sizes = np.bincount(groups)[large]
    variances = errors / squares[large] ** 2 * sizes / (sizes - 2)
    if not (variances > 0.0).all():
        return False
    weights = (sizes - 4) / (sizes - 2) / variances  # the mean of a squared t, made one
    mean = float(weights @ slopes[large] / weights.sum())
    statistic = float(weights @ (slopes[large] - mean) ** 2)
    excess = statistic - len(large) + 1
    spread = excess / (weights.sum() - (weights**2).sum() / weights.sum())
    return statistic > limit and bool(spread > (_NOTABLE * mean) ** 2)
