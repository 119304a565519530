"""Likelihoods of linear Gaussian networks, with the correlations that they are computed from.

`CorrelationScore` is a local score that can also be asked which pairs of variables are strongly
correlated, given a graph. With many variables the correlations are not one matrix:
`ColumnCorrelations` computes them from columns when they are needed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from isthmus.arrays import Floats, Integers, Work
from isthmus.kernels import scoring
from isthmus.objectives.local import (
    LOCAL_SCORES,
    BoundWork,
    Capabilities,
    Capability,
    FamilyCost,
    LocalScore,
    Objective,
)
from isthmus.watch import Sense

_BLOCK = 2048
"""Columns per block; the product of two blocks of 2,000 rows takes about 0.2 s."""
_BLOCK_CELLS = 2**23
"""Maximum number of values in a block of columns."""
_MANY_TIMES = 16
"""A variable has at most so many times the partners that were asked for."""


class Pairs(NamedTuple):
    """Pairs of variables (the first has the smaller index) and their absolute correlations.

    For scores without correlations, what one of them adds to the score of the other.
    """

    first: Integers
    second: Integers
    size: Floats

    @classmethod
    def none(cls) -> Pairs:
        """Return no pairs."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))

    @classmethod
    def strongest(cls, parts: Sequence[Pairs], most: int) -> Pairs:
        """Keep the pairs that are among the strongest of one of their variables, each pair once.

        A variable that is a strong partner of very many others keeps the strongest of them.
        """
        pairs = _distinct(parts)
        count = len(pairs.first)
        ends = np.concatenate([pairs.first, pairs.second])
        order = np.lexsort((-np.tile(pairs.size, 2), ends))
        sorted_ends = ends[order]
        begins = np.flatnonzero(np.diff(sorted_ends, prepend=-1))
        rank = np.empty(2 * count, np.int64)
        rank[order] = np.arange(2 * count) - np.repeat(begins, np.diff(begins, append=2 * count))
        first, second = rank[:count], rank[count:]
        keep = np.minimum(first, second) < most
        keep &= np.maximum(first, second) < _MANY_TIMES * most
        return cls(pairs.first[keep], pairs.second[keep], pairs.size[keep])


class LinearGraph(NamedTuple):
    """Parents of each variable: those of v are ``parents[starts[v]:starts[v + 1]]``."""

    starts: Integers
    parents: Integers
    weights: Floats

    @classmethod
    def empty(cls, variables: int) -> LinearGraph:
        """Return the graph without edges."""
        return cls(np.zeros(variables + 1, np.int64), np.empty(0, np.int64), np.empty(0))

    def differs(self, other: LinearGraph) -> Integers:
        """Return the variables that do not have the same parents in another graph."""
        size = len(self.starts) - 1
        edges, others = (
            np.repeat(np.arange(size), np.diff(graph.starts)) * size + graph.parents
            for graph in (self, other)
        )
        return np.unique(np.setxor1d(edges, others) // max(size, 1))


class Correlations(ABC):
    """Correlations among variables, which need not be one matrix."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of variables."""

    @abstractmethod
    def among(self, variables: Integers) -> Floats:
        """Return the correlations among some variables, by index."""

    @abstractmethod
    def residuals(self, graph: LinearGraph, variables: Integers) -> Any:
        """Return something whose products are the correlations of the residuals of some variables.

        A residual is the rest of a standardised variable when its parents, times their weights,
        are subtracted.
        """

    @abstractmethod
    def products(self, left: Any, right: Any) -> Floats:
        """Return the correlations of two blocks of residuals."""

    @abstractmethod
    def block(self) -> int:
        """Return the number of variables per block."""

    @final
    def strong_pairs(
        self, graph: LinearGraph, least: float, most: int, variables: Integers | None = None
    ) -> Work[Pairs]:
        """Find the pairs whose residuals have a correlation of more than `least`.

        Parameters
        ----------
        graph
            Parents and weights of standardised variables.
        least
            Absolute correlation from which on a pair counts.
        most
            If a variable has more strong partners, only so many of them count; a pair is kept if it
            counts for one of the two.
        variables
            Only pairs with one of these variables are looked at; by default all.
        """
        step, size = self.block(), len(self)
        blocks = []
        for b in range(0, size, step):
            blocks.append(self.residuals(graph, np.arange(b, min(b + step, size))))
            yield
        kept = Pairs.none()
        wanted = np.arange(size) if variables is None else variables
        for a in range(0, len(wanted), step):
            rows = wanted[a : a + step]
            left = blocks[a // step] if variables is None else self.residuals(graph, rows)
            found = [kept]
            for b in range(a if variables is None else 0, size, step):
                products = self.products(left, blocks[b // step])
                np.abs(products, out=products)
                strong = _strong(products, least, most)
                i, j = np.divmod(strong, products.shape[1])
                values = products.ravel()[strong].astype(np.float64)
                found.append(Pairs(rows[i], b + j, values))
                yield
            kept = Pairs.strongest(found, most)
        return kept


def _distinct(parts: Sequence[Pairs]) -> Pairs:
    """Return pairs of different variables, the smaller index first, each pair once."""
    first, second, size = map(np.concatenate, zip(*parts, strict=True))
    first, second = np.minimum(first, second), np.maximum(first, second)
    order = np.lexsort((second, first))
    first, second, size = first[order], second[order], size[order]
    new = (np.diff(first, prepend=-1) != 0) | (np.diff(second, prepend=-1) != 0)
    keep = new & (first != second)
    return Pairs(first[keep], second[keep], size[keep])


def _strong(products: Floats, least: float, most: int) -> Integers:
    """Return the flat positions of strong pairs, at most about `most` per row and column."""
    strong = np.flatnonzero(products > least)
    if len(strong) <= 4 * most * sum(products.shape):
        return strong
    rows = np.partition(products, max(products.shape[1] - most, 0), axis=1)
    columns = np.partition(products, max(products.shape[0] - most, 0), axis=0)
    rows = rows[:, max(products.shape[1] - most, 0)]
    columns = columns[max(products.shape[0] - most, 0)]
    i, j = np.divmod(strong, products.shape[1])
    values = products.ravel()[strong]
    chosen: Integers = strong[(values >= rows[i]) | (values >= columns[j])]
    return chosen


@final
class ColumnCorrelations(Correlations):
    """Correlations that are computed from columns of norm one, in rows of an array."""

    def __init__(self, values: Floats) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def block(self) -> int:
        return int(np.clip(_BLOCK_CELLS // max(self._values.shape[1], 1), 32, _BLOCK))

    def among(self, variables: Integers) -> Floats:
        rows = self._values[variables]
        correlation: Floats = rows @ rows.T
        np.fill_diagonal(correlation, 1.0)
        return correlation

    def residuals(self, graph: LinearGraph, variables: Integers) -> Any:
        """Return residuals of norm one in single precision, which is enough to find pairs."""
        rest = self._values[variables]
        starts, stops = graph.starts[variables], graph.starts[variables + 1]
        for own, a, b in zip(rest, starts.tolist(), stops.tolist(), strict=True):
            if b > a:
                own -= graph.weights[a:b] @ self._values[graph.parents[a:b]]
        norm = np.sqrt(np.einsum("ij,ij->i", rest, rest))
        rest /= np.where(norm > 0.0, norm, 1.0)[:, None]
        return rest.astype(np.float32)

    def products(self, left: Any, right: Any) -> Floats:
        result: Floats = left @ right.T
        return result


@final
class MatrixCorrelations(Correlations):
    """Correlations that are one matrix."""

    def __init__(self, correlation: Floats) -> None:
        self._correlation = correlation
        self._left: Any = None
        self._rows = correlation[:0]

    def __len__(self) -> int:
        return len(self._correlation)

    def block(self) -> int:
        return _BLOCK

    def among(self, variables: Integers) -> Floats:
        return self._correlation[np.ix_(variables, variables)]

    def residuals(self, graph: LinearGraph, variables: Integers) -> Any:
        """Return the weights of all variables in each residual, as a sparse matrix."""
        from scipy.sparse import csr_array

        size = len(self)
        edges = csr_array((graph.weights, graph.parents, graph.starts), (size, size))
        own = np.arange(len(variables) + 1)
        itself = csr_array((np.ones(len(variables)), variables, own), (len(variables), size))
        rest: Any = itself - edges[variables]
        variance = np.asarray(rest.multiply(rest @ self._correlation).sum(axis=1)).ravel()
        scale = 1.0 / np.sqrt(np.where(variance > 0.0, variance, 1.0))
        return rest.multiply(scale[:, None]).tocsr()

    def products(self, left: Any, right: Any) -> Floats:
        if self._left is not left:
            self._left, self._rows = left, left @ self._correlation
        result: Floats = (right @ self._rows.T).T
        return result


CORRELATIONS: Capability[CorrelationScore] = Capability("the likelihood of correlations")
"""A Gaussian log-likelihood minus a penalty, and its correlations; see `CorrelationScore`."""


@final
class CorrelationScore(LocalScore):
    """A Gaussian log-likelihood minus a penalty that depends on the number of parents.

    Parameters
    ----------
    nodes, kernel, score_bound, cost
        As for `LocalScore`.
    correlations
        The correlations.
    constant, factor
        A standardised variable with k parents scores ``constant[k]`` minus ``factor`` times the
        logarithm of its residual variance.
    log_variances
        Logarithms of the variances of the variables.
    tolerance
        Share of a variance below which a column counts as determined by others.
    """

    capabilities: Capabilities = frozenset({LOCAL_SCORES, CORRELATIONS})

    def __init__(
        self,
        nodes: Sequence[str],
        kernel: scoring.LocalScore,
        correlations: Correlations,
        *,
        constant: Floats,
        factor: float,
        log_variances: Floats,
        tolerance: float,
        score_bound: Callable[[], BoundWork] | None = None,
        cost: FamilyCost | None = None,
    ) -> None:
        super().__init__(nodes, kernel, equivalent=True, score_bound=score_bound, cost=cost)
        self.correlations = correlations
        self.constant = constant
        self.factor = factor
        self.tolerance = tolerance
        self._offset = factor * float(log_variances.sum())

    def in_units(self, standardised: float) -> float:
        """Turn the score of a graph of standardised variables into that of the variables."""
        return standardised - self._offset

    def least_correlation(self) -> float:
        """Return the correlation from which on a first parent raises the score."""
        price = (
            max(float(self.constant[0] - self.constant[1]), 0.0) if len(self.constant) > 1 else 0
        )
        return float(np.sqrt(-np.expm1(-price / self.factor)))


# --- Tests of conditional independence, as searches see them ------------------------------------

INDEPENDENCE_TESTS: Capability[IndependenceTest] = Capability("tests of independence")
"""p-values of conditional independences; see `IndependenceTest`."""


class IndependenceTest(Objective):
    """Base class of tests of conditional independence, bound to statistics.

    Parameters
    ----------
    nodes
        Names of the variables; an index means a position in this tuple.
    """

    sense: ClassVar[Sense] = Sense.MAXIMISE
    capabilities: Capabilities = frozenset({INDEPENDENCE_TESTS})
    equivalent = True

    def __init__(self, nodes: Sequence[str]) -> None:
        self.nodes = tuple(nodes)

    @abstractmethod
    def p_values(self, x: int, given: Sequence[int], others: Sequence[int]) -> Floats:
        """Test whether a variable is independent of each of some others, given a set.

        The p-value is NaN if the set determines one of the two: they are independent given it,
        whether or not they are neighbours in the graph.

        Parameters
        ----------
        x
            The variable.
        given
            Variables that are conditioned on, in ascending order.
        others
            The variables that x is tested against, none of them in ``given``.
        """

    @abstractmethod
    def local_score(self) -> LocalScore:
        """Return the score of the same data that hybrid searches begin with."""
