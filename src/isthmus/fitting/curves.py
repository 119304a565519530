"""Curves and interactions in the regression of one node, where they pay for their terms.

Which effects are curved is decided by the penalty of `AdditiveEBIC`: half the logarithm of the
number of rows for each term, and the logarithm of the number of nodes for each effect. The gain is
also that of a test that allows noise of any variance, so that spread alone makes no curve. How many
terms a curve then has is decided by the AIC, because a curve that is too smooth has a bias that no
standard error shows.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations, product
from math import log, prod
from typing import NamedTuple, final

import numpy as np

from isthmus.fitting.families import ParentRows, fit_regression
from isthmus.models import ConditionalGaussian
from isthmus.models.conditionals import Columns
from isthmus.models.curved import CurvedGaussian, Factor, Term, term_columns
from isthmus.types import Floats

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
        curved = CurvedGaussian(family.discrete, family.continuous, some, regression)
        found = _bic(curved, own, columns)
        if found > score:
            best, score = curved, found
        if not family.discrete:
            break
    return best


def _bic(own: ConditionalGaussian | CurvedGaussian, values: Floats, columns: Columns) -> float:
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
            if self._robust(new) > cost:
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

    def _robust(self, new: list[int]) -> float:
        """Return the same from a test that holds for noise of any variance."""
        chosen = self._chosen()
        x = self.z[:, [*chosen, *new]]
        inverse = np.linalg.pinv(x.T @ x, _RANK, hermitian=True)
        weights = inverse @ (x.T @ self.z[:, -1])
        leverage = np.einsum("ij,jk,ik->i", x, inverse, x, optimize=True) + 1.0 / self.n
        error = (self.z[:, -1] - x @ weights) / np.maximum(1.0 - leverage, 1e-6)
        scores = x * error[:, None]
        covariance = inverse @ (scores.T @ scores) @ inverse
        last = slice(len(chosen), None)
        inner = np.linalg.pinv(covariance[last, last], _RANK, hermitian=True)
        return 0.5 * float(weights[last] @ inner @ weights[last])

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
