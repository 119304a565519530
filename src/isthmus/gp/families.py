"""Regressions of each variable on any others, from rows or from moments of all variables."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from isthmus.arrays import Floats, Integers, Work, completed
from isthmus.gp.bridge import Proposal, log_values
from isthmus.gp.density import (
    FLOOR,
    Density,
    Mode,
    design_from_moments,
    design_from_rows,
    mode_work,
)

FEWEST_TERMS = 32
"""Polynomials per parent in the first fit; see the table of errors in the documentation."""
RESOLUTION = 5.0
"""A length scale needs this many polynomials per radius divided by the length scale."""
_SURPRISE, _FEWEST_RESIDUALS, _RIDGE = 5.0, 10, 1e-10
"""More polynomials are used from the start if they explain more than noise would by this many
standard deviations; the test needs some residuals, and a Gram matrix that is not singular."""
_NEAR = 6.0
"""Modes that are more than this many nats below the best do not ask for more polynomials."""


class RegressionFit(NamedTuple):
    """The posterior modes of the hyperparameters of one regression.

    Attributes
    ----------
    density
        Log density of the child and the hyperparameters.
    modes
        Local maxima, the highest first.
    terms
        Number of polynomials for each parent; empty if the rows were used.
    resolved
        Whether the polynomials are fine enough for the length scale of each parent.
    """

    density: Density
    modes: list[Mode]
    terms: tuple[int, ...]
    resolved: tuple[bool, ...]

    @property
    def log_likelihood(self) -> float:
        """Laplace approximation of the log marginal likelihood."""
        return float(self.modes[0].log_integral)

    @property
    def length_scales(self) -> Floats:
        """Length scales at the highest mode, in standard deviations of the parents."""
        scales: Floats = np.exp(self.modes[0].point[: self.density.design.parents])
        return scales


class Regressions(ABC):
    """Regressions of standardised variables on each other."""

    @final
    def fit(self, child: int, parents: Sequence[int]) -> RegressionFit:
        """Find the posterior modes of the hyperparameters of one regression."""
        return completed(self.fit_work(child, parents))

    @abstractmethod
    def fit_work(self, child: int, parents: Sequence[int]) -> Work[RegressionFit]:
        """Do what `fit` does, in pieces."""


@final
@dataclass(frozen=True, eq=False)
class RowRegressions(Regressions):
    """Regressions from rows.

    Attributes
    ----------
    values
        Standardised columns, shape (n, d).
    interactions
        Whether the kernel has products of two parents.
    """

    values: Floats
    interactions: bool = False

    def fit_work(self, child: int, parents: Sequence[int]) -> Work[RegressionFit]:
        design = design_from_rows(
            self.values[:, child], self.values[:, list(parents)], interactions=self.interactions
        )
        density = Density(design)
        modes = yield from mode_work(density)
        return RegressionFit(density, modes, (), (True,) * len(parents))


@final
@dataclass(frozen=True, eq=False)
class MomentRegressions(Regressions):
    """Regressions from products of Chebyshev polynomials.

    Attributes
    ----------
    gram
        Products of all columns: for each variable its polynomials of degree 1 upwards. The first
        row and column belong to the constant.
    products
        Products of these columns (rows) with the standardised variables (columns).
    squares
        Sum of squares of each standardised variable.
    n
        Number of rows.
    terms
        Number of polynomials of each variable.
    radius
        Half the length of the interval of the polynomials, in standard deviations.
    """

    gram: Floats
    products: Floats
    squares: Floats
    n: int
    terms: int
    radius: float

    def fit_work(self, child: int, parents: Sequence[int]) -> Work[RegressionFit]:
        chosen = [min(FEWEST_TERMS, self.terms)] * len(parents)
        if parents and self._finer_terms_tell(child, parents, chosen):
            chosen = [self.terms] * len(parents)
        yield
        while True:
            density = self._density(child, parents, chosen)
            modes = yield from mode_work(density)
            needed = self._needed(modes, len(parents))
            finer = [
                _rounded_up(need, self.terms) if need > have else have
                for need, have in zip(needed, chosen, strict=True)
            ]
            if finer == chosen:
                best = RESOLUTION * self.radius / np.exp(modes[0].point[: len(parents)])
                resolved = tuple(bool(b <= c) for b, c in zip(best, chosen, strict=True))
                return RegressionFit(density, modes, tuple(chosen), resolved)
            chosen = finer

    def _finer_terms_tell(self, child: int, parents: Sequence[int], terms: list[int]) -> bool:
        """Return whether the other polynomials explain more of the child than noise would.

        An effect that varies so fast that the first polynomials cannot show it has no mode there.
        """
        extra = (self.terms - terms[0]) * len(parents)
        columns = self._columns(parents, [self.terms] * len(parents))
        left = self.n - len(columns)
        if extra == 0 or left < _FEWEST_RESIDUALS:
            return False
        few = self._columns(parents, terms)
        coarse, fine = (self._explained(child, c) for c in (few, columns))
        rest = float(self.squares[child]) - fine
        ratio = (fine - coarse) / max(rest, FLOOR * self.n) * left
        return ratio > extra + _SURPRISE * math.sqrt(2.0 * extra)

    def _explained(self, child: int, columns: Integers) -> float:
        """Sum of squares of a child that a regression on some columns explains."""
        gram = self.gram[np.ix_(columns, columns)]
        ridge = _RIDGE * float(gram.diagonal().max())
        factor = cho_factor(gram + ridge * np.eye(len(columns)), lower=True, overwrite_a=True)
        products = self.products[columns, child]
        return float(products @ cho_solve(factor, products))

    def _needed(self, modes: list[Mode], parents: int) -> Floats:
        near = [m.point[:parents] for m in modes if m.value > modes[0].value - _NEAR]
        shortest = np.exp(np.min(near, axis=0))
        needed: Floats = RESOLUTION * self.radius / shortest
        return needed

    def _columns(self, parents: Sequence[int], terms: Sequence[int]) -> Integers:
        """Positions of the constant and of the first polynomials of each parent."""
        own = (1 + p * self.terms + np.arange(m) for p, m in zip(parents, terms, strict=True))
        return np.concatenate([[0], *own]).astype(np.int64)

    def _density(self, child: int, parents: Sequence[int], terms: Sequence[int]) -> Density:
        columns = self._columns(parents, terms)
        return Density(
            design_from_moments(
                self.gram[np.ix_(columns, columns)],
                self.products[columns, child],
                float(self.squares[child]),
                self.n,
                tuple(terms),
                self.radius,
            )
        )


def _rounded_up(terms: float, most: int) -> int:
    """Round up to a multiple of 16, so that a fit is repeated rarely."""
    return min(most, 16 * int(np.ceil(min(terms, most) / 16)))


# --- Posterior of the effect of each parent, averaged over the hyperparameters ------------------


class Effects(NamedTuple):
    """Posterior of one regression, in units of standard deviations.

    Attributes
    ----------
    means, covariances
        For each parent, mean and covariance of its effect at the inputs of the design.
    length_scales
        Posterior means of the length scales.
    noise
        Posterior mean of σ.
    """

    means: tuple[Floats, ...]
    covariances: tuple[Floats, ...]
    length_scales: Floats
    noise: float


def posterior_effects(fit: RegressionFit, draws: int, rng: np.random.Generator) -> Effects:
    """Average the posterior of each effect over draws of the hyperparameters.

    Parameters
    ----------
    fit
        A regression without interactions.
    draws
        Number of weighted draws; 0 for the highest mode alone.
    rng
        Random numbers.
    """
    points, weights = fit.modes[0].point[None], np.ones(1)
    if draws:
        proposal = Proposal(fit.modes)
        points = proposal.draw(draws, rng)
        ratios = completed(log_values(fit.density, points)) - proposal.log_density(points)
        weights = np.exp(ratios - ratios.max())
        weights /= weights.sum()
        points, weights = points[weights > 1e-6], weights[weights > 1e-6]
        weights /= weights.sum()
    p = fit.density.design.parents
    at = [_conditional(fit, point) for point in points]
    means, covariances = [], []
    for j in range(p):
        own = np.stack([mean[j] for mean, _ in at])
        mean = weights @ own
        within = np.tensordot(weights, np.stack([cov[j] for _, cov in at]), 1)
        means.append(mean)
        covariances.append(within + (own - mean).T @ ((own - mean) * weights[:, None]))
    return Effects(
        tuple(means),
        tuple(covariances),
        weights @ np.exp(points[:, :p]),
        float(weights @ np.exp(points[:, -1])),
    )


def _conditional(fit: RegressionFit, point: Floats) -> tuple[list[Floats], list[Floats]]:
    """Mean and covariance of each effect, given the hyperparameters."""
    d = fit.density.design
    kernels = [
        np.exp(-0.5 * np.exp(-2.0 * t) * square)
        for t, square in zip(point[: d.parents], d.squares, strict=True)
    ]
    # Covariance of each effect at its inputs (rows) with the coordinates (columns).
    crossed = [k if b is None else k @ b.T for k, b in zip(kernels, d.maps, strict=True)]
    covariance = d.outer.copy()
    for cross, mapping in zip(crossed, d.maps, strict=True):
        covariance += cross if mapping is None else mapping @ cross
    covariance[np.diag_indices(len(covariance))] += np.exp(2.0 * point[-1]) + FLOOR
    factor = cho_factor(covariance, lower=True)
    weights = cho_solve(factor, d.target)
    means = [cross @ weights for cross in crossed]
    covariances = [
        kernel - cross @ cho_solve(factor, cross.T)
        for kernel, cross in zip(kernels, crossed, strict=True)
    ]
    return means, covariances
