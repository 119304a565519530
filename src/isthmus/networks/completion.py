"""Exact inference for many incomplete rows at a time, by elimination of the missing variables.

Expectation-maximisation asks one question per row and iteration: rows with the same or similar
missing values are one axis of all arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import DataError
from isthmus.graphs import DAG
from isthmus.networks.inference import greedy_order, spread

Codes = NDArray[np.uint16]

_ROWS = 512
"""Maximum number of rows per batch, which then takes some milliseconds."""
_CELLS = 2**22
"""Maximum number of elements in the arrays of a batch."""
_PER_BUCKET, _PER_CELL = 2e-4, 7e-8
"""Seconds, roughly: a batch of fewer rows has fewer missing variables, and costs more calls."""


class Batch(NamedTuple):
    """Expectations of some rows.

    Attributes
    ----------
    log_likelihood
        Log-likelihood of the observed values in these rows.
    counts
        For each node the expected number of rows in each cell of its table, flat.
    draws
        Codes of complete rows, of shape (nodes, rows times draws).
    """

    log_likelihood: float
    counts: list[Floats]
    draws: Codes


class _Bucket(NamedTuple):
    """A variable, and those that are eliminated later and depend on it: positions of nodes."""

    scope: tuple[int, ...]
    families: tuple[int, ...]
    home: int
    """The bucket that receives its message, by the node it eliminates; -1 if there is none."""


Buckets: TypeAlias = dict[int, _Bucket]
"""The variables to eliminate, in this order."""
_Part: TypeAlias = tuple[NDArray[np.intp], Buckets]


@final
class Completion:
    """Distributions of missing values given the observed ones, in a discrete network.

    Parameters
    ----------
    sizes
        Number of levels of each node.
    codes
        Shape (nodes, rows), of distinct rows; the number of levels stands for a missing value.
    weights
        How often each row occurs.
    """

    def __init__(
        self, dag: DAG, sizes: Sequence[int], codes: Codes, weights: NDArray[np.int64]
    ) -> None:
        self._sizes = [int(size) for size in sizes]
        self._families = [(*p, v) for v, p in enumerate(dag.parent_indices())]
        self._codes = codes
        self._weights = weights
        self._absent = codes >= np.asarray(sizes)[:, None]
        # Rows with similar patterns meet in a batch, which then has fewer missing variables.
        order = np.lexsort(self._absent[::-1])
        self._batches = [
            part
            for start in range(0, len(order), _ROWS)
            for part in self._split(order[start : start + _ROWS])[1]
        ]

    def __len__(self) -> int:
        """Number of batches."""
        return len(self._batches)

    def _split(self, rows: NDArray[np.intp]) -> tuple[float, list[_Part]]:
        """Halve a batch if that takes less time; return the seconds it takes, and the parts."""
        buckets = self._buckets(rows)
        cells = sum(prod(self._sizes[v] for v in bucket.scope) for bucket in buckets.values())
        if cells > _CELLS and len(rows) == 1:
            raise DataError(
                "The missing values of a row depend on each other in too many ways: exact "
                f"inference would need {float(cells):.1e} numbers for it."
            )
        seconds = _PER_BUCKET * len(buckets) + _PER_CELL * cells * len(rows)
        fits = cells * len(rows) <= _CELLS
        if len(rows) == 1 or (fits and seconds < 2 * _PER_BUCKET * len(buckets)):
            return seconds, [(rows, buckets)]
        halves = [self._split(half) for half in np.array_split(rows, 2)]
        apart = sum(half[0] for half in halves)
        if fits and seconds <= apart:
            return seconds, [(rows, buckets)]
        return apart, [part for half in halves for part in half[1]]

    def _buckets(self, rows: NDArray[np.intp]) -> Buckets:
        """An order to eliminate the variables that are missing in some of these rows."""
        hidden = set(np.flatnonzero(self._absent[:, rows].any(axis=1)).tolist())
        scopes = [frozenset(hidden.intersection(family)) for family in self._families]
        order = greedy_order(scopes, self._sizes)
        rank = {v: i for i, v in enumerate(order)}
        families: dict[int, list[int]] = {v: [] for v in order}
        for child, scope in enumerate(scopes):
            if scope:
                families[min(scope, key=rank.__getitem__)].append(child)
        buckets = {}
        for v in order:
            others = sorted(order[v], key=rank.__getitem__)
            buckets[v] = _Bucket((v, *others), tuple(families[v]), others[0] if others else -1)
        return buckets

    def batch(self, number: int, tables: Sequence[Floats], draws: int, seed: int) -> Batch:
        """Compute the expectations of a batch, and draw its missing values.

        Parameters
        ----------
        number
            Position of the batch.
        tables
            Probabilities of each node: one axis per parent, and a last one for the node. None of
            them may be zero.
        draws
            How many times the missing values of each row are drawn.
        """
        rows, buckets = self._batches[number]
        codes, absent = self._codes[:, rows], self._absent[:, rows]
        n = len(rows)
        conditional: dict[int, Floats] = {}
        messages: dict[int, list[tuple[tuple[int, ...], Floats]]] = {v: [] for v in buckets}
        log_likelihood = self._observed(buckets, codes, tables)
        for v, bucket in buckets.items():
            factor = self._evidence(v, codes, absent).reshape(n, -1, *[1] * (len(bucket.scope) - 1))
            factor = np.broadcast_to(factor, (n, *(self._sizes[u] for u in bucket.scope))).copy()
            for child in bucket.families:
                scope, part = self._slice(child, buckets, codes, tables[child])
                factor *= spread(part, scope, bucket.scope)
            for scope, message in messages[v]:
                factor *= spread(message, scope, bucket.scope)
            total = factor.sum(axis=1)
            np.divide(factor, total[:, None], out=factor, where=total[:, None] > 0)
            conditional[v] = factor
            if bucket.home >= 0:
                # Scaled, so that products of many small numbers do not vanish.
                largest = total.reshape(n, -1).max(axis=1)
                log_likelihood += np.log(largest)
                total /= largest.reshape(n, *[1] * (total.ndim - 1))
                messages[bucket.home].append((bucket.scope[1:], total))
            else:
                log_likelihood += np.log(total)
        weights = self._weights[rows]
        counts = self._counts(buckets, conditional, codes, weights)
        at = np.repeat(np.arange(n), weights * draws)
        drawn = self._draw(buckets, conditional, codes, absent, at, seed)
        return Batch(float(weights @ log_likelihood), counts, drawn)

    def draw(self, tables: Sequence[Floats], draws: int, seed: int) -> Codes:
        """Draw the missing values of all rows, of which each occurs once.

        Parameters
        ----------
        tables
            As for `batch`.

        Returns
        -------
        array
            Codes, shape (nodes, rows, draws).
        """
        completed = np.repeat(self._codes[:, :, None], draws, axis=2)
        seeds = np.random.SeedSequence(seed).generate_state(max(len(self), 1), np.uint64)
        for number, (rows, _) in enumerate(self._batches):
            drawn = self.batch(number, tables, draws, int(seeds[number])).draws
            completed[:, rows] = drawn.reshape(len(drawn), len(rows), draws)
        return completed

    def _observed(self, hidden: Buckets, codes: Codes, tables: Sequence[Floats]) -> Floats:
        """Log-likelihood of each row, of the families without a missing value."""
        total = np.zeros(codes.shape[1])
        for child, family in enumerate(self._families):
            if not any(v in hidden for v in family):
                total += np.log(tables[child][tuple(codes[v] for v in family)])
        return total

    def _evidence(self, v: int, codes: Codes, absent: NDArray[np.bool_]) -> Floats:
        """Return 1 for each level that a row allows and 0 otherwise, of shape (rows, levels)."""
        levels = np.arange(self._sizes[v])
        allowed: Floats = ((codes[v][:, None] == levels) | absent[v][:, None]).astype(np.float64)
        return allowed

    def _slice(
        self, child: int, hidden: Buckets, codes: Codes, table: Floats
    ) -> tuple[tuple[int, ...], Floats]:
        """The table of a node at the observed values of each row: (rows, levels of the others)."""
        family = self._families[child]
        free = [i for i, v in enumerate(family) if v in hidden]
        given = [i for i in range(len(family)) if i not in free]
        turned = table.transpose(*given, *free)
        part = turned[tuple(codes[family[i]] for i in given)] if given else turned[None]
        return tuple(family[i] for i in free), part

    def _counts(
        self,
        buckets: Buckets,
        conditional: Mapping[int, Floats],
        codes: Codes,
        repeated: NDArray[np.int64],
    ) -> list[Floats]:
        """Expected numbers of rows in the cells of each table."""
        n = codes.shape[1]
        marginals: dict[int, tuple[tuple[int, ...], Floats]] = {}
        beliefs: dict[int, Floats] = {}
        for v, bucket in reversed(buckets.items()):
            belief = conditional[v]
            if bucket.home >= 0:
                others = _marginal(
                    beliefs[bucket.home], buckets[bucket.home].scope, bucket.scope[1:]
                )
                belief = belief * others[:, None]
            beliefs[v] = belief
            times = repeated.reshape(n, *[1] * len(bucket.scope))
            for child in bucket.families:
                scope = tuple(u for u in bucket.scope if u in self._families[child])
                marginals[child] = scope, _marginal(times * belief, bucket.scope, scope)
        alone: Floats = repeated.astype(np.float64)
        counts: list[Floats] = []
        for child, family in enumerate(self._families):
            scope, marginal = marginals.get(child, ((), alone))
            sizes = [self._sizes[v] for v in family]
            cell = np.zeros((n, *[1] * len(scope)), dtype=np.int64)
            for i, v in enumerate(family):
                stride = prod(sizes[i + 1 :])
                if v in scope:
                    shape = [1] * (len(scope) + 1)
                    shape[1 + scope.index(v)] = sizes[i]
                    cell = cell + stride * np.arange(sizes[i]).reshape(shape)
                else:
                    own = codes[v].astype(np.int64).reshape(n, *[1] * len(scope))
                    cell = cell + stride * own
            weights = np.broadcast_to(marginal, cell.shape).ravel()
            total = np.bincount(cell.ravel(), weights, minlength=prod(sizes))
            counts.append(total.astype(np.float64))
        return counts

    def _draw(
        self,
        buckets: Buckets,
        conditional: Mapping[int, Floats],
        codes: Codes,
        absent: NDArray[np.bool_],
        rows: NDArray[np.intp],
        seed: int,
    ) -> Codes:
        """Draw the variables in reverse order, each given those that were drawn before."""
        rng = np.random.default_rng(seed)
        drawn = codes[:, rows]
        for v, bucket in reversed(buckets.items()):
            given = tuple(drawn[u] for u in bucket.scope[1:])
            chances = np.moveaxis(conditional[v], 1, -1)[(rows, *given)]
            cumulative = np.cumsum(chances, axis=-1)
            uniform = rng.random((len(rows), 1)) * cumulative[:, -1:]
            level = np.minimum((uniform >= cumulative).sum(axis=-1), self._sizes[v] - 1)
            drawn[v] = np.where(absent[v, rows], level, drawn[v])
        return drawn


def _marginal(belief: Floats, scope: tuple[int, ...], kept: tuple[int, ...]) -> Floats:
    """Sum over the variables that are not kept; the others are in the order of the scope."""
    axes = tuple(1 + i for i, v in enumerate(scope) if v not in kept)
    return np.asarray(belief.sum(axis=axes))
