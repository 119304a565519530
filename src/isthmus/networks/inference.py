"""Exact inference in discrete networks by variable elimination, for many rows at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Floats
from isthmus.errors import DataError
from isthmus.graphs import DAG
from isthmus.networks.columns import check_joint_size, impossible

Order: TypeAlias = dict[int, set[int]]
"""Variables in the order of their elimination, each with those that it then depends on."""

Families: TypeAlias = dict[int, tuple[int, ...]]
"""Nodes, each with the unknown variables in its table."""

_CELLS = 2**22
"""Maximum number of elements in an array for several rows; more rows are split."""
_LARGEST = 2**26
"""Maximum number of elements in an array: 512 MB."""
_LITTLE = 2**10
"""Elements per variable that are summed as fast as a better order is found."""


class _Factor(NamedTuple):
    """A function of some variables: the first axis are rows, or has length one for all of them."""

    scope: tuple[int, ...]
    values: Floats


@final
class Elimination:
    """Answers questions to a discrete network, whose variables are numbered and levels coded.

    Parameters
    ----------
    tables
        Probabilities by node, as in `DiscreteNetwork`. With one axis more in front, tables are
        several networks with the same graph, which `joints` answers at a time.
    """

    def __init__(self, dag: DAG, tables: Mapping[str, Floats]) -> None:
        self._parents = dag.parent_indices()
        self._names = dag.nodes
        self._sizes = [tables[name].shape[-1] for name in dag.nodes]
        # Published tables have few digits, and sums that differ from one.
        scaled = [tables[v] / tables[v].sum(axis=-1, keepdims=True) for v in dag.nodes]
        self._tables = [
            own if own.ndim == len(parents) + 2 else own[None]
            for own, parents in zip(scaled, self._parents, strict=True)
        ]
        self._all_positive: dict[int, bool] = {}

    def joint(
        self,
        targets: Sequence[int],
        evidence: Mapping[int, int],
        likelihoods: Mapping[int, Floats] | None = None,
    ) -> Floats:
        """Return the distribution of some nodes given codes of others, one axis per target.

        Parameters
        ----------
        evidence
            Codes of nodes that are observed.
        likelihoods
            For nodes that are observed with uncertainty, the likelihood of each level.
        """
        found: Floats = self.joints(targets, evidence, likelihoods)[0]
        return found

    def joints(
        self,
        targets: Sequence[int],
        evidence: Mapping[int, int],
        likelihoods: Mapping[int, Floats] | None = None,
    ) -> Floats:
        """Return the distributions of `joint` for all networks, one per entry of the first axis."""
        check_joint_size([self._sizes[t] for t in targets])
        codes = {v: np.array([code]) for v, code in evidence.items()}
        weights, scale = self._weights(targets, codes, likelihoods or {})
        if np.isneginf(scale).any():
            raise impossible()
        found: Floats = weights / weights.sum(axis=tuple(range(1, weights.ndim)), keepdims=True)
        return found

    def rows(self, target: int, codes: Mapping[int, NDArray[np.intp]], n: int) -> Floats:
        """Return log-weights of the levels of a node for each row, of shape (rows, levels).

        Parameters
        ----------
        codes
            Codes of nodes in each row; the number of levels stands for an unknown value.
        n
            Number of rows.
        """
        logs = np.empty((n, self._sizes[target]))
        absent = np.array([codes[v] == self._sizes[v] for v in codes]).reshape(len(codes), n)
        patterns, places = distinct_columns(absent)
        for k in range(patterns.shape[1]):
            members = np.flatnonzero(places == k)
            known = [v for v, missing in zip(codes, patterns[:, k], strict=True) if not missing]
            given = {v: codes[v][members] for v in known}
            weights, scale = self._weights([target], given, {}, near=True)
            with np.errstate(divide="ignore"):
                logs[members] = np.log(weights) + np.where(np.isneginf(scale), scale, 0.0)[:, None]
        return logs

    def most_probable(
        self,
        targets: Sequence[int],
        evidence: Mapping[int, int],
        likelihoods: Mapping[int, Floats] | None = None,
    ) -> tuple[dict[int, int], float]:
        """Return the most probable codes of some nodes, jointly, and their log-probability.

        The other nodes are summed out. Parameters are those of `joint`.
        """
        codes = {v: np.array([code]) for v, code in evidence.items()}
        likelihoods = likelihoods or {}
        open_ones = {v for v in targets if self._sizes[v] > 1}
        families = self._families([*targets, *evidence, *likelihoods], evidence)
        sums = self._order(families.values(), open_ones)
        factors, summed = self._eliminate(self._factors(families, codes, likelihoods), sums)
        order = self._order([factor.scope for factor in factors], ())
        _, total = self._eliminate(factors, order)
        if np.isneginf(summed[0] + total[0]):
            raise impossible()
        best = dict.fromkeys((v for v in targets if v not in open_ones), 0)
        steps: list[_Factor] = []
        _, highest = self._eliminate(factors, order, steps)
        for scope, values in reversed(steps):
            place: Any = (0, slice(None), *(best[v] for v in scope[1:]))
            best[scope[0]] = int(np.argmax(values[place]))
        return {v: best[v] for v in targets}, float(highest[0] - total[0])

    def _weights(
        self,
        targets: Sequence[int],
        given: Mapping[int, NDArray[np.intp]],
        likelihoods: Mapping[int, Floats],
        *,
        near: bool = False,
    ) -> tuple[Floats, Floats]:
        """Return weights of the targets for each row, and logarithms of what they are scaled by.

        With `near`, evidence that tells nothing about the targets is left out.
        """
        n = max([len(column) for column in given.values()] + [len(own) for own in self._tables])
        shape = [self._sizes[t] for t in targets]
        open_ones = tuple(t for t in targets if self._sizes[t] > 1)
        families = self._families([*targets, *given, *likelihoods], given)
        part = _connected(families, targets)
        # What is not connected with the targets can only make the evidence impossible.
        families = {
            v: scope
            for v, scope in families.items()
            if not part.isdisjoint(scope)
            or not (near or (self._positive(v) and v not in likelihoods))
        }
        order = self._order(families.values(), open_ones)
        cells = max((self._cells(v, order) for v in order), default=1)
        step = max(_CELLS // max(cells, prod(shape)), 1)
        values, scale = np.empty((n, *shape)), np.empty(n)
        for start in range(0, n, step):
            here = slice(start, start + step)
            codes = {v: c[here] if len(c) > 1 else c for v, c in given.items()}
            factors = self._factors(families, codes, likelihoods, here)
            rest, scale[here] = self._eliminate(factors, order)
            wide = tuple(sorted(open_ones))
            product = _product(rest, wide).transpose(0, *(1 + wide.index(t) for t in open_ones))
            values[here] = product.reshape(len(product), *shape)
        scale[values.reshape(n, prod(shape)).sum(axis=1) == 0] = -np.inf
        return values, scale

    def _positive(self, v: int) -> bool:
        if v not in self._all_positive:
            self._all_positive[v] = bool(self._tables[v].min() > 0.0)
        return self._all_positive[v]

    def _families(self, asked: Iterable[int], given: Collection[int]) -> Families:
        """Return the nodes whose tables matter, with the unknown variables in each of them."""
        relevant: set[int] = set()
        stack = [*asked]
        while stack:
            v = stack.pop()
            if v not in relevant:
                relevant.add(v)
                stack += self._parents[v]
        known = {v for v in relevant if self._sizes[v] == 1}.union(given)
        return {
            v: tuple(u for u in (*self._parents[v], v) if u not in known) for v in sorted(relevant)
        }

    def _factors(
        self,
        families: Families,
        given: Mapping[int, NDArray[np.intp]],
        likelihoods: Mapping[int, Floats],
        networks: slice = slice(None),
    ) -> list[_Factor]:
        """Return tables at the observed values, and likelihoods."""
        factors = [_Factor((v,), own[None]) for v, own in likelihoods.items() if self._sizes[v] > 1]
        first = np.zeros(1, np.intp)  # the code of a variable that has one level only
        for v, scope in families.items():
            family = (*self._parents[v], v)
            free = [i for i, u in enumerate(family) if u in scope]
            fixed = [i for i in range(len(family)) if i not in free]
            place = tuple(given.get(family[i], first) for i in fixed)
            table = self._tables[v].transpose(0, *(1 + i for i in (*fixed, *free)))
            if len(table) > 1:
                values = table[(networks, *(codes[0] for codes in place))]
            else:
                values = table[0][place] if place else table
            factors.append(_Factor(scope, values))
        return factors

    def _order(self, scopes: Collection[tuple[int, ...]], kept: Collection[int]) -> Order:
        """Return an elimination order, the better of two heuristics; raise if none is feasible.

        The second is tried only if it can save more work than it costs.
        """

        def cells_of(order: Order) -> dict[int, int]:
            return {v: self._cells(v, order) for v in order}

        best = greedy_order(scopes, self._sizes, kept)
        cells = cells_of(best)
        if sum(cells.values()) > _LITTLE * len(best):
            other = greedy_order(scopes, self._sizes, kept, fill=True)
            others = cells_of(other)
            if sum(others.values()) < sum(cells.values()):
                best, cells = other, others
        widest = max(cells, key=cells.__getitem__, default=None)
        if widest is not None and cells[widest] > _LARGEST:
            names = sorted(self._names[v] for v in {widest, *best[widest]})
            raise DataError(
                f"An exact answer needs a table of {cells[widest]:.1e} cells over "
                f"{len(names)} variables, such as {names[:5]}; at most {_LARGEST:,} cells are "
                "allowed. Observe some of these variables (evidence), ask for fewer targets, learn "
                "with a smaller max_parents, or count in simulated rows: network.sample(100_000)."
            )
        return best

    def _cells(self, v: int, order: Order) -> int:
        cells: int = prod(map(self._sizes.__getitem__, order[v]), start=self._sizes[v])
        return cells

    def _eliminate(
        self, factors: Sequence[_Factor], order: Order, steps: list[_Factor] | None = None
    ) -> tuple[list[_Factor], Floats]:
        """Sum over variables; return what is left, and the logarithm of what it is scaled by.

        With `steps`, the largest value is taken instead of the sum, and the products are appended,
        whose first variable is the one that is eliminated.
        """
        waiting: dict[int, list[_Factor]] = {v: [] for v in order}
        rank = {v: i for i, v in enumerate(order)}
        rest: list[_Factor] = []
        logs: list[Floats | np.float64] = []

        def put(factor: _Factor) -> None:
            if factor.scope:
                waiting.get(factor.scope[0], rest).append(factor)
            else:
                logs.append(factor.values)

        # Axes in the order of elimination, so that products need no transposition.
        rank |= {v: len(rank) + v for f in factors for v in f.scope if v not in rank}
        place = rank.__getitem__
        for factor in factors:
            scope = tuple(sorted(factor.scope, key=place))
            values = factor.values
            if scope != factor.scope:
                values = values.transpose(0, *(1 + factor.scope.index(v) for v in scope))
            put(_Factor(scope, values))
        for v in order:
            own = waiting.pop(v)
            scope = own[0].scope
            if len(own) > 1:
                scope = tuple(sorted(set(scope).union(*[f.scope for f in own[1:]]), key=place))
            values = _product(own, scope)
            if steps is not None:
                steps.append(_Factor(scope, values))
            message = (np.add if steps is None else np.maximum).reduce(values, axis=1)
            # Scaled, so that products of many small numbers do not vanish.
            if len(message) == 1:
                top: np.float64 = np.maximum.reduce(message, axis=None) or np.float64(1.0)
                logs.append(top)
                put(_Factor(scope[1:], message / top))
                continue
            largest = message.reshape(len(message), -1).max(axis=1)
            if not largest.all():
                largest[largest == 0] = 1.0
            logs.append(largest)
            put(_Factor(scope[1:], message / spread(largest, (), scope[1:])))
        scale: Floats = np.zeros(1)
        with np.errstate(divide="ignore"):
            for own_scale in logs:
                scale = scale + np.log(own_scale)
        return rest, scale


def distinct_columns(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the distinct columns of an array of shape (variables, rows), and that of each row."""
    if not len(rows):
        return rows[:, :1], np.zeros(rows.shape[1], np.intp)
    distinct, places = np.unique(rows, axis=1, return_inverse=True)
    return distinct, places.ravel()


def greedy_order(
    scopes: Iterable[Collection[int]],
    sizes: Sequence[int],
    kept: Collection[int] = (),
    *,
    fill: bool = False,
) -> Order:
    """Return an order to eliminate variables.

    Parameters
    ----------
    sizes
        Number of levels of each variable.
    kept
        Variables that are not eliminated.
    fill
        Whether the next variable is the one that adds the fewest dependences, weighted by numbers
        of levels (min-fill). By default it is the one with the smallest table (min-weight).
    """
    near: dict[int, set[int]] = {}
    for scope in scopes:
        for v in scope:
            near.setdefault(v, set()).update(scope)

    size = sizes.__getitem__

    def cost(v: int) -> tuple[int, int]:
        if not fill:
            return prod(map(size, near[v])), v
        pairs = combinations(near[v] - {v}, 2)
        return sum(sizes[a] * sizes[b] for a, b in pairs if b not in near[a]), v

    costs = {v: cost(v) for v in near if v not in kept}
    order: Order = {}
    while costs:
        best = min(costs, key=costs.__getitem__)
        del costs[best]
        order[best] = near.pop(best) - {best}
        for u in order[best]:
            near[u] |= order[best]
            near[u].discard(best)
        changed = set(order[best])
        if fill:
            changed = changed.union(*(near[u] for u in order[best]))
        costs.update({u: cost(u) for u in changed if u in costs})
    return order


def spread(part: Floats, scope: tuple[int, ...], wide: tuple[int, ...]) -> Floats:
    """Order the axes after the first as in a wider scope, and add those of length one."""
    order = sorted(range(len(scope)), key=lambda i: wide.index(scope[i]))
    turned = part.transpose(0, *(1 + i for i in order))
    lengths = {scope[i]: part.shape[1 + i] for i in order}
    return turned.reshape(len(part), *(lengths.get(v, 1) for v in wide))


def _product(factors: Sequence[_Factor], scope: tuple[int, ...]) -> Floats:
    """Multiply factors, small ones first, whose axes have the order of these variables."""
    values: Floats | None = None
    for factor in sorted(factors, key=lambda f: f.values.size) if len(factors) > 1 else factors:
        own = factor.values
        if len(factor.scope) < len(scope):
            lengths = iter(own.shape[1:])
            own = own.reshape(len(own), *[next(lengths) if v in factor.scope else 1 for v in scope])
        values = own if values is None else values * own
    return np.ones((1,) * (1 + len(scope))) if values is None else values


def _connected(families: Families, targets: Collection[int]) -> set[int]:
    """Return the variables that are connected with the targets by common factors."""
    near: dict[int, set[int]] = {}
    for scope in families.values():
        for v in scope:
            near.setdefault(v, set()).update(scope)
    part, stack = set(targets), list(targets)
    while stack:
        new = near.get(stack.pop(), set()) - part
        part |= new
        stack += new
    return part
