"""Penalties on edges in NOTEARS, and criteria that choose among graphs."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from isthmus.errors import MismatchError
from isthmus.options import require_number
from isthmus.types import Floats


class Penalty(ABC):
    """A penalty on the weights of edges."""

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
        Penalty per unit of an edge weight. For least squares it depends on the units of the data.
    """

    weight: float = 0.1

    def __post_init__(self) -> None:
        require_number(self, "weight", least=0)

    def value(self, weights: Floats) -> Floats:
        costs: Floats = self.weight * np.abs(weights)
        return costs

    def slope(self, weights: Floats) -> Floats:
        return np.full_like(weights, self.weight)


@final
@dataclass(frozen=True, eq=False)
class L1ByParent(Penalty):
    """``weight * |w|`` with a weight of its own for each parent."""

    weights: Floats

    def value(self, weights: Floats) -> Floats:
        costs: Floats = self.weights[:, None] * np.abs(weights)
        return costs

    def slope(self, weights: Floats) -> Floats:
        return np.broadcast_to(self.weights[:, None], weights.shape)


@final
@dataclass(frozen=True)
class QuasiMCP(Penalty):
    """A concave penalty: every edge with a weight beyond ``width`` costs the same ``price``.

    Below ``width`` it is ``(2 price / width) (|w| - w² / (2 width))``. It does not shrink strong
    edges as ℓ1 does, and so does not take several weak edges for a strong one (arXiv 2410.06163).

    Parameters
    ----------
    price
        Cost of an edge in the unit of the loss: nats per row for a likelihood. With None, that of
        the extended BIC, ``(log(n) / 2 + log(d)) / n``.
    width
        Weight from which the penalty is constant, for standardised columns.
    """

    price: float | None = None
    width: float = 0.2

    def __post_init__(self) -> None:
        require_number(self, "price", least=0, optional=True)
        require_number(self, "width", above=0)

    def priced(self, rows: int | None, d: int) -> QuasiMCP:
        """Fill in the price."""
        if self.price is not None:
            return self
        if rows is None:
            raise MismatchError("The objective does not know its number of rows: give a price.")
        return QuasiMCP(RefitEBIC().price(rows, d), self.width)

    def value(self, weights: Floats) -> Floats:
        size = np.minimum(np.abs(weights), self.width)
        costs: Floats = self._first() * (size - size * size / (2.0 * self.width))
        return costs

    def slope(self, weights: Floats) -> Floats:
        slopes: Floats = self._first() * np.maximum(1.0 - np.abs(weights) / self.width, 0.0)
        return slopes

    def _first(self) -> float:
        if self.price is None:
            raise MismatchError("QuasiMCP has no price yet: give one, or bind it to an objective.")
        return 2.0 * self.price / self.width


@final
@dataclass(frozen=True)
class EdgePrice(Penalty):
    """``price`` for each edge, whatever its weight: what a quasi-MCP of no width is.

    Parameters
    ----------
    price
        Penalty of an edge in the unit of the loss.
    """

    price: float

    def value(self, weights: Floats) -> Floats:
        costs: Floats = np.where(weights != 0.0, self.price, 0.0)
        return costs

    def slope(self, weights: Floats) -> Floats:
        return np.zeros_like(weights)


class PenaltyCriterion(ABC):
    """Compares graphs whose weights are refitted by least squares; lower is better."""

    @abstractmethod
    def edges(self, weights: Floats, rows: int, d: int) -> float:
        """Cost in nats of the edges into one variable, which have these weights."""

    @abstractmethod
    def total(self, left: Floats, edges: float, count: int, rows: int) -> float:
        """Criterion of a graph in nats per row.

        Parameters
        ----------
        left
            Residual variance of each variable given its parents.
        edges
            Cost of all edges.
        count
            Number of edges.
        rows
            Number of rows.
        """


@final
@dataclass(frozen=True)
class RefitEBIC(PenaltyCriterion):
    """Extended BIC with a separate noise variance for each variable.

    The criterion is ``Σ_j log(v_j) / 2 + |edges| (log(n) / 2 + 2 gamma log(d)) / n`` nats per row,
    where ``v_j`` is the residual variance of j given its parents. It does not depend on units.

    Parameters
    ----------
    gamma
        Weight of the extra penalty. 0 is BIC; 0.5 limits the number of false edges if there are
        many variables or few rows.
    """

    gamma: float = 0.5

    def __post_init__(self) -> None:
        require_number(self, "gamma", least=0)

    def price(self, rows: int, d: int) -> float:
        """Cost of an edge in nats per row."""
        return float((0.5 * np.log(rows) + 2.0 * self.gamma * np.log(max(d, 2))) / rows)

    def edges(self, weights: Floats, rows: int, d: int) -> float:
        return len(weights) * rows * self.price(rows, d)

    def total(self, left: Floats, edges: float, count: int, rows: int) -> float:
        return 0.5 * float(np.log(left).sum()) + edges / rows


@final
@dataclass(frozen=True)
class EqualNoiseEBIC(PenaltyCriterion):
    """Extended BIC for noise with equal variances, which is what least squares assumes.

    ``d/2 log(Σ_j v_j / d) + (Σ_edges c(w) + gamma log C(d(d-1)/2, |edges|)) / n`` with
    ``c(w) = log(nd)/2 - 2 log(min(|w|, 2 typical) / typical)``. All d n residuals estimate one
    variance, which is more precise for few rows than d variances. The binomial coefficient is the
    number of ways to choose the adjacent pairs (Chen and Chen 2008). The last term of c is that of
    a moment prior (Johnson and Rossell 2010): relevant edges do not have weights near zero, so weak
    edges need more evidence, also with many rows.

    Parameters
    ----------
    gamma
        Weight of the number of graphs.
    typical
        Weight at which an edge has the penalty of BIC; edges of up to twice this weight have a
        smaller penalty.
    """

    gamma: float = 1.0
    typical: float = 0.7

    def __post_init__(self) -> None:
        require_number(self, "gamma", least=0)
        require_number(self, "typical", above=0)

    def edges(self, weights: Floats, rows: int, d: int) -> float:
        strength = np.minimum(np.maximum(np.abs(weights) / self.typical, 1e-6), 2.0)
        return len(weights) * 0.5 * math.log(rows * d) - 2.0 * float(np.log(strength).sum())

    def total(self, left: Floats, edges: float, count: int, rows: int) -> float:
        d = len(left)
        if d == 0:
            return 0.0
        pairs = d * (d - 1) // 2
        graphs = math.lgamma(pairs + 1) - math.lgamma(count + 1) - math.lgamma(pairs - count + 1)
        return 0.5 * d * math.log(float(left.sum()) / d) + (edges + self.gamma * graphs) / rows

    def price(self, left: Floats, count: int, rows: int) -> EdgePrice:
        """Return the price of an edge of typical weight near a graph, in the unit of least squares.

        Logarithms lie below their tangents: where least squares with this price is lower than for
        the graph, the criterion is lower, too, but for the weights of the edges.

        Parameters
        ----------
        left, count, rows
            Residual variances, number of edges and number of rows, as in `total`.
        """
        d = len(left)
        pairs = d * (d - 1) // 2
        choice = math.log((pairs - count + 0.5) / (count + 0.5))
        nats = 0.5 * math.log(rows * d) + self.gamma * choice
        return EdgePrice(max(nats, 0.0) * float(left.mean()) / rows)
