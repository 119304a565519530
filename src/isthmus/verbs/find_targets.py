"""Find which mechanisms each regime changed, where the targets of interventions are not known."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol, final

import numpy as np

from isthmus.arrays import Floats, Integers
from isthmus.errors import ArgumentError, MismatchError
from isthmus.fitting.changes import MomentSums, regression_changed, rows_changed
from isthmus.graphs import DAG, Knowledge
from isthmus.graphs.names import listed
from isthmus.objectives import PythonLocalScore
from isthmus.results.targets import FoundTargets, TargetTest
from isthmus.scores.tests import likelihood_ratio
from isthmus.searches import Boss
from isthmus.statistics import Kind
from isthmus.tables import TimeUnit
from isthmus.tables.interventions import complete_frame, regimes_of
from isthmus.verbs.arguments import (
    check_kinds,
    check_knowledge,
    check_seed,
    refuse_probabilities,
)
from isthmus.watch import Watch

_FLOOR = 1e-6
"""Least share of the variance of a column that a regression leaves: a knock-out may leave none."""
_TERMS = ((0,), (0, 1), (0, 1, 2, 3, 4))
"""Terms of the parents: lines, squares, and hinges at three quantiles."""
_RIDGE = 1e-9
"""Share of its variance that is added to each column, because a parent may be held constant."""


def find_targets(
    data: object,
    *,
    column: str,
    control: Hashable,
    alpha: float = 0.05,
    knowledge: Knowledge | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    seed: int = 0,
) -> FoundTargets:
    """Find the variables that each regime of a table changed, for `Interventions`.

    A graph and the targets are learned together: where a family pays for a mechanism of its own in
    a regime it has one, and otherwise it shares that of the control. The best graph needs few
    changed mechanisms. Each of these is then tested, with curves of the parents and for noise of
    any shape.

    `Interventions` assumes that its targets no longer depend on their parents. If they may, as
    after a change of a dose, take the graph that was learned here, `targets.dag`.

    Parameters
    ----------
    data
        A table in memory, all continuous or all discrete, with a column that names the regime.
    column
        Name of this column.
    control
        The regime without an intervention.
    alpha
        Probability of naming any target if nothing changed and the graph is right.
    knowledge
        Background knowledge of the graph.
    kinds
        How to read some columns, as for :func:`~isthmus.learn`.
    seed
        Random seed of the search.

    Examples
    --------
    >>> import numpy as np
    >>> import isthmus as ist
    >>> rng = np.random.default_rng(0)
    >>> drug = np.repeat(["no", "yes"], 500)
    >>> x = rng.normal(size=1000) + (drug == "yes")
    >>> table = {"x": x, "y": x + rng.normal(size=1000), "drug": drug}
    >>> targets = ist.find_targets(table, column="drug", control="no")
    >>> dict(targets)
    {'no': (), 'yes': ('x',)}
    >>> ist.learn(ist.Interventions(table, targets, column="drug")).cpdag.directed
    (('x', 'y'),)
    """
    if not 0.0 < alpha < 1.0:
        raise ArgumentError(f"alpha={alpha!r} was given; it must be between 0 and 1, such as 0.05.")
    check_kinds(kinds)
    columns, labels, regime = regimes_of(data, column)
    if control not in labels or len(labels) < 2:
        raise ArgumentError(
            f"control={control!r} was given; it must be one of at least two values of {column!r}, "
            f"which are {labels[:20]}."
        )
    first = labels.index(control)
    order = [first, *(k for k in range(len(labels)) if k != first)]
    regime = np.argsort(order)[regime]  # the control is regime 0
    frame = complete_frame(columns, kinds)
    schema = frame.schema()
    discrete = schema.of_kind(Kind.DISCRETE)
    if discrete and len(discrete) < len(schema):
        raise MismatchError(
            f"Targets are found in tables of numbers only or of categories only; of these columns, "
            f"{listed(discrete)} are discrete.",
            "Read columns of zeros and ones as numbers, kinds={'column': 'continuous'}, or cut "
            "numbers into levels.",
        )
    values = np.column_stack(frame.all_columns())
    levels = [len(v.levels) for v in schema.variables]
    mechanisms: _Mechanisms = (
        _SharedTables(values, regime, levels) if discrete else _SharedRegressions(values, regime)
    )
    objective = PythonLocalScore(
        schema.names, lambda v, parents: mechanisms.family(v, parents)[0], equivalent=False
    )
    rules = check_knowledge(knowledge)
    refuse_probabilities(rules, "a search for targets")
    rng = np.random.default_rng(check_seed(seed))
    result = Boss().search(objective, rules.bind(schema.names), rng, Watch())
    dag = DAG.from_parents(schema.names, result.parents)
    found = []
    for i, v in enumerate(schema.names):
        parents = result.parents[i]
        _, changed = mechanisms.family(i, parents)
        for k in range(1, len(labels)):
            lines, p_value = mechanisms.p_values(i, parents, k)
            found.append((p_value, lines, labels[order[k]], v, k in changed))
    found.sort(key=lambda f: f[0])
    tests, largest = [], 0.0
    for rank, (p_value, lines, label, v, pays) in enumerate(found):
        largest = max(largest, min(1.0, p_value * (len(found) - rank)))
        tests.append(TargetTest(label, v, p_value, lines, largest, pays))
    return FoundTargets(control, tuple(tests), dag, float(alpha))


class _Mechanisms(Protocol):
    """Families in which each regime has the mechanism of the control, or its own."""

    def family(self, child: int, parents: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        """Return the best score, and the regimes that have a mechanism of their own in it."""

    def p_values(self, child: int, parents: Sequence[int], regime: int) -> tuple[float, float]: ...


def _best(own: Floats, pooled: Floats, price: float) -> Integers:
    """Return the regimes that share the mechanism of the control, with regime 0 itself."""
    gain = own[0] + own[1:] - pooled[1:]
    return np.flatnonzero(np.append(True, gain <= price))


@final
class _SharedRegressions:
    """Regressions on the parents, or on curves of the parents if these pay."""

    def __init__(self, values: Floats, regime: Integers) -> None:
        self._values = values
        self._rows = [np.flatnonzero(regime == k) for k in range(int(regime.max()) + 1)]
        n, self._d = values.shape
        z = values - values.mean(axis=0)
        z /= np.where(z.std(axis=0) > 0.0, z.std(axis=0), 1.0)
        knots = np.quantile(z, [0.25, 0.5, 0.75], axis=0)
        z = np.column_stack([z, z**2 - 1.0, *(np.maximum(z - own, 0.0) for own in knots)])
        self._n = np.array([float(len(own)) for own in self._rows])
        self._mean = np.stack([z[own].mean(axis=0) for own in self._rows])
        centred = [z[own] - m for own, m in zip(self._rows, self._mean, strict=True)]
        self._scatter = np.stack([x.T @ x for x in centred])
        self._pairs = self._pooled([[0, k] for k in range(len(self._rows))])
        self._half_log = 0.5 * np.log(n)

    def _pooled(self, sets: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
        sizes, scatters = [], []
        for own in sets:
            one = sorted(set(own))
            n = self._n[one]
            gap = self._mean[one] - n @ self._mean[one] / n.sum()
            sizes.append(n.sum())
            scatters.append(self._scatter[one].sum(axis=0) + (gap.T * n) @ gap)
        return np.array(sizes), np.stack(scatters)

    def _likelihoods(self, n: Floats, scatter: Floats, family: Sequence[int]) -> Floats:
        """Return maximised log-likelihoods of the last variable given the others."""
        s = scatter[:, family][:, :, family] / n[:, None, None]
        s = s + _RIDGE * np.eye(len(family))
        rest = s[:, -1, -1]
        if len(family) > 1:
            cross = s[:, :-1, -1]
            solved = np.linalg.solve(s[:, :-1, :-1], cross[:, :, None])[:, :, 0]
            rest = rest - np.einsum("kp,kp->k", cross, solved)
        likelihoods: Floats = -0.5 * n * np.log(np.maximum(rest, _FLOOR))
        return likelihoods

    def family(self, child: int, parents: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        found = []
        for terms in _TERMS[: None if parents else 1]:
            family = [*(p + t * self._d for t in terms for p in parents), child]
            price = self._half_log * (len(family) + 1)
            own = self._likelihoods(self._n, self._scatter, family)
            pairs = self._likelihoods(*self._pairs, family)
            shared = _best(own, pairs, price)
            others = np.setdiff1d(np.arange(len(own)), shared)
            pooled = self._likelihoods(*self._pooled([shared.tolist()]), family)[0]
            score = float(pooled + own[others].sum() - price * (1 + len(others)))
            found.append((score, tuple(others.tolist())))
        return max(found)

    def p_values(self, child: int, parents: Sequence[int], regime: int) -> tuple[float, float]:
        columns = [*parents, child]
        rows = [self._values[self._rows[k]][:, columns] for k in (0, regime)]
        sums = []
        for own in rows:
            gap = own - own.mean(axis=0)
            sums.append(MomentSums(float(len(own)), own.mean(axis=0), gap.T @ gap))
        place = len(columns) - 1
        lines = regression_changed(sums[0], sums[1], place, range(place))
        return lines, max(lines, rows_changed(rows[0], rows[1]))


@final
class _SharedTables:
    """Tables of probabilities for each combination of the parents' levels."""

    def __init__(self, codes: Integers, regime: Integers, levels: Sequence[int]) -> None:
        self._codes, self._regime, self._levels = codes.astype(np.int64), regime, levels
        self._regimes = int(regime.max()) + 1
        self._half_log = 0.5 * np.log(len(regime))

    def _tables(self, child: int, parents: Sequence[int]) -> Integers:
        """Return counts by regime, combination of the parents that occurs, and level."""
        place = np.zeros(len(self._regime), dtype=np.int64)
        for p in parents:
            _, place = np.unique(place * self._levels[p] + self._codes[:, p], return_inverse=True)
        shape = (self._regimes, int(place.max()) + 1, self._levels[child])
        cells = (self._regime * shape[1] + place.ravel()) * shape[2] + self._codes[:, child]
        return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)

    def family(self, child: int, parents: tuple[int, ...]) -> tuple[float, tuple[int, ...]]:
        counts = self._tables(child, parents)
        price = self._half_log * (self._levels[child] - 1.0)
        price *= float(np.prod([float(self._levels[p]) for p in parents]))
        own, pairs = _multinomial(counts), _multinomial(counts + counts[0])
        pairs[0] = own[0]
        shared = _best(own, pairs, price)
        others = np.setdiff1d(np.arange(len(own)), shared)
        pooled = _multinomial(counts[shared].sum(axis=0, keepdims=True))[0]
        score = float(pooled + own[others].sum() - price * (1 + len(others)))
        return score, tuple(others.tolist())

    def p_values(self, child: int, parents: Sequence[int], regime: int) -> tuple[float, float]:
        counts = self._tables(child, parents)
        p = likelihood_ratio(counts[[0, regime]].transpose(1, 0, 2))
        p = 1.0 if np.isnan(p) else p
        return p, p


def _multinomial(counts: Integers) -> Floats:
    """Return the maximised log-likelihood of each table."""
    from scipy.special import xlogy

    rows = counts.sum(axis=2)
    likelihoods: Floats = xlogy(counts, counts).sum(axis=(1, 2)) - xlogy(rows, rows).sum(axis=1)
    return likelihoods
