"""Curves and interactions in the logistic regression of a discrete node, where they pay.

An effect is tried if the score test of its terms promises more than the penalty of
`isthmus.fitting.curves`, and it enters if the fitted regression has that gain. How many terms a
curve then has is decided by the AIC, as for numbers.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.fitting.curves import LEAST_ROWS_PER_TERM, library
from isthmus.fitting.families import ParentRows
from isthmus.fitting.logit import distinct, fit_counts, tally
from isthmus.networks import CurvedLogit, MultinomialLogit
from isthmus.networks.conditionals import Term, spectrum, term_columns

_TEST_ROWS = 20_000
"""Rows of the score tests; of more, every second, third and so on counts."""
_LEAST = 1e-12
"""Least variance of an event in score tests, and least sum of squares of a term."""
_MOST_LEVELS = 10
"""Levels of the node above which no curves are tried: each term has a slope for each of them."""


def curve_levels(
    own: NDArray[np.intp],
    family: ParentRows,
    plain: MultinomialLogit,
    pseudo_count: float,
    nodes: int,
) -> MultinomialLogit | CurvedLogit:
    """Return a logistic regression with curves and interactions if they pay for themselves.

    Parameters
    ----------
    own
        The codes of the node.
    family
        The rows of its parents.
    pseudo_count
        Weight of the prior, in rows.
    nodes
        Number of nodes of the network, among which parents were chosen; 0 for lines alone.
    """
    per_term = LEAST_ROWS_PER_TERM * (len(plain.levels) - 1)
    if not nodes or len(plain.levels) > _MOST_LEVELS or family.n < per_term * 3:
        return plain
    return _LogitSearch(own, family, plain, pseudo_count).run(log(nodes))


class _Fit(NamedTuple):
    """A fitted regression.

    Attributes
    ----------
    model
        The distribution.
    score
        Its log-likelihood.
    chances
        Probabilities of the levels in each combination of the parents.
    """

    model: MultinomialLogit | CurvedLogit
    score: float
    chances: Floats


@final
class _LogitSearch:
    """Adds effects to a regression one by one, the most promising first.

    Rows with the same parents are counted once: nothing is computed of a row twice.
    """

    def __init__(
        self,
        own: NDArray[np.intp],
        family: ParentRows,
        plain: MultinomialLogit,
        pseudo_count: float,
    ) -> None:
        self.family, self.plain, self.pseudo_count = family, plain, pseudo_count
        base, self.effects = library(family)
        self.lines = tuple(term for term in base if term[0].window)
        self.lengths = [0] * len(self.effects)
        first, place = distinct([*family.codes, *family.numbers], family.n)
        self.rows, levels = family.part(first), len(plain.levels)
        self.seen = tally(own, place, levels)
        step = -(-family.n // _TEST_ROWS)
        some = slice(None, None, step)
        tested = np.bincount(own[some] * len(first) + place[some], minlength=levels * len(first))
        tested = tested.reshape(levels, -1)
        self.part = np.flatnonzero(tested.sum(axis=0))
        self.tested = tested[:, self.part].astype(np.float64)
        self.share = len(own[some]) / family.n
        terms = (*base, *(term for effect in self.effects for term in effect.terms))
        values = np.stack([*term_columns(terms, self.rows.columns()).values()], axis=1)
        ends = np.cumsum([len(base), *(len(effect.terms) for effect in self.effects)])
        self.base = values[:, : ends[0]]
        self.values = np.split(values[:, ends[0] :], ends[1:-1] - ends[0], axis=1)

    def run(self, price: float) -> MultinomialLogit | CurvedLogit:
        """Return the regression with the effects that pay.

        Parameters
        ----------
        price
            What an effect has to gain, in nats, besides the penalty of its terms.
        """
        free = len(self.plain.levels) - 1
        logs = self.plain.log_probabilities(self.rows.columns(), self.rows.n).T
        best = _Fit(self.plain, float(np.vdot(self.seen, logs)), np.exp(logs))
        refused: set[tuple[int, int]] = set()
        gains = self._tested(best.chances)
        while True:
            paying = []
            for (i, length), gain in gains.items():
                cost = 0.5 * log(self.family.n) * free * (length - self.lengths[i])
                cost += 0.0 if self.lengths[i] else price
                if gain > cost and (i, length) not in refused:
                    paying.append((gain - cost, cost, i, length))
            if not paying:
                break
            _, cost, i, length = max(paying)
            fitted = self._fitted({i: length}, best.model)
            if fitted is not None and fitted.score > best.score + cost:
                best, self.lengths[i] = fitted, length
                gains = self._tested(best.chances)
            else:
                refused.add((i, length))
        for i, effect in enumerate(self.effects):
            for length in effect.tried:
                if 0 < self.lengths[i] < length:
                    fitted = self._fitted({i: length}, best.model)
                    more = free * (length - self.lengths[i])
                    if fitted is not None and fitted.score > best.score + more:
                        best, self.lengths[i] = fitted, length
        if any(self.lengths):  # what was fitted for its likelihood is now fitted to the end
            ended = self._fitted({}, best.model, trial=False)
            best = best if ended is None else ended
        return best.model

    def _tested(self, chances: Floats) -> dict[tuple[int, int], float]:
        """Return for each effect that may enter the gain that score tests promise, in nats."""
        levels = len(self.plain.levels)
        chosen = [v[:, :k] for v, k in zip(self.values, self.lengths, strict=True)]
        ones = np.ones((len(self.base), 1))
        columns = np.concatenate([ones, self.base, *chosen, *self.values], axis=1)[self.part]
        given = columns.shape[1] - sum(v.shape[1] for v in self.values)
        starts = np.cumsum([0, *(v.shape[1] for v in self.values)])
        each, weight = self.tested.sum(axis=0), 0.5 / self.share
        weight *= 1.0 if levels == 2 else 1.0 - 1.0 / levels
        gains: dict[tuple[int, int], float] = {}
        for level in range(1 if levels == 2 else 0, levels):
            chance = chances[level, self.part]
            noise = np.maximum(chance * (1.0 - chance), _LEAST)
            rest = self.tested[level] - each * chance
            wide = columns * np.sqrt(each * noise)[:, None]
            whole, pull = wide.T @ wide, columns.T @ rest
            # What the regression has already explained of the terms is taken out.
            parts = spectrum(whole[:given, :given])
            cross = whole[:given, given:] / parts.spread[:, None]
            removed = parts.solve(cross)
            inner = whole[given:, given:] - cross.T @ removed
            pull = pull[given:] - removed.T @ (pull[:given] / parts.spread)
            scale = whole.diagonal()[given:]
            for i, effect in enumerate(self.effects):
                for length in effect.tried:
                    new = slice(starts[i] + self.lengths[i], starts[i] + length)
                    if length > self.lengths[i]:
                        gain = _explained(inner[new, new], pull[new], scale[new])
                        gains[i, length] = gains.get((i, length), 0.0) + weight * gain
        return gains

    def _fitted(
        self, more: dict[int, int], near: MultinomialLogit | CurvedLogit, *, trial: bool = True
    ) -> _Fit | None:
        """Fit the regression with the terms so far and some more; None if it has too few rows.

        The search for its parameters starts at those of a regression with fewer terms.
        """
        lengths = [more.get(i, k) for i, k in enumerate(self.lengths)]
        added = [
            term
            for effect, k in zip(self.effects, lengths, strict=True)
            for term in effect.terms[:k]
        ]
        terms: tuple[Term, ...] = (*self.lines, *added)
        family, levels = self.rows, self.plain.levels
        size = (len(terms) + sum(family.sizes) + 1) * (len(levels) - 1)
        if self.family.n < LEAST_ROWS_PER_TERM * size:
            return None
        chosen = [v[:, :k] for v, k in zip(self.values, lengths, strict=True)]
        numbers = np.concatenate([self.base[:, : len(self.lines)], *chosen], axis=1)
        names = tuple(map(str, range(len(terms))))
        given = family.discrete, family.codes, family.sizes, names, numbers
        start = _start(near, terms)
        fitted = fit_counts(levels, self.seen, *given, self.pseudo_count, start, trial=trial)
        model = CurvedLogit(family.discrete, family.continuous, terms, fitted.model)
        return _Fit(model, fitted.score, fitted.chances)


def _start(near: MultinomialLogit | CurvedLogit, terms: tuple[Term, ...]) -> MultinomialLogit:
    """Return a regression on other terms that has the parameters of one on some of them."""
    slopes: dict[Term, Floats] = {}
    if isinstance(near, CurvedLogit):
        own = near.regression
        slopes.update(zip(near.terms, own.slopes, strict=True))
        intercepts = own.intercepts
    else:
        own, intercepts = near, near.intercepts
        known = dict(zip(near.continuous, near.slopes, strict=True))
        for term in terms:
            window = term[0].window
            if len(term) == 1 and window is not None and term[0].degree == 1:
                low, high = window
                slopes[term] = known[term[0].parent] * (0.5 * (high - low))
                intercepts = intercepts + known[term[0].parent] * (0.5 * (low + high))
    none = np.zeros(len(own.levels))
    return MultinomialLogit(
        own.levels,
        own.discrete,
        tuple(map(str, range(len(terms)))),
        intercepts,
        own.effects,
        np.array([slopes.get(term, none) for term in terms]),
    )


def _explained(inner: Floats, pull: Floats, scale: Floats) -> float:
    """Return the score statistic of some terms, of which what others explain was taken out."""
    unit = np.sqrt(np.maximum(scale, _LEAST))
    values, vectors = np.linalg.eigh(inner / np.outer(unit, unit))
    size = np.abs(values)
    free = size > 1e-9 * size.max()
    return float(((pull / unit) @ vectors[:, free]) ** 2 @ (1.0 / values[free]))
