"""Curves and interactions of the variables of an effect, as many as pay for themselves.

A regression on lines is challenged by squares, cubes and products of its variables. A term enters
if its test, which holds for noise of any variance, exceeds the price of the extended BIC: twice the
gain in nats that `AdditiveEBIC` would ask for.

Terms of the variables to adjust for enter if they tell of the effect or of the cause (double
selection, Belloni et al. 2014): a confounder that is missed in both is too weak to matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple, final

import numpy as np

from isthmus.types import Bools, Floats

_DEGREES = (2, 3)
"""Degrees of the curves that are tried, besides one that saturates at both ends."""
_SATURATED = (0.2, 0.8)
"""Quantiles beyond which that one is constant."""
_KNOTS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Quantiles at which the curve of a variable bends, once one of the above has paid for itself."""
_MOST_PRODUCTS = 300
"""Number of products above which none is tried, those of about 24 variables."""
_ROWS_PER_TERM = 10
"""Rows per coefficient without which no further term is tried."""
_SAME = 1e-6
"""Share of a term that the others do not explain below which it is not tried."""
_SMALLEST = float(np.finfo(np.float64).tiny)
_AT_ONCE = 2**24
"""Numbers of terms that are computed at a time."""


@final
class RegressionColumn(NamedTuple):
    """A column of a regression.

    Attributes
    ----------
    name
        Its name.
    values
        Of each row: of a number, in standard deviations from its mean.
    variable
        The variable that it belongs to; the columns of a discrete one share it.
    number
        Whether it is a number, which can have a curve.
    """

    name: str
    values: Floats
    variable: int
    number: bool


@final
class Term(NamedTuple):
    """A product of columns, by their positions in ascending order.

    A square has the same position twice. With bounds, it is one column between these: constant
    below the first and above the second.
    """

    factors: tuple[int, ...]
    bounds: tuple[float, float] | None = None

    @property
    def curve(self) -> bool:
        """Whether it is a curve of one variable."""
        return self.bounds is not None or len(set(self.factors)) == 1

    def values(self, columns: Sequence[RegressionColumn]) -> Floats:
        """Return the product."""
        if self.bounds is not None:
            clipped: Floats = np.clip(columns[self.factors[0]].values, *self.bounds)
            return clipped
        found = np.ones(len(columns[0].values))
        for i in self.factors:
            found = found * columns[i].values
        return found

    def slope(self, columns: Sequence[RegressionColumn], place: int) -> Floats:
        """Return the derivative of the product by one of the columns."""
        if self.bounds is not None:
            low, high = self.bounds
            inside = (columns[place].values > low) & (columns[place].values < high)
            return (inside & (place in self.factors)).astype(np.float64)
        rest = [i for i in self.factors if i != place]
        power = len(self.factors) - len(rest)
        if not power:
            return np.zeros(len(columns[0].values))
        inner: Floats = columns[place].values ** (power - 1)
        return power * inner * Term(tuple(rest)).values(columns)

    def name(self, columns: Sequence[RegressionColumn]) -> str:
        """Return how the product is written; curves are not told apart."""
        powers = {i: self.factors.count(i) for i in self.factors}
        if self.curve:
            return f"a curve of {columns[self.factors[0]].name}"
        return "·".join(columns[i].name + ("" if k == 1 else "²") for i, k in powers.items())


@final
class Equation(NamedTuple):
    """A regression that may need further terms.

    Attributes
    ----------
    fit
        Returns the design, the residuals and the variances of the noise, up to a factor, of some
        rows, if the regression has some terms.
    lines
        Positions of the columns of which it may have curves and products.
    rows
        Its rows; by default all.
    least
        The least variance of standardised residuals: 1 for probabilities, whose residuals are much
        smaller, and not random, if a level is separated from the others.
    """

    fit: Callable[[tuple[Term, ...]], tuple[Floats, Floats, Floats]]
    lines: tuple[int, ...]
    rows: Bools | None = None
    least: float = _SMALLEST


def rows_needed(columns: int) -> int:
    """Return the number of rows without which no term is tried besides so many columns."""
    return _ROWS_PER_TERM * (columns + 2)


def select_terms(
    columns: Sequence[RegressionColumn], equations: Sequence[Equation]
) -> tuple[Term, ...]:
    """Return the terms that pay for themselves in one of several regressions, best ones first.

    A variable of which one curve has paid for itself gets a spline, since the first curve need not
    have its shape, and the rest may be too small to be seen and large enough to matter.

    Parameters
    ----------
    columns
        The columns of which terms are made.
    equations
        The regressions.
    """
    chosen: tuple[Term, ...] = ()
    rows = min(len(columns[0].values) if e.rows is None else int(e.rows.sum()) for e in equations)
    while True:
        entering: dict[Term, float] = {}
        for equation in equations:
            found = _best(columns, equation, chosen, len(equations))
            if found is not None:
                entering[found[0]] = max(found[1], entering.get(found[0], 0.0))
        if not entering:
            return chosen
        best = max(entering, key=entering.__getitem__)
        chosen += (best,)
        if best.curve:
            more = [t for t in _curve(columns, best.factors[0]) if t not in chosen]
            if rows >= rows_needed(len(columns) + len(chosen) + len(more) - 1):
                chosen += tuple(more)


def _best(
    columns: Sequence[RegressionColumn], equation: Equation, chosen: tuple[Term, ...], tests: int
) -> tuple[Term, float] | None:
    """Return the term with the largest test, and by how much it exceeds its price."""
    design, residual, noise = equation.fit(chosen)
    own = np.ones(len(residual), np.bool_) if equation.rows is None else equation.rows
    n, k = design.shape
    if n < rows_needed(k - 1):
        return None
    candidates = [t for t in _candidates(columns, equation.lines, chosen) if t not in chosen]
    if not candidates:
        return None
    root = np.sqrt(noise)
    left, values, _ = np.linalg.svd(design * root[:, None], full_matrices=False)
    left = left[:, values > values.max(initial=0.0) * _SAME]
    rest = np.divide(residual, root, out=np.zeros(n), where=root > 0.0)
    kept = 1.0 - np.einsum("ij,ij->i", left, left)
    tests_of = np.zeros(len(candidates))
    step = max(_AT_ONCE // n, 1)
    for start in range(0, len(candidates), step):
        part = candidates[start : start + step]
        terms = np.stack([t.values(columns)[own] for t in part], axis=1)
        terms = terms - terms.mean(axis=0)
        whole = (terms**2 * noise[:, None]).sum(axis=0)
        terms = terms * root[:, None]
        terms -= left @ (left.T @ terms)
        size = (terms**2).sum(axis=0)
        good = size > _SAME * whole
        terms = terms[:, good] / np.sqrt(size[good])
        gain = terms.T @ rest
        # Residuals with the term, and as they would be without their own row (HC3).
        away = (rest[:, None] - terms * gain) / np.maximum(kept[:, None] - terms**2, _SAME)
        spread = ((terms * away) ** 2).sum(axis=0)
        tests_of[start : start + step][good] = gain**2 / np.maximum(spread, equation.least)
    price = np.log(n) + 2.0 * np.log(len(candidates) * tests)
    place = int(np.argmax(tests_of))
    excess = float(tests_of[place] - price)
    return (candidates[place], excess) if excess > 0.0 else None


def _candidates(
    columns: Sequence[RegressionColumn], lines: tuple[int, ...], chosen: tuple[Term, ...]
) -> Iterator[Term]:
    """Yield the terms that can enter, given those that have."""
    curved = {t.factors[0] for t in chosen if t.curve}
    for i in lines:
        if columns[i].number and i not in curved:
            yield from (Term((i,) * degree) for degree in _DEGREES)
            low, high = np.quantile(columns[i].values, _SATURATED).tolist()
            yield Term((i,), (low, high))
    if len(lines) * (len(lines) - 1) // 2 > _MOST_PRODUCTS:
        return
    for i, j in combinations(lines, 2):
        if columns[i].variable != columns[j].variable:
            yield Term((i, j))
    for i, j in ((i, j) for i in lines if i in curved for j in lines):
        if columns[i].variable != columns[j].variable:
            yield Term(tuple(sorted((i, i, j))))


def _curve(columns: Sequence[RegressionColumn], place: int) -> Iterator[Term]:
    """Yield the terms of a spline of a column."""
    yield from (Term((place,) * degree) for degree in _DEGREES)
    for knot in np.quantile(columns[place].values, _KNOTS).tolist():
        yield Term((place,), (knot, np.inf))
