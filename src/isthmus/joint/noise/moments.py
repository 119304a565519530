"""Moments with noise, after Dwork et al., "Analyze Gauss" (2014).

Each row is rounded to integers between -2^14 and 2^14, which stand for the bounds, and gets a
constant in front. Sums of its products are the number of rows, the sums and the Gram matrix. All of
them are integers of the same size, and get the same noise.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import DataError
from isthmus.joint.agreement.study import Study
from isthmus.joint.noise.release import NoisyEstimate, NoisyRelease
from isthmus.joint.noise.section import DifferentialPrivacy
from isthmus.statistics import Kind, Moments
from isthmus.types import Floats, Integers

GRID = 2**14
"""The integer that stands for half the width of the bounds. Values are rounded to 1/16,384 of it:
less than any noise that protects somebody."""

CHUNK = 2**16
"""Number of rows whose products of integers up to `GRID` can be added exactly in floating point."""

FLOOR = 1.0
"""Eigenvalues of the covariance are at least this share of the typical largest eigenvalue of the
noise, so that noise does not look like an exact relation."""

QUANTILE = 0.5
"""Quantile, over all pairs of variables, of the variance that noise adds to a correlation."""

POWER = 2.0
"""Exponent of the share of directions that noise leaves visible, in the effective number of rows.
These constants were chosen on random networks: ``benchmarks/results/privacy-tuning.md``."""


SIGNIFICANT = 3.0
"""Number of standard deviations of the noise within which a variance may be zero."""

CLIPPED = 0.9
"""The mean square of a variable, in units of half the width of its bounds: 1/3 if values are spread
evenly, 1 if all of them are at the bounds."""


@final
class NoisyMoments(NoisyRelease[Moments]):
    """Moments of all variables of a study."""

    def __init__(self, study: Study) -> None:
        super().__init__(study)
        self._schema = study.schema
        self._width = study.schema.width
        self._pairs = np.triu_indices(self._width + 1)

    @property
    def unit(self) -> int:
        return GRID**2

    @property
    def numbers(self) -> int:
        return (self._width + 1) * (self._width + 2) // 2

    @property
    def row_sensitivity(self) -> float:
        # A discrete variable has at most one level that is not zero.
        terms = len(self._schema) + 1
        return GRID**2 * math.sqrt(terms * (terms + 1) / 2)

    @cached_property
    def _ranges(self) -> list[tuple[float, float]]:
        """The centre and half the width of the bounds of each column."""
        ranges: list[tuple[float, float]] = []
        for v in self._schema.variables:
            if v.kind is Kind.DISCRETE:
                ranges += [(0.0, 1.0)] * v.width
            else:
                low, high = clipping_bounds(self.study, self.privacy, v.name)
                # Never zero: a value at the centre would be refused, and tell of its person.
                ranges.append((low / 2 + high / 2, max(high / 2 - low / 2, math.ulp(0.0))))
        return ranges

    def rounded(self, values: Floats) -> Floats:
        """Return the rows as integers, after clipping, with the constant in front."""
        parts = [np.full((len(values), 1), float(GRID))]
        for i, v in enumerate(self._schema.variables):
            column = values[:, i]
            if v.kind is Kind.DISCRETE:
                parts.append(GRID * (column[:, None] == np.arange(1, len(v.levels))))
            else:
                centre, half = self._ranges[self._schema.blocks[i][0]]
                with np.errstate(over="ignore"):  # clipped all the same
                    share = np.rint((column - centre) / half * GRID)
                parts.append(np.clip(share, -GRID, GRID)[:, None])
        return np.concatenate(parts, axis=1)

    def integers(self, values: Floats) -> Integers:
        total = np.zeros((self._width + 1, self._width + 1), dtype=np.int64)
        for start in range(0, len(values), CHUNK):
            part = self.rounded(values[start : start + CHUNK])
            if not np.isfinite(part).all():
                raise DataError("Some values are not finite.")
            total += (part.T @ part).astype(np.int64)
        return total[self._pairs]

    def estimate(self, total: list[int], scale: float) -> NoisyEstimate[Moments]:
        p = self._width
        whole = np.zeros((p + 1, p + 1))
        whole[self._pairs] = [v / GRID**2 for v in total]
        error = scale / GRID**2
        n = max(whole[0, 0], 2.0)
        mean = np.clip(whole[0, 1:] / n, -1.0, 1.0)
        square = whole[1:, 1:] + np.triu(whole[1:, 1:], 1).T
        noisy = square / n - np.outer(mean, mean)
        covariance = valid_covariance(noisy, error / n)
        rows = self._rows(covariance, n, error)
        worth = max(round(rows * visible_share(noisy, error / n) ** POWER), 1)
        centre, half = np.array(self._ranges).T if p else (np.zeros(0), np.zeros(0))
        gram = rows * covariance * np.outer(half, half)
        moments = Moments(self._schema, rows, centre + half * mean, np.zeros(p), gram)
        hidden = self._continuous(noisy.diagonal() <= SIGNIFICANT * error / n)
        clipped = self._continuous(square.diagonal() / n > CLIPPED + SIGNIFICANT * error / n)
        return NoisyEstimate(moments, round(n), error, worth, hidden, clipped)

    def _continuous(self, columns: NDArray[np.bool_]) -> tuple[str, ...]:
        """Return the names of the continuous variables for whose column something holds."""
        first = zip(self._schema.variables, self._schema.blocks, strict=True)
        return tuple(v.name for v, (a, _) in first if v.kind is Kind.CONTINUOUS and columns[a])

    def _rows(self, covariance: Floats, n: float, error: float) -> int:
        """Return the number of rows whose partial correlations would be as uncertain."""
        owner = np.repeat(np.arange(len(self._schema)), [b - a for a, b in self._schema.blocks])
        i, j = np.triu_indices(self._width, 1)
        i, j = i[owner[i] != owner[j]], j[owner[i] != owner[j]]
        if not len(i):
            return max(round(n), 2)
        # Noise E changes the precision K by K E K, and so a partial correlation by this variance.
        precision = np.linalg.inv(covariance)
        length = (precision**2).sum(axis=0) / precision.diagonal()
        noise = (error / n) ** 2 * float(np.quantile(length[i] * length[j], QUANTILE))
        return max(round(1.0 / (1.0 / n + noise)), 2)


def clipping_bounds(study: Study, privacy: DifferentialPrivacy, name: str) -> tuple[float, float]:
    """Return the bounds to which the values of a continuous variable are clipped."""
    return privacy.bounds.get(name, study.bounds[name])


def noise_floor(columns: int, error: float) -> float:
    """Return the typical largest eigenvalue of a symmetric matrix of noise."""
    return 2.0 * error * math.sqrt(columns)


def visible_share(noisy: Floats, error: float) -> float:
    """Return the share of the eigenvalues of a noisy covariance that noise does not explain."""
    if error == 0.0 or not len(noisy):
        return 1.0
    return float(np.mean(np.linalg.eigvalsh(noisy) > noise_floor(len(noisy), error)))


def valid_covariance(noisy: Floats, error: float) -> Floats:
    """Return the nearest covariance whose eigenvalues are not smaller than those of noise.

    Parameters
    ----------
    noisy
        A symmetric matrix, in units of half the width of the bounds.
    error
        Standard deviation of the noise in each of its entries.
    """
    if not len(noisy):
        return noisy
    values, vectors = np.linalg.eigh(noisy)
    floor = max(FLOOR * noise_floor(len(noisy), error), 1.0 / GRID**2)
    valid: Floats = (vectors * np.maximum(values, floor)) @ vectors.T
    return (valid + valid.T) / 2
