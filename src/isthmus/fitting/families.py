"""The distribution of one node given its parents, estimated from rows."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.fitting.discrete import regress_within, shrunk_table
from isthmus.fitting.logit import fit_logit
from isthmus.networks import ConditionalGaussian, Level, MultinomialLogit, ProbabilityTable
from isthmus.networks.conditionals import Columns, CurvedGaussian, NormalConditional, configuration
from isthmus.networks.sampling_error import ENOUGH
from isthmus.statistics import Kind, Rows


class ParentRows(NamedTuple):
    """Rows of the parents of a node."""

    discrete: tuple[str, ...]
    sizes: tuple[int, ...]
    codes: tuple[NDArray[np.intp], ...]
    continuous: tuple[str, ...]
    numbers: tuple[Floats, ...]
    n: int

    @classmethod
    def of(cls, rows: Rows, parents: Collection[str]) -> ParentRows:
        """Take the columns of some parents."""
        schema = rows.schema
        discrete = tuple(p for p in parents if schema[p].kind is Kind.DISCRETE)
        continuous = tuple(p for p in parents if schema[p].kind is Kind.CONTINUOUS)
        return cls(
            discrete,
            tuple(len(schema[p].levels) for p in discrete),
            tuple(rows.values[:, schema.index(p)].astype(np.intp) for p in discrete),
            continuous,
            tuple(rows.values[:, schema.index(p)] for p in continuous),
            rows.n,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The parents."""
        return self.discrete + self.continuous

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return codes and numbers by name."""
        return dict(zip(self.names, (*self.codes, *self.numbers), strict=True))

    def part(self, some: NDArray[np.intp]) -> ParentRows:
        """Return some of the rows."""
        return self._replace(
            codes=tuple(own[some] for own in self.codes),
            numbers=tuple(own[some] for own in self.numbers),
            n=len(some),
        )

    def keep(self, names: Collection[str]) -> ParentRows:
        """Return some of the parents."""
        d = [i for i, v in enumerate(self.discrete) if v in names]
        c = [i for i, v in enumerate(self.continuous) if v in names]
        return ParentRows(
            tuple(self.discrete[i] for i in d),
            tuple(self.sizes[i] for i in d),
            tuple(self.codes[i] for i in d),
            tuple(self.continuous[i] for i in c),
            tuple(self.numbers[i] for i in c),
            self.n,
        )

    def places(self) -> NDArray[np.intp]:
        """Return the configuration of the discrete parents in each row."""
        place = np.zeros(self.n, np.intp)
        for column, size in zip(self.codes, self.sizes, strict=True):
            place = place * size + column
        return place


def fit_levels(
    own: NDArray[np.intp], levels: tuple[Level, ...], family: ParentRows, pseudo_count: float
) -> ProbabilityTable | MultinomialLogit:
    """Estimate the distribution of a discrete node: a table, or with numbers a regression."""
    if family.continuous:
        numbers = np.stack(family.numbers, axis=1)
        given = family.discrete, family.codes, family.sizes
        return fit_logit(levels, own, *given, family.continuous, numbers, pseudo_count)
    shape = (*family.sizes, len(levels))
    place = family.places() * len(levels) + own
    table = np.bincount(place, minlength=prod(shape)).reshape(shape)
    return ProbabilityTable(levels, family.discrete, shrunk_table(table, pseudo_count), table)


def fit_regression(
    own: Floats,
    family: ParentRows,
    pseudo_count: float,
    observed: NDArray[np.bool_] | None = None,
) -> ConditionalGaussian:
    """Estimate a linear regression for each configuration of the discrete parents."""
    k, sizes = len(family.continuous), family.sizes
    columns = [*family.numbers, own]
    fitted = regress_within(columns, family.places(), prod(sizes), pseudo_count, observed)
    return ConditionalGaussian(
        family.discrete,
        family.continuous,
        fitted.intercepts.reshape(sizes),
        fitted.coefficients.reshape(*sizes, k),
        fitted.variances.reshape(sizes),
        fitted.counts.reshape(sizes),
    )


# --- Covariances of the parameters of regressions that hold for noise of any variance -----------

_MOST_CELLS = 1000
"""Configurations of discrete parents above which covariances are those of equal variances."""
_RANK = 1e-12
"""Share of the largest eigenvalue below which regressors count as collinear."""


def robust(own: NormalConditional, values: Floats, columns: Columns) -> NormalConditional:
    """Return a regression with the covariances of its parameters, from the rows it was fitted to.

    Configurations with few rows keep none, and are drawn as if their noise had one variance.

    Parameters
    ----------
    own
        The regression.
    columns
        Those of its parents.
    """
    if isinstance(own, CurvedGaussian):
        inner = robust(own.regression, values, own.columns(columns))
        return own.with_regression(inner)
    assert isinstance(own, ConditionalGaussian)
    n, k, shape = len(values), len(own.continuous), own.intercepts.shape
    if own.intercepts.size > _MOST_CELLS:
        return own
    x = np.array([columns[v] for v in own.continuous]).reshape(k, n).T
    error = values - own.mean(columns, n)
    place = configuration(columns, own.discrete, shape, n)
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(own.intercepts.size + 1))
    covariances = np.zeros((own.intercepts.size, k + 1, k + 1))
    for cell in range(len(covariances)):
        some = order[ends[cell] : ends[cell + 1]]
        if len(some) - 1 - k >= ENOUGH:
            covariances[cell] = sandwich(x[some], error[some])
    return replace(own, covariances=covariances.reshape(*shape, k + 1, k + 1))


def sandwich(x: Floats, error: Floats) -> Floats:
    """Return the covariance of the intercept and the slopes of a least-squares regression (HC3).

    Parameters
    ----------
    x
        The regressors, of shape (rows, regressors), without the constant.
    error
        The residuals.
    """
    n, k = x.shape
    mean, spread = x.mean(axis=0), x.std(axis=0)
    unit = np.where(spread > 0.0, spread, 1.0)
    design = np.concatenate([np.ones((n, 1)), (x - mean) / unit], axis=1)
    inverse = np.linalg.pinv(design.T @ design, _RANK, hermitian=True)
    half = design @ inverse
    left = 1.0 - np.einsum("ij,ij->i", half, design)
    half *= (error / np.maximum(left, 1.0 / n))[:, None]
    back = np.zeros((k + 1, k + 1))
    back[0, 0], back[0, 1:] = 1.0, -mean / unit
    back[np.arange(1, k + 1), np.arange(1, k + 1)] = 1.0 / unit
    covariance: Floats = back @ (half.T @ half) @ back.T
    return covariance
