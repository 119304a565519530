"""Distributions of nodes whose parents have curved or interacting effects.

A curved distribution is a regression on terms: functions of the parents, which take the place of
its columns. Everything that is known of regressions holds for it given these columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import SchemaError
from isthmus.graphs.names import listed
from isthmus.models.columns import Level
from isthmus.models.conditionals import (
    Columns,
    Conditional,
    ConditionalGaussian,
    DiscreteConditional,
    MultinomialLogit,
    NormalConditional,
)
from isthmus.types import Floats


@final
@dataclass(frozen=True)
class Factor:
    """A function of one parent: a Chebyshev polynomial, or the indicator of a level.

    Attributes
    ----------
    parent
        Name of the parent.
    degree
        Degree of the polynomial; of a discrete parent, the code of the level.
    window
        The values of the parent that correspond to -1 and 1. Beyond them, polynomials of degree 2
        and more are constant. None for a discrete parent.
    """

    parent: str
    degree: int
    window: tuple[float, float] | None

    def at(self, columns: Columns) -> Floats:
        """Evaluate the function in each row."""
        values = np.asarray(columns[self.parent])
        if self.window is None:
            found: Floats = (values == self.degree).astype(np.float64)
            return found
        low, high = self.window
        u: Floats = (2.0 * values - low - high) / (high - low)
        if self.degree == 1:
            return u
        return np.asarray(np.cos(self.degree * np.arccos(np.clip(u, -1.0, 1.0))))


Term = tuple[Factor, ...]
"""A product of functions of parents, each of another parent."""


def described_term(term: Term, levels: Mapping[str, Sequence[Level]]) -> str:
    """Return the text of a term, for a table of coefficients."""
    parts = []
    for own in term:
        if own.window is None:
            known = levels.get(own.parent)
            parts.append(f"[{own.parent} = {known[own.degree] if known else own.degree}]")
        else:
            parts.append(own.parent if own.degree == 1 else f"T{own.degree}({own.parent})")
    return " · ".join(parts)


def term_columns(terms: tuple[Term, ...], columns: Columns) -> dict[str, Floats]:
    """Evaluate terms in each row; their names are their numbers."""
    known: dict[Factor, Floats] = {}
    for own in {factor for term in terms for factor in term}:
        known[own] = own.at(columns)
    values = {}
    for i, (first, *others) in enumerate(terms):
        product = known[first]
        for own in others:
            product = product * known[own]
        values[str(i)] = product
    return values


@final
@dataclass(frozen=True, eq=False)
class CurvedGaussian(NormalConditional):
    """A continuous node with curved or interacting effects of its parents.

    Attributes
    ----------
    discrete, continuous
        Names of the parents of each kind.
    terms
        Functions of the parents.
    regression
        The regression on the terms, whose continuous parents are their numbers: ``"0"``, ``"1"``
        and so on. Its discrete parents are none or all of those of the node.
    """

    discrete: tuple[str, ...]
    continuous: tuple[str, ...]
    terms: tuple[Term, ...]
    regression: ConditionalGaussian
    levels: tuple[Level, ...] = ()

    def __post_init__(self) -> None:
        _check_terms(self.terms, self.discrete, self.continuous, self.regression)

    @property
    def parents(self) -> tuple[str, ...]:
        return self.discrete + self.continuous

    @property
    def parameters(self) -> int:
        return self.regression.parameters

    def with_regression(self, regression: Conditional) -> CurvedGaussian:
        """Return the same distribution with other parameters."""
        assert isinstance(regression, ConditionalGaussian)
        return replace(self, regression=regression)

    def columns(self, columns: Columns) -> dict[str, NDArray[Any]]:
        """Return the columns of the regression."""
        return {v: columns[v] for v in self.discrete} | term_columns(self.terms, columns)

    def mean(self, columns: Columns, n: int) -> Floats:
        return self.regression.mean(self.columns(columns), n)

    def variance(self, columns: Columns, n: int) -> Floats:
        return self.regression.variance({v: columns[v] for v in self.discrete}, n)


@final
@dataclass(frozen=True, eq=False)
class CurvedLogit(DiscreteConditional):
    """A discrete node with curved or interacting effects of its parents on the log-odds.

    Attributes
    ----------
    discrete, continuous, terms
        As for `CurvedGaussian`.
    regression
        The multinomial logistic regression on the discrete parents and the terms.
    """

    discrete: tuple[str, ...]
    continuous: tuple[str, ...]
    terms: tuple[Term, ...]
    regression: MultinomialLogit

    def __post_init__(self) -> None:
        _check_terms(self.terms, self.discrete, self.continuous, self.regression)

    @property
    def levels(self) -> tuple[Level, ...]:  # type: ignore[override]
        return self.regression.levels

    @property
    def parents(self) -> tuple[str, ...]:
        return self.discrete + self.continuous

    @property
    def parameters(self) -> int:
        return self.regression.parameters

    def with_regression(self, regression: Conditional) -> CurvedLogit:
        """Return the same distribution with other parameters."""
        assert isinstance(regression, MultinomialLogit)
        return replace(self, regression=regression)

    def columns(self, columns: Columns) -> dict[str, NDArray[Any]]:
        """Return the columns of the regression."""
        return {v: columns[v] for v in self.discrete} | term_columns(self.terms, columns)

    def log_probabilities(self, columns: Columns, n: int) -> Floats:
        return self.regression.log_probabilities(self.columns(columns), n)


def _check_terms(
    terms: tuple[Term, ...],
    discrete: tuple[str, ...],
    continuous: tuple[str, ...],
    regression: ConditionalGaussian | MultinomialLogit,
) -> None:
    names = tuple(map(str, range(len(terms))))
    if regression.continuous != names or not set(regression.discrete) <= set(discrete):
        raise SchemaError(
            f"The regression on {len(terms)} terms has the parents {listed(regression.parents)}."
        )
    used = {own.parent: own.window is None for term in terms for own in term}
    wrong = [v for v, level in used.items() if v not in (discrete if level else continuous)]
    if wrong or not all(terms):
        raise SchemaError(f"Terms are of {listed(wrong)}, which are not such parents of the node.")
