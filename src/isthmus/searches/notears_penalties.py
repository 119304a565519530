"""What edges cost in NOTEARS, and which graph of a path is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.errors import MismatchError

Floats: TypeAlias = NDArray[np.float64]


class Penalty(ABC):
    """What the weight of an edge costs."""

    @abstractmethod
    def value(self, weights: Floats) -> Floats:
        """Cost of each weight."""

    @abstractmethod
    def slope(self, weights: Floats) -> Floats:
        """Derivative of the cost in the size of the weight; at zero, from the right."""


@final
@dataclass(frozen=True)
class L1(Penalty):
    """``weight * |w|``.

    Parameters
    ----------
    weight
        In the unit of the loss for one unit of the weight: for least squares it depends on the
        units of the data.
    """

    weight: float = 0.1

    def __post_init__(self) -> None:
        if not self.weight >= 0.0:
            raise MismatchError(f"A penalty must not be negative; {self.weight} was given.")

    def value(self, weights: Floats) -> Floats:
        """Cost of each weight."""
        found: Floats = self.weight * np.abs(weights)
        return found

    def slope(self, weights: Floats) -> Floats:
        """Derivative of the cost."""
        return np.full_like(weights, self.weight)


@final
@dataclass(frozen=True)
class QuasiMCP(Penalty):
    """A concave penalty: every edge with a weight beyond ``width`` costs the same ``price``.

    Below ``width`` it is ``(2 price / width) (|w| - w² / (2 width))``. It does not shrink strong
    edges as ℓ1 does, and so does not take several weak edges for a strong one (arXiv 2410.06163).

    Parameters
    ----------
    price
        Cost of an edge in the unit of the loss: nats a row for a likelihood. With None, that of
        the extended BIC, ``(log(n) / 2 + log(d)) / n``.
    width
        Where the penalty becomes flat, for standardised columns.
    """

    price: float | None = None
    width: float = 0.2

    def __post_init__(self) -> None:
        if not self.width > 0.0 or (self.price is not None and not self.price >= 0.0):
            raise MismatchError(f"Need width > 0 and price >= 0; {self!r} was given.")

    def priced(self, rows: int | None, d: int) -> QuasiMCP:
        """Fill in the price."""
        if self.price is not None:
            return self
        if rows is None:
            raise MismatchError("The objective does not know its number of rows: give a price.")
        return QuasiMCP(RefitEBIC().price(rows, d), self.width)

    def value(self, weights: Floats) -> Floats:
        """Cost of each weight."""
        size = np.minimum(np.abs(weights), self.width)
        found: Floats = self._first() * (size - size * size / (2.0 * self.width))
        return found

    def slope(self, weights: Floats) -> Floats:
        """Derivative of the cost."""
        found: Floats = self._first() * np.maximum(1.0 - np.abs(weights) / self.width, 0.0)
        return found

    def _first(self) -> float:
        if self.price is None:
            raise MismatchError("The price is not known before the objective is.")
        return 2.0 * self.price / self.width


@final
@dataclass(frozen=True)
class RefitEBIC:
    """Extended BIC of a graph whose weights are fitted anew by least squares; lower is better.

    ``Σ_j log(v_j) / 2 + |edges| (log(n) / 2 + 2 gamma log(d)) / n`` with ``v_j`` what its parents
    leave of the variance of j: in nats a row, and the same in all units.

    Parameters
    ----------
    gamma
        0 is BIC; 0.5 keeps false edges in check where there are many variables or few rows.
    """

    gamma: float = 0.5

    def price(self, rows: int, d: int) -> float:
        """Cost of an edge."""
        return float((0.5 * np.log(rows) + 2.0 * self.gamma * np.log(max(d, 2))) / rows)


@final
@dataclass(frozen=True, eq=False)
class Cut:
    """A graph cut out of weights: those of at least ``threshold`` and the required ones."""

    threshold: float
    criterion: float | None
    kept: NDArray[np.bool_]


def cut_at(weights: Floats, threshold: float, required: NDArray[np.bool_]) -> Cut:
    """Keep what is at least the threshold, and not zero."""
    kept = ((np.abs(weights) >= threshold) & (weights != 0.0)) | required
    return Cut(threshold, None, kept)


def judged(cut: Cut, moments: Floats, rows: int, by: RefitEBIC) -> Cut:
    """Add what the criterion says; nothing where a column has nearly as many parents as rows."""
    weights = np.where(cut.kept, 1.0, 0.0)
    return Cut(cut.threshold, best_cut(weights, moments, rows, cut.kept, by).criterion, cut.kept)


def best_cut(
    weights: Floats, moments: Floats, rows: int, required: NDArray[np.bool_], by: RefitEBIC
) -> Cut:
    """Try every threshold and keep the one the criterion likes best.

    Weights that are taken away one by one change one column each, so all thresholds together cost
    one small regression an edge. Columns with nearly as many parents as rows fit anything: no
    threshold that leaves one is considered.
    """
    from isthmus.numerics.columns import residual_share

    d = len(weights)
    price = by.price(rows, d)
    kept = (weights != 0.0) | required
    parents = [np.flatnonzero(kept[:, j]) for j in range(d)]
    logs = np.array([0.5 * np.log(residual_share(moments, j, parents[j], 1e-10)) for j in range(d)])
    sources, targets = np.nonzero(kept & ~required)
    rank = np.argsort(np.abs(weights[sources, targets]), kind="stable")
    full = sum(len(p) >= max(rows - 2, 1) for p in parents)
    edges, best, best_at, threshold = int(kept.sum()), np.inf, len(rank), np.inf
    for at in range(len(rank) + 1):
        total = float(logs.sum()) + price * edges
        if not full and total < best:
            best, best_at = total, at
        if at == len(rank):
            break
        i, j = int(sources[rank[at]]), int(targets[rank[at]])
        full -= len(parents[j]) >= max(rows - 2, 1)
        parents[j] = parents[j][parents[j] != i]
        full += len(parents[j]) >= max(rows - 2, 1)
        logs[j] = 0.5 * np.log(residual_share(moments, j, parents[j], 1e-10))
        edges -= 1
    gone = rank[:best_at]
    kept[sources[gone], targets[gone]] = False
    if best_at < len(rank):
        at = rank[best_at]
        threshold = float(np.abs(weights[sources[at], targets[at]]))
    variance = np.diagonal(moments)
    level = 0.5 * float(np.log(np.where(variance > 0.0, variance, 1.0)).sum())
    return Cut(threshold, best + level if np.isfinite(best) else None, kept)
