"""Checks of distributions: heavy tails, a common scale of the noise, interactions.

They need the rows. They look at residuals, which remain of each column after a linear regression
on its parents in the graph. Rates of false alarms and power:
``benchmarks/results/assumptions.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Bools, Floats
from isthmus.graphs import DAG
from isthmus.statistics import Kind
from isthmus.verbs.notes_rows import RowTable, listed, standardised

_FEWEST_ROWS = 40
_SHOWN = 5
"""Groups of columns that a note names."""
_NAMED = 10
"""Columns that a note about each of them names."""
_HEAVY, _LEAST_HEAVY, _ALWAYS_HEAVY = 0.6, 5.0, 60.0
"""Excess kurtosis, per square root of the number of rows, at least and at most, above which 20
independent columns have more than twice as many false edges as normal ones."""
_TOGETHER = 0.1
"""Correlation of the logarithms of squares, of three quarters of the pairs."""
_CERTAIN = 4.5
"""Standard errors that this correlation must exceed."""
_LUMPED = 0.05
"""Share of the most frequent value above which the scale of a column is not compared. The limits of
Likert items and floors such as zero make residuals small in the same rows."""
_INFLATED, _OTHER_VALUES = 0.3, 20
"""Share of the rows from which one value of a column is noted, if the others have more different
values than this: scales and small counts have no more."""
_PRODUCT, _ALONE = 0.01, 0.01
"""Share of the variance of a logarithm that two others may leave, and that each of them must
explain: a body-mass index that is rounded to units leaves 0.006."""
_POWERS, _CLOSE = np.array([0.5, 1.0, 2.0, 3.0]), 0.03
"""Powers of the factors of a product, and how far estimates of them may be off."""
_INTERACTION = 0.2
"""Share of the variance of a column that products must explain. At 0.1, 7 of 545 tables of the
generator of mixed tables had a note: cut points of numbers look like weak interactions."""
_FURTHER = 0.03
"""The same of further columns that a note names, once one column is noted. Edges between effects of
one group hide most of it."""
_MOST_GROUPS, _MOST_GROUPED = 10, 20
"""Levels of a column that are compared, and such columns."""
_LEVEL = 0.001
"""Rate of false alarms of the test of interactions, on all pairs together."""


class Residuals(NamedTuple):
    """Columns of a sample of rows, and what the linear model leaves of them.

    Attributes
    ----------
    columns
        Positions in the table.
    values
        Standardised columns, shape (columns, rows).
    left
        Residuals, standardised, of the same shape.
    shares
        Variance of the residuals, per variance of the columns.
    """

    columns: tuple[int, ...]
    values: Floats
    left: Floats
    shares: Floats


def residuals(table: RowTable, dag: DAG) -> Residuals | None:
    """Return residuals for a sample of the rows; None if there are too few rows or columns.

    Cost: one regression per column with at most 1,000 rows, about 0.1 ms each.
    """
    rows, columns = table.sample(), table.pairwise
    if len(rows) < _FEWEST_ROWS or len(columns) < 2:
        return None
    values = np.stack([standardised(table.numbers(j, rows)) for j in columns])
    place = {table.names[j]: [k] for k, j in enumerate(columns)}
    parents = {k: dag.parents(name) for name, (k,) in place.items() if name in dag.nodes}
    design = [values]
    width = len(columns)
    for name in dict.fromkeys(p for names in parents.values() for p in names):
        indicators = _indicators(table, name, rows)
        if name not in place and width + len(indicators) <= len(rows) // 2:
            place[name] = list(range(width, width + len(indicators)))
            width += len(indicators)
            design.append(indicators)
    x = np.concatenate(design)
    gram = x @ x.T + 1e-9 * len(rows) * np.eye(width)  # parents may determine each other
    weights = np.zeros((len(columns), width))
    for k, names in parents.items():
        given = [i for name in names for i in place.get(name, ())]
        if given:
            weights[k, given] = np.linalg.solve(gram[np.ix_(given, given)], gram[given, k])
    left = values - weights @ x
    squares = np.einsum("ij,ij->i", left, left)[:, None]
    exact = squares <= 1e-8 * len(rows)  # determined by the parents
    left = np.where(exact, values, left / np.sqrt(np.where(exact, 1.0, squares) / len(rows)))
    return Residuals(columns, values, left, np.where(exact, 0.0, squares / len(rows))[:, 0])


def _indicators(table: RowTable, name: str, rows: NDArray[np.intp]) -> Floats:
    """Return centred columns for a parent: its levels, or its values."""
    j = table.names.index(name)
    if table.schema.variables[j].kind is Kind.CONTINUOUS:
        return standardised(table.numbers(j, rows))[None]
    levels = np.arange(1, len(table.schema.variables[j].levels))
    indicators = (levels[:, None] == table.columns[j][rows]).astype(np.float64)
    return np.asarray(indicators - indicators.mean(axis=1, keepdims=True))


def products(table: RowTable) -> tuple[str, ...]:
    """Name positive columns that are products or ratios of powers of two others.

    Cost: the logarithms of a sample and their correlations, about 1 ms for 50 columns.
    """
    rows = table.sample()
    numbers = {table.names[j]: table.numbers(j, rows) for j in table.pairwise}
    logs = {name: np.log(x) for name, x in numbers.items() if x.min() > 0}
    if len(logs) < 3 or len(rows) < max(_FEWEST_ROWS, 2 * len(logs)):
        return ()
    names = tuple(logs)
    values = np.stack([standardised(column) for column in logs.values()])
    scales = np.array([column.std() for column in logs.values()])
    r = values @ values.T / len(rows)
    rest = np.maximum(1.0 - r**2, 1e-9)  # what a column leaves of another
    left_by_all = 1.0 / np.linalg.inv(r + 1e-9 * np.eye(len(r))).diagonal()
    found: dict[tuple[str, ...], None] = {}
    for c in np.flatnonzero(left_by_all < _PRODUCT).tolist():
        slopes = (r[c][:, None] - r * r[c]) / rest  # of the first of two columns
        left = 1.0 - slopes * r[c][:, None] - slopes.T * r[c]
        powers = np.abs(slopes) * scales[c] / scales[:, None]
        close = np.abs(powers[..., None] - _POWERS).min(axis=2) < _CLOSE * powers
        own = close & (slopes**2 * rest > _ALONE)
        exact = (left < _PRODUCT) & own & own.T & (rest > _ALONE)
        exact[c], exact[:, c] = False, False
        for a, b in np.argwhere(np.triu(exact, 1)).tolist():
            found[tuple(names[k] for k in sorted((a, b, c)))] = None
    if not found:
        return ()
    shown = "; ".join(listed(group) for group in list(found)[:_SHOWN])
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    note = (
        f"Drop one of {shown}{more}: one is a product or a ratio of the others, as a body-mass "
        "index is of weight and height. Edges among them, and their directions, are arbitrary."
    )
    return (note,)


def inflated_columns(table: RowTable) -> tuple[int, ...]:
    """Return numbers that have one value in many rows, such as zero, and many others elsewhere.

    Cost: the distinct values of a sample of each column, about 0.02 ms.
    """
    rows = table.sample()
    found = []
    for j in table.numeric:
        values, counts = np.unique(table.columns[j][rows], return_counts=True)
        if counts.max() >= _INFLATED * len(rows) and len(values) > _OTHER_VALUES:
            found.append(j)
    return tuple(found)


def inflated(table: RowTable, dag: DAG, columns: tuple[int, ...]) -> tuple[str, ...]:
    """Name columns with edges that have one value in many rows. Cost: none."""
    joined = {name for edge in dag.edges for name in edge}
    names = [table.names[j] for j in columns if table.names[j] in joined]
    if not names:
        return ()
    one = len(names) == 1
    near = {n for edge in dag.edges if {*edge} & {*names} for n in edge}
    near |= {n for edge in dag.edges if {*edge} & near for n in edge}
    others = [name for name in dag.nodes if name in near and name not in names]
    note = (
        f"Cut {listed(names, _NAMED)} into levels and compare, transform=QuantileBins(columns="
        f"{names[:_NAMED]}), or MDLBins to predict a column: {'it has' if one else 'they have'} "
        f"one value in at least {_INFLATED:.0%} of the rows and many others elsewhere. Neither "
        "lines nor curves describe such columns well, so that edges and directions of "
        f"{listed([*names, *others], _NAMED)} can be false, and predictions can be poor."
    )
    return (note,)


def limited_outcome(table: RowTable, name: str) -> tuple[str, ...]:
    """Say that many rows have the least or the largest value of the outcome of an effect.

    A limit of detection or of a scale is no part of the table, so that nothing tells it from an
    amount that is zero. Cost: the distinct values of a sample of the column.
    """
    own = table.select([name])
    if not inflated_columns(own):
        return ()
    column = own.columns[0]
    for end, value in (("least", column.min()), ("largest", column.max())):
        share = float(np.mean(column == value))
        if share >= _INFLATED:
            note = (
                f"{share:.0%} of the rows have the {end} value of {name!r}, {value:g}. If values "
                "beyond it could not be measured, the effect on what lies behind is another one: "
                "this is the effect on the values in the table."
            )
            return (note,)
    return ()


def heavy_tails(
    table: RowTable, sample: Residuals, *, directed: bool = False, known: Sequence[int] = ()
) -> tuple[str, ...]:
    """Find at least two columns with so heavy tails or such skew that edges may be false.

    Normal scores would hide what directions are learned from (`directed`); the note then advises to
    compare edges only. Columns that another note is about (`known`) are left out. Cost: two passes
    over the sample, about 0.05 ms per column.
    """
    heavy = [sample.columns[k] for k in np.flatnonzero(_is_heavy(table.n, sample.left))]
    heavy = [j for j in heavy if j not in known]
    if len(heavy) < 2:
        return ()
    names, limit = table.listed(heavy), _limit(table.n)
    scores = "learn(table, transform=NormalScores())"
    advice = f"Replace {names} by their normal scores, {scores}"
    if directed:
        advice = f"Compare the edges, not the directions, with those of {scores}"
    note = (
        f"{advice}: {len(heavy)} columns have heavy tails or strong skew (excess kurtosis above "
        f"{limit:.0f}), which leads to false edges."
    )
    return (note,)


def _limit(n: int) -> float:
    return min(max(_LEAST_HEAVY, _HEAVY * math.sqrt(n)), _ALWAYS_HEAVY)


def _is_heavy(n: int, left: Floats) -> Bools:
    squares = left * left
    heavy: Bools = np.einsum("ij,ij->i", squares, squares) / left.shape[1] - 3.0 > _limit(n)
    return heavy


def common_scale(table: RowTable, sample: Residuals) -> tuple[str, ...]:
    """Find noise whose scale varies in all columns together, such as volatility of prices.

    Three quarters of the pairs of residuals must be large in the same rows. Columns of few values
    are left out. Cost: one product of matrices, about 1 ms for 50 columns.
    """
    spread = [k for k, z in enumerate(sample.values) if not _is_lumped(z)]
    left = sample.left[spread]
    p, m = left.shape
    if p < 3:
        return ()
    sizes = np.log(left * left + 0.1)
    sizes = _normalised(sizes)
    correlation = (sizes @ sizes.T)[np.triu_indices(p, 1)]
    # Not the median: of a product and its two factors, two of three pairs vary together.
    typical = float(np.quantile(correlation, 0.25, method="lower"))
    error = 1.25 / math.sqrt(m * len(correlation))
    if typical < max(_TOGETHER, _CERTAIN * error):
        return ()
    names = table.listed([sample.columns[k] for k in spread])
    note = (
        "Divide each row by its scale (for prices, a running volatility), or keep only edges that "
        f"bootstrap confirms: {names} vary strongly in the same rows "
        f"(correlation {typical:.2f} of the logarithms of squares), which leads to false edges "
        "between uncorrelated columns."
    )
    return (note,)


def _is_lumped(column: Floats) -> bool:
    return int(np.unique(column, return_counts=True)[1].max()) > _LUMPED * len(column)


def group_effects(table: RowTable, sample: Residuals) -> tuple[str, ...]:
    """Find effects of one number on another that depend on the level of a discrete column.

    Products of a number and the indicator of a level must explain a fifth of a column. Cost: one
    product of matrices per level, about 1 ms for 50 columns.
    """
    p, m = sample.left.shape
    names = [
        name
        for name in table.schema.of_kind(Kind.DISCRETE)
        if len(table.schema[name].levels) <= _MOST_GROUPS
    ][:_MOST_GROUPED]
    values, left = sample.values, _within_groups(table, np.clip(sample.left, -4.0, 4.0))
    one = _normalised(np.clip(values, -3.0, 3.0))
    groups = [(name, row) for name in names for row in _indicators(table, name, table.sample())]
    best, found = _INTERACTION, ("", 0)
    effects: dict[tuple[str, int], set[int]] = {}
    for name, row in groups:
        product = _normalised(one * row * math.sqrt(m), one, np.broadcast_to(_unit(row), one.shape))
        share = (product @ left.T) ** 2
        np.fill_diagonal(share, 0.0)
        tests = len(groups) * p * (p - 1)
        certain = -(m - 5.0) * np.log1p(-np.minimum(share, 1.0 - 1e-12)) > 2.0 * math.log(
            tests / _LEVEL
        )
        share = np.where(certain, share * sample.shares, 0.0)
        for cause, effect in np.argwhere(share > _FURTHER).tolist():
            effects.setdefault((name, cause), set()).add(effect)
        if float(share.max()) > best:
            best, found = float(share.max()), (name, int(share.max(axis=1).argmax()))
    if not found[0]:
        return ()
    cause_name = table.names[sample.columns[found[1]]]
    names = [table.names[sample.columns[k]] for k in sorted(effects[found])]
    what = "the effect" if len(names) == 1 else "effects"
    note = (
        f"Learn the groups of {found[0]!r} separately: {what} of {cause_name!r} on "
        f"{listed(names, _NAMED)} {'depends' if len(names) == 1 else 'depend'} on it, which "
        f"explains {best:.0%} of {'it' if len(names) == 1 else 'one of them'}. The score has no "
        "such interactions: it misses edges, and adds some between the effects."
    )
    return (note,)


def _unit(row: Floats) -> Floats:
    norm = float(np.sqrt(row @ row))
    return row / norm if norm > 0.0 else row


def _within_groups(table: RowTable, left: Floats) -> Floats:
    """Return residuals without what the levels of discrete columns explain, with norm one."""
    normalised = _normalised(left)
    levels: list[Floats] = []
    for name in table.schema.of_kind(Kind.DISCRETE):
        if sum(map(len, levels)) + len(table.schema[name].levels) <= left.shape[1] // 10:
            levels.append(_indicators(table, name, table.sample()))
    if not levels:
        return normalised
    groups = np.linalg.qr(np.concatenate(levels).T)[0]
    within: Floats = normalised - (normalised @ groups) @ groups.T
    return within


def _normalised(columns: Floats, *lower: Floats) -> Floats:
    """Return rows with mean zero and norm one, orthogonal to others row by row."""
    centred = columns - columns.mean(axis=1, keepdims=True)
    for other in lower:
        centred -= other * np.einsum("ij,ij->i", other, centred)[:, None]
    squares = np.einsum("ij,ij->i", centred, centred)[:, None]
    usable = squares > 1e-9 * columns.shape[1]  # powers of two or three values depend on lower ones
    return np.where(usable, centred / np.sqrt(np.where(usable, squares, 1.0)), 0.0)
