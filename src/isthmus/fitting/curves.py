"""Curves and interactions in the regression of one node, where they pay for their terms.

Which effects are curved is decided by the penalty of `AdditiveEBIC`: half the logarithm of the
number of rows for each term, and the logarithm of the number of nodes for each effect. The gain is
also that of a test that allows noise of any variance, so that spread alone makes no curve. How many
terms a curve then has is decided by the AIC, because a curve that is too smooth has a bias that no
standard error shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations, pairwise, product
from math import log, prod
from typing import NamedTuple, final

import numpy as np

from isthmus.arrays import Bools, Floats
from isthmus.fitting.families import ParentRows, fit_levels, fit_regression, robust
from isthmus.networks import ConditionalGaussian, Hurdle
from isthmus.networks.conditionals import (
    Columns,
    CurvedGaussian,
    Factor,
    NormalConditional,
    Term,
    term_columns,
)

_DEGREES = (2, 3, 6, 10)
"""Degrees of the curves that are tried for an effect."""
_REACH = 5.0
"""Standard deviations from the mean beyond which effects are straight, whatever the data are."""
_MOST_TERMS = 200
"""Largest number of terms among which is chosen; those of interactions are left out first."""
_MOST_LEVELS = 30
"""Levels of all discrete parents above which no interactions with them are tried."""
LEAST_ROWS_PER_TERM = 10
"""Rows that each term needs."""
_ROWS = 50_000
"""Rows by which terms are chosen; of more, every second, third and so on counts."""
_RANK = 1e-9
"""Share of its variance that a term must add to others."""


def curve_numbers(
    own: Floats, family: ParentRows, plain: ConditionalGaussian, pseudo_count: float, nodes: int
) -> ConditionalGaussian | CurvedGaussian:
    """Return a regression with curves and interactions if they pay for themselves.

    Parameters
    ----------
    own
        The values of the node.
    family
        The rows of its parents.
    plain
        Its regression on lines, one for each configuration of the discrete parents.
    pseudo_count
        Weight of the prior, in rows.
    nodes
        Number of nodes of the network, among which parents were chosen; 0 for lines alone.
    """
    terms = chosen_terms(own, family, nodes) if family.continuous and nodes else ()
    if not terms:
        return plain
    columns = family.columns()
    best: ConditionalGaussian | CurvedGaussian = plain
    score = _bic(plain, own, columns) + log(nodes)
    numbers = tuple(term for term in terms if all(f.window for f in term))
    cells = prod(family.sizes)
    for some, discrete in ((terms, ()), (numbers, family.discrete)):
        if discrete and cells * (len(some) + 2) * LEAST_ROWS_PER_TERM > family.n:
            continue
        values = term_columns(some, columns)
        within = family.keep(discrete)._replace(
            continuous=tuple(values), numbers=tuple(values.values())
        )
        regression = fit_regression(own, within, pseudo_count)
        found = _bic(regression, own, within.columns())
        if found > score:
            best = CurvedGaussian(family.discrete, family.continuous, some, regression)
            score = found
        if not family.discrete:
            break
    return best


def _bic(own: ConditionalGaussian, values: Floats, columns: Columns) -> float:
    n = len(values)
    variance = np.maximum(own.variance(columns, n), 1e-300)
    squares = (values - own.mean(columns, n)) ** 2
    logs = -0.5 * float((np.log(2 * np.pi * variance) + squares / variance).sum())
    return logs - 0.5 * log(n) * own.parameters


def chosen_terms(own: Floats, family: ParentRows, nodes: int) -> tuple[Term, ...]:
    """Return lines and levels of all parents, and curves and interactions; nothing without them."""
    step = -(-family.n // _ROWS)
    if step > 1:
        some = np.arange(0, family.n, step)
        own, family = own[some], family.part(some)
    base, effects = library(family)
    if family.n < LEAST_ROWS_PER_TERM * (len(base) + 2) or own.max() == own.min():
        return ()
    return _Search(own, family.columns(), base, effects).run(log(nodes))


class _Effect(NamedTuple):
    """The terms of a curve or an interaction, of which it has the first, the first two and so on.

    Attributes
    ----------
    terms
        All terms.
    tried
        Numbers of terms with which it is tried.
    curved
        Whether regressions on lines within configurations do not have it.
    """

    terms: tuple[Term, ...]
    tried: tuple[int, ...]
    curved: bool = True


def library(family: ParentRows) -> tuple[tuple[Term, ...], list[_Effect]]:
    """Return lines and levels of all parents, and what may be added to them."""
    lines, effects = [], []
    for name, values in zip(family.continuous, family.numbers, strict=True):
        centre, spread = float(values.mean()), float(values.std())
        low = max(float(values.min()), centre - _REACH * spread)
        high = min(float(values.max()), centre + _REACH * spread)
        if high - low <= 1e-9 * max(abs(low), abs(high)):
            continue
        lines.append(Factor(name, 1, (low, high)))
        most = min(len(np.unique(values)) - 1, _DEGREES[-1])
        terms = tuple((Factor(name, k, (low, high)),) for k in range(2, most + 1))
        tried = tuple(k - 1 for k in _DEGREES if k <= most)
        effects += [_Effect(terms, tried)] if tried else []
    levels = [
        [Factor(name, code, None) for code in np.unique(codes)[1:].tolist()]
        for name, codes in zip(family.discrete, family.codes, strict=True)
    ]
    for a, b in combinations(lines, 2):
        bent = [(replace(x, degree=2), y) for x, y in ((a, b), (b, a))]
        effects.append(_Effect(((a, b), *bent), (1, 3)))
    if sum(map(len, levels)) <= _MOST_LEVELS:
        for each, line in product(levels, lines):
            some = tuple((level, line) for level in each)
            effects += [_Effect(some, (len(some),), curved=False)] if some else []
    base = tuple((own,) for own in chain(lines, *levels))
    size, kept = len(base), []
    for effect in effects:
        size += len(effect.terms)
        kept += [effect] if size <= _MOST_TERMS else []
    return base, kept


@final
class _Search:
    """Adds effects to a regression one by one, the one that pays most first."""

    def __init__(
        self,
        own: Floats,
        columns: Columns,
        base: tuple[Term, ...],
        effects: list[_Effect],
    ) -> None:
        self.effects = effects
        self.terms = (*base, *(term for effect in effects for term in effect.terms))
        values = [*term_columns(self.terms, columns).values(), own]
        self.z = np.array(values).T
        self.z -= self.z.mean(axis=0)
        self.z /= np.maximum(self.z.std(axis=0), 1e-300)
        self.n = len(own)
        self.gram = self.z.T @ self.z / self.n
        self.lengths = [0] * len(effects)
        sizes = [len(effect.terms) for effect in effects]
        self.starts = (len(base) + np.cumsum([0, *sizes])[:-1]).tolist()
        self.base = list(range(len(base)))

    def run(self, price: float) -> tuple[Term, ...]:
        """Return the terms that were chosen; none if no curve and no interaction pays.

        Parameters
        ----------
        price
            What an effect has to gain, in nats, besides the penalty of its terms.
        """
        refused: set[tuple[int, int]] = set()
        while True:
            rest = self._residual(self._chosen())
            paying = []
            for i, effect in enumerate(self.effects):
                for length in effect.tried:
                    if length <= self.lengths[i] or (i, length) in refused:
                        continue
                    new = self._places(i, length)[self.lengths[i] :]
                    cost = 0.5 * log(self.n) * len(new) + (0.0 if self.lengths[i] else price)
                    gain = self._gain(rest, new) - cost
                    if gain > 0.0:
                        paying.append((gain, cost, i, length, new))
            if not paying:
                break
            _, cost, i, length, new = max(paying)
            if self._robust(new) > cost and self._robust(new, decisive=False) > _LEFT * cost:
                self.lengths[i] = length
            else:
                refused.add((i, length))
        some = [i for i, length in enumerate(self.lengths) if length]
        if not any(self.effects[i].curved for i in some):
            return ()
        for i in some:
            self._smooth(i)
        return tuple(self.terms[j] for j in self._chosen())

    def _places(self, effect: int, length: int) -> list[int]:
        return list(range(self.starts[effect], self.starts[effect] + length))

    def _chosen(self) -> list[int]:
        more = [self._places(i, length) for i, length in enumerate(self.lengths)]
        return [*self.base, *chain(*more)]

    def _residual(self, chosen: list[int]) -> Floats:
        """Return the covariance matrix of what is left of all columns."""
        inner, cross = self.gram[np.ix_(chosen, chosen)], self.gram[chosen]
        left: Floats = self.gram - cross.T @ np.linalg.pinv(inner, _RANK, hermitian=True) @ cross
        return left

    def _gain(self, rest: Floats, new: list[int]) -> float:
        """Return by how much some columns raise the log-likelihood of a normal distribution."""
        inner, cross = rest[np.ix_(new, new)], rest[new, -1]
        explained = float(cross @ np.linalg.pinv(inner, _RANK, hermitian=True) @ cross)
        left = 1.0 - explained / max(float(rest[-1, -1]), 1e-300)
        return -0.5 * self.n * log(max(left, 1e-12))

    def _robust(self, new: list[int], *, decisive: bool = True) -> float:
        """Return the same from a test that holds for noise of any variance (HC3).

        Or return the smaller one of both without the rows that add most to the gain, one after the
        other: see `_ScoreTest.without_decisive`.
        """
        z, known, own = self.z, self._chosen(), [*new, -1]
        for _ in range(0 if decisive else _DECISIVE):
            rest = _residual(z[:, own], _orthonormal(z[:, known], _RANK))
            basis = _orthonormal(rest[:, :-1], _SAME)
            added = basis @ (basis.T @ rest[:, -1])
            z = np.delete(z, np.argmax(added * rest[:, -1]), axis=0)
            z = z - z.mean(axis=0)
        old = _orthonormal(z[:, known], _RANK)
        rest = _residual(z[:, own], old)
        basis = _orthonormal(rest[:, :-1], _SAME)
        weights = basis.T @ rest[:, -1]
        leverage = (old**2).sum(axis=1) + (basis**2).sum(axis=1) + 1.0 / len(z)
        error = (rest[:, -1] - basis @ weights) / np.maximum(1.0 - leverage, 1e-6)
        scores = basis * error[:, None]
        inner = np.linalg.pinv(scores.T @ scores, _RANK, hermitian=True)
        gain = 0.5 * float(weights @ inner @ weights)
        if decisive:
            return gain
        share = float(weights @ weights) / max(float(rest[:, -1] @ rest[:, -1]), 1e-300)
        return min(gain, -0.5 * len(z) * log(max(1.0 - share, 1e-12)))

    def _smooth(self, effect: int) -> None:
        """Give a curve the number of terms with the least AIC, with the others as they are."""
        best, least = self.lengths[effect], np.inf
        for length in range(1, len(self.effects[effect].terms) + 1):
            self.lengths[effect] = length
            chosen = self._chosen()
            left = max(float(self._residual(chosen)[-1, -1]), 1e-300)
            aic = self.n * log(left) + 2.0 * len(chosen) * self.n / max(self.n - len(chosen) - 2, 1)
            if aic < least:
                best, least = length, aic
        self.lengths[effect] = best


def _orthonormal(columns: Floats, least: float) -> Floats:
    """Return an orthonormal basis of columns, without directions of less than this variance."""
    values, vectors = np.linalg.eigh(columns.T @ columns)
    some = values > least * len(columns)
    basis: Floats = columns @ (vectors[:, some] / np.sqrt(values[some]))
    return basis


def _residual(columns: Floats, basis: Floats) -> Floats:
    """Return what an orthonormal basis leaves of columns."""
    left: Floats = columns - basis @ (basis.T @ columns)
    return left


# --- Curves and interactions of the variables of an effect, as many as pay for themselves -------
#
# A regression on lines is challenged by squares, cubes and products of its variables. A term
# enters if its test, which holds for noise of any variance, exceeds the price of the extended
# BIC: twice the gain in nats that `AdditiveEBIC` would ask for.
#
# Terms of the variables to adjust for enter if they tell of the effect or of the cause (double
# selection, Belloni et al. 2014): a confounder that is missed in both is too weak to matter.

_CURVED_TERMS_DEGREES = (2, 3)
"""Degrees of the curves that are tried, besides one that saturates at both ends."""
_SATURATED = (0.2, 0.8)
"""Quantiles beyond which that one is constant."""
_KNOTS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Quantiles at which the curve of a variable bends, once one of the above has paid for itself."""
_STEPS = 64
"""Ranges of a curved column, with equally many rows, within each of which it may also rise."""
_MOST_PRODUCTS = 300
"""Number of products above which none is tried, those of about 24 variables."""
_ROWS_PER_TERM = 10
"""Rows per coefficient without which no further term is tried."""
_SAME = 1e-6
"""Share of a term that the others do not explain below which it is not tried."""
_DECISIVE, _LEFT = 2, 0.75
"""Number of rows without which a term must have this share of the test that it needs."""
_SMALLEST = float(np.finfo(np.float64).tiny)
_AT_ONCE = 2**17
"""Numbers of terms that are computed at a time: they stay in the processor's cache."""


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
    bends
        Where such curves are constant or bend, by the quantiles of its rows.
    steps
        Ends of the ranges within which they may also rise.
    """

    name: str
    values: Floats
    variable: int
    number: bool
    bends: tuple[float, ...] = ()
    steps: tuple[float, ...] = ()

    @classmethod
    def of(cls, name: str, values: Floats, variable: int, *, number: bool) -> RegressionColumn:
        """Return a column, with the quantiles of its values."""
        if not number:
            return cls(name, values, variable, number)
        steps = np.linspace(0.0, 1.0, min(len(values) // _ROWS_PER_TERM, _STEPS) + 1)
        bends = np.quantile(values, (*_SATURATED, *_KNOTS)).tolist()
        return cls(
            name, values, variable, number, tuple(bends), tuple(np.quantile(values, steps).tolist())
        )


@final
class CurvedTerm(NamedTuple):
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
        return power * inner * CurvedTerm(tuple(rest)).values(columns)

    def name(self, columns: Sequence[RegressionColumn]) -> str:
        """Return how the product is written; curves are not told apart."""
        powers = {i: self.factors.count(i) for i in self.factors}
        if self.curve:
            return f"a curve of {columns[self.factors[0]].name}"
        return "·".join(columns[i].name + ("" if k == 1 else "²") for i, k in powers.items())


@final
class RowResiduals(NamedTuple):
    """What a fitted regression leaves of its rows, of which those with equal columns are one.

    Attributes
    ----------
    design
        The columns of the regression.
    total, squares
        Sums of the residuals and of their squares over the rows that are put together.
    noise
        Variance of the noise of a row, up to a factor.
    """

    design: Floats
    total: Floats
    squares: Floats
    noise: Floats


@final
class Equation(NamedTuple):
    """A regression that may need further terms.

    Attributes
    ----------
    fit
        Returns what some rows leave, if the regression has some terms.
    lines
        Positions of the columns of which it may have curves and products.
    each
        How many rows are put together in each row of the columns; zero for those of others.
    least
        The least variance of standardised residuals: 1 for probabilities, whose residuals are much
        smaller, and not random, if a level is separated from the others.
    """

    fit: Callable[[tuple[CurvedTerm, ...]], RowResiduals]
    lines: tuple[int, ...]
    each: Floats
    least: float = _SMALLEST


def rows_needed(columns: int) -> int:
    """Return the number of rows without which no term is tried besides so many columns."""
    return _ROWS_PER_TERM * (columns + 2)


def select_terms(
    columns: Sequence[RegressionColumn], equations: Sequence[Equation]
) -> tuple[CurvedTerm, ...]:
    """Return the terms that pay for themselves in one of several regressions, best ones first.

    A variable of which one curve has paid for itself gets a spline, since the first curve need not
    have its shape, and the rest may be too small to be seen and large enough to matter.
    """
    chosen: tuple[CurvedTerm, ...] = ()
    rows = min(int(e.each.sum()) for e in equations)
    while True:
        entering: dict[CurvedTerm, float] = {}
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
    columns: Sequence[RegressionColumn],
    equation: Equation,
    chosen: tuple[CurvedTerm, ...],
    tests: int,
) -> tuple[CurvedTerm, float] | None:
    """Return the term with the largest test, and by how much it exceeds its price."""
    residuals = equation.fit(chosen)
    own = np.flatnonzero(equation.each > 0.0)
    each = equation.each[own]
    n, k = float(each.sum()), residuals.design.shape[1]
    if n < rows_needed(k - 1):
        return None
    candidates = [t for t in _candidates(columns, equation.lines, chosen) if t not in chosen]
    if not candidates:
        return None
    whole = _ScoreTest(residuals, each, equation.least)
    price = np.log(n) + 2.0 * np.log(len(candidates) * tests)
    tests_of = np.zeros(len(candidates))
    step = max(_AT_ONCE // len(own), 1)
    for start in range(0, len(candidates), step):
        part = candidates[start : start + step]
        values = np.stack([t.values(columns)[own] for t in part])
        tests_of[start : start + step] = whole.of(values, price)
    while True:
        # Terms that differ by rounding alone count as equal; take the first of them.
        place = int(np.argmax(tests_of >= tests_of.max() * (1.0 - _SAME)))
        excess = float(tests_of[place] - price)
        if excess <= 0.0:
            return None
        values = candidates[place].values(columns)[own][None]
        if whole.without_decisive(values) > _LEFT * price:
            return candidates[place], excess
        tests_of[place] = 0.0


@final
class _ScoreTest:
    """Tests of terms that a regression does not have, for noise of any variance (HC3)."""

    def __init__(self, residuals: RowResiduals, each: Floats, least: float) -> None:
        design, total, squares, noise = residuals
        self.each, self.noise, self.least = each, noise, least
        self.n = float(each.sum())
        self.design = design
        self.root = np.sqrt(noise * each)
        left = design * self.root[:, None]
        values, vectors = np.linalg.eigh(left.T @ left)
        some = values > values.max(initial=0.0) * _SAME**2
        self.left = left @ (vectors[:, some] / np.sqrt(values[some]))
        rest, rest_squares = np.zeros(len(each)), np.zeros(len(each))
        np.divide(total, np.sqrt(noise), out=rest, where=noise > 0.0)
        np.divide(squares, noise, out=rest_squares, where=noise > 0.0)
        self.rest, self.squares = rest, rest_squares
        self.kept = 1.0 - np.einsum("ij,ij->i", self.left, self.left) / each
        self.unit = 1.0 / np.sqrt(each)

    def of(self, values: Floats, price: float = 0.0) -> Floats:
        """Return the tests of terms of shape (terms, rows).

        They are zero of terms that others explain, or that cannot exceed a price.
        """
        tests = np.zeros(len(values))
        good, terms = self._directions(values)
        gain = terms @ self.rest
        paying = gain**2 > price * self.least  # others cannot, whatever their residuals are
        good[good], terms, gain = paying, terms[paying], gain[paying]
        # Residuals with the term, and as they would be without their own row (HC3): the sum of
        # squares of the rows that are put together.
        moved = terms * gain[:, None]
        away = moved * self.each
        away -= 2.0 * self.rest
        away *= moved
        away += self.squares
        np.square(terms, out=terms)
        np.subtract(self.kept, terms, out=moved)
        np.maximum(moved, _SAME, out=moved)
        terms *= away
        terms /= np.square(moved, out=moved)
        tests[good] = gain**2 / np.maximum(terms.sum(axis=1), self.least)
        return tests

    def _directions(self, values: Floats) -> tuple[Bools, Floats]:
        """Return which terms others do not explain, and these, of length one."""
        terms = values - (values @ self.each)[:, None] / self.n
        terms *= self.root
        whole = np.einsum("ij,ij->i", terms, terms)
        terms -= (terms @ self.left) @ self.left.T
        size = np.einsum("ij,ij->i", terms, terms)
        good = size > _SAME * whole
        terms = terms[good] / np.sqrt(size[good])[:, None]
        terms *= self.unit  # of a single row
        return good, terms

    def without_decisive(self, values: Floats) -> float:
        """Return the test of one term without the rows that add most to it.

        Two rows far away that agree with each other have no residual with the term, not even if
        one of them is left out, so that HC3 alone takes them for strong evidence.
        """
        shares = self._directions(values)[1][0] * self.rest
        shares = np.where(self.each <= _DECISIVE, shares * np.sign(shares.sum()), -np.inf)
        order = np.argsort(-shares, kind="stable")[:_DECISIVE]
        gone = order[np.cumsum(self.each[order]) <= _DECISIVE]
        others = np.delete(np.arange(len(self.each)), gone)
        design, each, noise = self.design[others], self.each[others], self.noise[others]
        # The regression without them, by one step from that with them.
        scale, rest = np.sqrt(noise), self.rest[others]
        target = rest * self.unit[others]
        step = np.linalg.lstsq(design * self.root[others, None], target, rcond=_SAME)[0]
        moved = design @ step * scale
        squares = self.squares[others] - moved * (2.0 * rest - each * moved)
        total = (rest - each * moved) * scale
        left = _ScoreTest(RowResiduals(design, total, squares * noise, noise), each, self.least)
        return float(left.of(values[:, others])[0])


def _candidates(
    columns: Sequence[RegressionColumn], lines: tuple[int, ...], chosen: tuple[CurvedTerm, ...]
) -> Iterator[CurvedTerm]:
    """Yield the terms that can enter, given those that have."""
    curved = {t.factors[0] for t in chosen if t.curve}
    for i in lines:
        if columns[i].number and i not in curved:
            yield from (CurvedTerm((i,) * degree) for degree in _CURVED_TERMS_DEGREES)
            yield CurvedTerm((i,), (columns[i].bends[0], columns[i].bends[1]))
    for i in sorted(curved & {*lines}):  # steps, such as those of a threshold
        for low, high in pairwise(columns[i].steps):
            if low < high:
                yield CurvedTerm((i,), (low, high))
    if len(lines) * (len(lines) - 1) // 2 > _MOST_PRODUCTS:
        return
    for i, j in combinations(lines, 2):
        if columns[i].variable != columns[j].variable:
            yield CurvedTerm((i, j))
    for i, j in ((i, j) for i in lines if i in curved for j in lines):
        if columns[i].variable != columns[j].variable:
            yield CurvedTerm(tuple(sorted((i, i, j))))


def _curve(columns: Sequence[RegressionColumn], place: int) -> Iterator[CurvedTerm]:
    """Yield the terms of a spline of a column."""
    yield from (CurvedTerm((place,) * degree) for degree in _CURVED_TERMS_DEGREES)
    for knot in columns[place].bends[len(_SATURATED) :]:
        yield CurvedTerm((place,), (knot, np.inf))


# --- Continuous nodes that often have exactly one value, such as zero ---------------------------

_SHARE = 0.05
"""Share of the rows that the most frequent value needs. A normal distribution is not much worse
where it has fewer, and answers with it have closed forms."""
_FEWEST = 10
"""Least number of rows with that value, and of rows with others."""


def fit_numbers(
    own: Floats, family: ParentRows, pseudo_count: float, nodes: int
) -> NormalConditional | Hurdle:
    """Estimate the distribution of a continuous node: regressions, or a hurdle if that pays.

    Regressions have curves and interactions where these pay (`curve_numbers`).

    A value has a probability in a hurdle and a density in a regression. To compare them, all
    numbers are taken as rounded, to the median difference of neighbouring ones: then both are
    probabilities. The hurdle is chosen if they are higher by more than the parameters cost in the
    BIC.

    Parameters
    ----------
    own
        The values of the node.
    family
        The rows of its parents.
    pseudo_count
        Weight of the prior, in rows.
    nodes
        Number of nodes of the network; 0 for lines alone.
    """
    lines = fit_regression(own, family, pseudo_count)
    plain = curve_numbers(own, family, lines, pseudo_count, nodes)
    values, counts = np.unique(own, return_counts=True)
    at, most = float(values[counts.argmax()]), int(counts.max())
    few = max(_FEWEST, _SHARE * len(own))
    if most < few or len(own) - most < _FEWEST or len(values) < 4:
        return robust(plain, own, family.columns())
    unit = float(np.median(np.diff(values)))
    away = own != at
    part = family.part(np.flatnonzero(away))
    elsewhere = fit_levels(away.astype(np.intp), (False, True), family, pseudo_count)
    rest, side, score = _rest(own[away], at, part, pseudo_count, unit, nodes)
    score += float(elsewhere.log_density(away, family.columns()).sum())
    score -= 0.5 * np.log(len(own)) * (1 + elsewhere.parameters)
    against = float(_log_chances(plain, own, family.columns(), unit).sum())
    against -= 0.5 * np.log(len(own)) * plain.parameters
    if score > against:
        return Hurdle(at, elsewhere, rest, side)
    return robust(plain, own, family.columns())


def _rest(
    values: Floats, at: float, family: ParentRows, pseudo_count: float, unit: float, nodes: int
) -> tuple[NormalConditional, int, float]:
    """Return the regression of the other values, what it describes (`Hurdle.side`), and its BIC."""
    own, score = _paying(values, np.full(len(values), unit), family, pseudo_count, nodes)
    side = 1 if values.min() > at else -1 if values.max() < at else 0
    if side:
        distance = np.abs(values - at)
        other, better = _paying(np.log(distance), unit / distance, family, pseudo_count, nodes)
        if better > score:
            return other, side, better
    return own, 0, score


def _paying(
    inner: Floats, widths: Floats, family: ParentRows, pseudo_count: float, nodes: int
) -> tuple[NormalConditional, float]:
    """Regress on the parents that pay for themselves, added one by one, and return the BIC."""
    columns = family.columns()

    def scored(names: tuple[str, ...]) -> tuple[ConditionalGaussian, float]:
        own = fit_regression(inner, family.keep(names), pseudo_count)
        return own, _score(own, inner, columns, widths)

    chosen: tuple[str, ...] = ()
    best, score = scored(chosen)
    while len(chosen) < len(family.names):
        trials = {v: scored((*chosen, v)) for v in family.names if v not in chosen}
        name = max(trials, key=lambda v: trials[v][1])
        if trials[name][1] <= score:
            break
        chosen, (best, score) = (*chosen, name), trials[name]
    kept: NormalConditional = best
    for some in dict.fromkeys((chosen, family.names)):  # a curve may pay where its line does not
        part = family.keep(some)
        start = best if some == chosen else fit_regression(inner, part, pseudo_count)
        own = curve_numbers(inner, part, start, pseudo_count, nodes)
        found = _score(own, inner, columns, widths)
        if found > score:
            kept, score = own, found
    return robust(kept, inner, columns), score


def _score(own: NormalConditional, values: Floats, columns: Columns, widths: Floats) -> float:
    logs = float(_log_chances(own, values, columns, widths).sum())
    return logs - 0.5 * float(np.log(len(values))) * own.parameters


def _log_chances(
    own: NormalConditional,
    values: Floats,
    columns: Columns,
    widths: Floats | float,
) -> Floats:
    """Return the log-probabilities of intervals of these widths around values."""
    variance = own.variance(columns, len(values)) + np.square(widths) / 12.0
    residual = values - own.mean(columns, len(values))
    logs = np.log(widths) - 0.5 * (np.log(2 * np.pi * variance) + residual**2 / variance)
    return np.minimum(logs, 0.0)
