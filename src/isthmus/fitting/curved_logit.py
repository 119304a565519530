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
from isthmus.fitting.logit import fit_logit
from isthmus.networks import CurvedLogit, MultinomialLogit
from isthmus.networks.conditionals import Term, term_columns

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
    """

    model: MultinomialLogit | CurvedLogit
    score: float


@final
class _LogitSearch:
    """Adds effects to a regression one by one, the most promising first."""

    def __init__(
        self,
        own: NDArray[np.intp],
        family: ParentRows,
        plain: MultinomialLogit,
        pseudo_count: float,
    ) -> None:
        self.own, self.family, self.plain = own, family, plain
        self.pseudo_count = pseudo_count
        base, self.effects = library(family)
        self.lines = tuple(term for term in base if term[0].window)
        self.lengths = [0] * len(self.effects)
        step = -(-family.n // _TEST_ROWS)
        some = np.arange(0, family.n, step)
        self.part, self.part_own = family.part(some), own[some]
        self.share = len(some) / family.n
        columns = self.part.columns()
        self.base = np.stack([np.ones(len(some)), *term_columns(base, columns).values()], axis=1)
        self.values = [
            np.stack([*term_columns(effect.terms, columns).values()], axis=1)
            for effect in self.effects
        ]

    def run(self, price: float) -> MultinomialLogit | CurvedLogit:
        """Return the regression with the effects that pay.

        Parameters
        ----------
        price
            What an effect has to gain, in nats, besides the penalty of its terms.
        """
        free = len(self.plain.levels) - 1
        best = _Fit(self.plain, self._score(self.plain))
        refused: set[tuple[int, int]] = set()
        while True:
            paying = []
            for (i, length), gain in self._tested(best.model).items():
                cost = 0.5 * log(self.family.n) * free * (length - self.lengths[i])
                cost += 0.0 if self.lengths[i] else price
                if gain > cost and (i, length) not in refused:
                    paying.append((gain - cost, cost, i, length))
            if not paying:
                break
            _, cost, i, length = max(paying)
            fitted = self._fitted({i: length})
            if fitted is not None and fitted.score > best.score + cost:
                best, self.lengths[i] = fitted, length
            else:
                refused.add((i, length))
        for i, effect in enumerate(self.effects):
            for length in effect.tried:
                if 0 < self.lengths[i] < length:
                    fitted = self._fitted({i: length})
                    more = free * (length - self.lengths[i])
                    if fitted is not None and fitted.score > best.score + more:
                        best, self.lengths[i] = fitted, length
        return best.model

    def _tested(self, model: MultinomialLogit | CurvedLogit) -> dict[tuple[int, int], float]:
        """Return for each effect that may enter the gain that score tests promise, in nats."""
        n, levels = len(self.part_own), len(self.plain.levels)
        chances = np.exp(model.log_probabilities(self.part.columns(), n))
        chosen = [v[:, :k] for v, k in zip(self.values, self.lengths, strict=True)]
        design = np.concatenate([self.base, *chosen], axis=1)
        gains: dict[tuple[int, int], float] = {}
        for level in range(1 if levels == 2 else 0, levels):
            chance = chances[:, level]
            root = np.sqrt(np.maximum(chance * (1.0 - chance), _LEAST))
            rest = ((self.part_own == level) - chance) / root
            basis = np.linalg.qr(design * root[:, None])[0]
            for i, effect in enumerate(self.effects):
                terms = self.values[i] * root[:, None]
                scale = (terms**2).sum(axis=0)
                terms = terms - basis @ (basis.T @ terms)
                inner, pull = terms.T @ terms, terms.T @ rest
                for length in effect.tried:
                    new = slice(self.lengths[i], length)
                    if length > self.lengths[i]:
                        gain = _explained(inner[new, new], pull[new], scale[new])
                        weight = 0.5 / self.share * (1.0 if levels == 2 else 1.0 - 1.0 / levels)
                        gains[i, length] = gains.get((i, length), 0.0) + weight * gain
        return gains

    def _fitted(self, more: dict[int, int]) -> _Fit | None:
        """Fit the regression with the terms so far and some more; None if it has too few rows."""
        lengths = [more.get(i, k) for i, k in enumerate(self.lengths)]
        added = [
            term
            for effect, k in zip(self.effects, lengths, strict=True)
            for term in effect.terms[:k]
        ]
        terms: tuple[Term, ...] = (*self.lines, *added)
        family, levels = self.family, self.plain.levels
        size = (len(terms) + sum(family.sizes) + 1) * (len(levels) - 1)
        if family.n < LEAST_ROWS_PER_TERM * size:
            return None
        columns = term_columns(terms, family.columns())
        numbers = np.stack([*columns.values()], axis=1)
        given = family.discrete, family.codes, family.sizes
        regression = fit_logit(levels, self.own, *given, tuple(columns), numbers, self.pseudo_count)
        model = CurvedLogit(family.discrete, family.continuous, terms, regression)
        return _Fit(model, self._score(model))

    def _score(self, model: MultinomialLogit | CurvedLogit) -> float:
        return float(model.log_density(self.own, self.family.columns()).sum())


def _explained(inner: Floats, pull: Floats, scale: Floats) -> float:
    """Return the score statistic of some terms, of which what others explain was taken out."""
    unit = np.sqrt(np.maximum(scale, _LEAST))
    inverse = np.linalg.pinv(inner / np.outer(unit, unit), 1e-9, hermitian=True)
    return float((pull / unit) @ inverse @ (pull / unit))
