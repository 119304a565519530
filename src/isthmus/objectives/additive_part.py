"""The least squares loss over some of the coefficients only, all others being zero."""

from __future__ import annotations

from typing import final

import numpy as np

from isthmus.objectives.additive import QuadraticAdditiveLoss
from isthmus.types import Floats, Integers, Work

_LARGEST = 2**26
"""Numbers that may be copied: half a gigabyte."""
_TARGET = 150_000
"""Multiplications in a large product that take as long as the overhead of one target here."""
_SLOWER = 4
"""How many of them take as long as one multiplication here."""


def pays(loss: QuadraticAdditiveLoss, open_: Integers) -> bool:
    """Return whether a `PartOfQuadraticLoss` is faster than the loss of all coefficients.

    The unit is a multiplication in a large product of matrices.
    """
    sizes = np.bincount(open_ % loss.targets, minlength=loss.targets).astype(np.float64)
    numbers = float(sizes @ sizes)
    whole = float(len(loss.owner)) ** 2 * loss.targets
    return numbers <= _LARGEST and _SLOWER * numbers + _TARGET * loss.targets < whole


@final
class PartOfQuadraticLoss:
    """A quadratic loss as a function of some coefficients, with copies of what it needs for them.

    Parameters
    ----------
    loss
        The loss of all coefficients.
    open_
        The coefficients, as ``row * targets + target``.
    """

    def __init__(self, loss: QuadraticAdditiveLoss, open_: Integers) -> None:
        self._loss = loss
        rows, columns = np.divmod(open_, loss.targets)
        self._order = np.argsort(columns, kind="stable")
        self._rows = rows[self._order]
        self._starts = np.searchsorted(columns[self._order], np.arange(loss.targets + 1)).tolist()
        self._cross = loss.cross[self._rows, columns[self._order]]
        self._blocks: list[Floats] = []

    def evaluation(self, parameters: Floats) -> Work[tuple[float, Floats]]:
        """Return the loss and its gradient."""
        loss = self._loss
        while len(self._blocks) < loss.targets:
            j = len(self._blocks)
            rows = self._rows[self._starts[j] : self._starts[j + 1]]
            self._blocks.append(loss.features[np.ix_(rows, rows)])
            yield
        own = parameters[self._order]
        slopes = np.empty_like(own)
        squares = 0.5 * loss.variances
        for j, block in enumerate(self._blocks):
            part = slice(self._starts[j], self._starts[j + 1])
            product = block @ own[part]
            slopes[part] = product - self._cross[part]
            squares[j] += own[part] @ (0.5 * product - self._cross[part])
            yield
        value = float(squares.sum())
        if loss.profiled:
            squares = np.maximum(squares, loss.least)
            value = 0.5 * float(np.log(2.0 * squares).sum())
            slopes /= np.repeat(2.0 * squares, np.diff(self._starts))
        gradient = np.empty_like(slopes)
        gradient[self._order] = slopes
        return value, gradient
