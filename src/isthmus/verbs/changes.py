"""Find which mechanisms differ between two tables, and what each adds to a change of an outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from isthmus.arrays import Floats
from isthmus.errors import ArgumentError, MismatchError, SchemaError
from isthmus.fitting.changes import (
    MomentSums,
    drawn_tables,
    linear_measure,
    regression_changed,
    rows_changed,
    shapley,
    table_measure,
)
from isthmus.graphs import DAG
from isthmus.graphs.names import listed
from isthmus.networks import Level
from isthmus.results.changes import Changes, MechanismChange
from isthmus.scores.tests import likelihood_ratio
from isthmus.statistics import CountPlan, Kind, Schema
from isthmus.statistics.counts import align_levels
from isthmus.tables import Missing, Source, TimeUnit, as_source
from isthmus.tables.dispatch import knows_kinds
from isthmus.verbs.arguments import check_count, check_dag, check_kinds, check_missing, check_seed
from isthmus.verbs.prepare import refuse_left_to_scores

_FROM_SUMS = (
    "The p-values are from sums, so they assume straight lines and normal noise of constant "
    "variance; the rows of both tables were not at hand to challenge that."
)
_OBSERVED = 0.2
"""Share of the observed change by which that of the graph may differ without a remark."""

Measure = Callable[[Mapping[str, float]], Floats]


def changes(
    before: object,
    after: object,
    dag: DAG,
    outcome: str,
    *,
    level: Level | None = None,
    spread: bool = False,
    alpha: float = 0.05,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    draws: int = 200,
    seed: int = 0,
) -> Changes:
    """Explain how an outcome changed from one table to another, such as two months or two sites.

    First, each node is tested: is its dependence on its parents the same in both tables? Then the
    change of the outcome is divided among the nodes that differ, by Shapley values, which average
    over all orders of change. Only sums or tables of families are needed.

    Parameters
    ----------
    before, after
        Two tables, statistics or sources with the nodes of the graph: all continuous, or all
        discrete.
    dag
        The causal graph of both.
    outcome
        The node whose change is to be explained.
    level
        The level of a discrete outcome whose probability changed; for two levels, by default the
        second one.
    spread
        Whether to explain the variance of a continuous outcome instead of its mean.
    alpha
        Probability of naming any mechanism if none changed.
    kinds, missing
        As for :func:`~isthmus.learn`.
    draws
        Number of draws of the parameters, for the intervals.
    seed
        Random seed of these draws.

    Examples
    --------
    >>> import numpy as np
    >>> import isthmus as ist
    >>> rng = np.random.default_rng(0)
    >>> def month(price, rows=2000):
    ...     demand = rng.normal(size=rows)
    ...     cost = price + rng.normal(size=rows)
    ...     sales = 2 * demand - cost + rng.normal(size=rows)
    ...     return {"demand": demand, "cost": cost, "sales": sales}
    >>> dag = ist.DAG(["demand", "cost", "sales"], [("demand", "sales"), ("cost", "sales")])
    >>> answer = ist.changes(month(0.0), month(0.5), dag, "sales")
    >>> [m.node for m in answer.changed]
    ['cost']
    """
    graph = check_dag(dag)
    graph.index(outcome)
    check_kinds(kinds)
    check_count(draws, "draws", least=20, optional=False)
    if not 0.0 < alpha < 1.0:
        raise ArgumentError(f"alpha={alpha!r} was given; it must be between 0 and 1, such as 0.05.")
    graph = graph.reorder(graph.topological_order())
    pair = _sources(before, after, graph, kinds, check_missing(missing))
    schema = pair[0].schema().without_features().subset(graph.nodes)
    discrete = schema.of_kind(Kind.DISCRETE)
    rng = np.random.default_rng(check_seed(seed))
    if not discrete:
        if level is not None:
            raise ArgumentError(f"level is for discrete outcomes, and {outcome!r} is continuous.")
        problem = _linear(pair, graph, outcome, draws, rng, spread=spread)
    elif len(discrete) == len(schema):
        if spread:
            raise ArgumentError(f"spread is for continuous outcomes, and {outcome!r} is discrete.")
        problem = _tables(pair, graph, outcome, level, draws, rng)
    else:
        raise MismatchError(
            f"Changes are explained for tables of numbers only or of categories only; of these, "
            f"{listed(discrete)} are discrete.",
            "Read columns of zeros and ones as numbers, kinds={'column': 'continuous'}, or cut "
            "numbers into levels.",
        )
    return _explained(problem, graph, outcome, float(alpha))


@final
class _Problem(NamedTuple):
    """Tests of all nodes, and the measure of the outcome for mixtures of old and new mechanisms."""

    measure: Measure
    p_values: Mapping[str, float]
    from_sums: Mapping[str, float]
    observed: tuple[float, float]
    named: str
    level: Level | None
    remarks: tuple[str, ...]


def _sources(
    before: object,
    after: object,
    graph: DAG,
    kinds: Mapping[str, Kind | TimeUnit | str] | None,
    missing: Missing | None,
) -> tuple[Source, Source]:
    """Return two sources whose variables are of the same kinds."""
    found: list[Source] = []
    for data in (before, after):
        own: Any = None if knows_kinds(data) else kinds
        if found and not knows_kinds(data):
            # The second table is read as the first one was.
            schema = found[0].schema()
            own = {v: schema[v].kind for v in graph.nodes if v in schema.names} | dict(kinds or {})
        source = as_source(data, kinds=own, columns=graph.nodes, missing=missing)
        refuse_left_to_scores(source, "for both tables")
        absent = [v for v in graph.nodes if v not in source.schema().names]
        if absent:
            raise SchemaError(f"A table has no column for {listed(absent)}, which the graph has.")
        found.append(source)
    a, b = (s.schema().without_features() for s in found)
    differ = [v for v in graph.nodes if a[v].kind is not b[v].kind]
    if differ:
        raise SchemaError(
            f"{listed(differ)} are discrete in one of the tables and continuous in the other. Say "
            f"how to read them: kinds={{{differ[0]!r}: 'continuous'}}."
        )
    return found[0], found[1]


def _linear(
    pair: tuple[Source, Source],
    graph: DAG,
    outcome: str,
    draws: int,
    rng: np.random.Generator,
    *,
    spread: bool,
) -> _Problem:
    sums, observed = [], []
    place = graph.index(outcome)
    for source in pair:
        moments = source.moments(graph.nodes).without_features()
        own = MomentSums(float(moments.n), moments.mean(), moments.scatter())
        sums.append(own)
        variance = own.scatter[place, place] / max(own.n - 1.0, 1.0)
        observed.append(float(variance if spread else own.mean[place]))
    parents = graph.parent_indices()
    p_values = {
        v: regression_changed(sums[0], sums[1], i, parents[i]) for i, v in enumerate(graph.nodes)
    }
    from_sums = dict(p_values)
    remarks: tuple[str, ...] = (_FROM_SUMS,)
    rows = [_rows_of(source, graph.nodes) for source in pair]
    if rows[0] is not None and rows[1] is not None:
        remarks = ()
        for i, v in enumerate(graph.nodes):
            columns = [*parents[i], i]
            second = rows_changed(rows[0][:, columns], rows[1][:, columns])
            p_values[v] = max(p_values[v], second)
    old, new = (s.drawn(parents, draws, rng) for s in sums)

    def measure(weights: Mapping[str, float]) -> Floats:
        own = np.array([weights[v] for v in graph.nodes])
        return linear_measure(old, new, own, place, spread=spread)

    named = "variance" if spread else "mean"
    return _Problem(measure, p_values, from_sums, (observed[0], observed[1]), named, None, remarks)


def _rows_of(source: Source, names: Sequence[str]) -> Floats | None:
    """Return complete rows, if they are in memory."""
    if not source.in_memory or source.has_missing:
        return None
    complete = source.complete_columns()
    if complete is None or complete.groups is not None:
        return None
    places = complete.schema.indices(names)
    return np.column_stack([np.asarray(complete.columns[i], np.float64) for i in places])


def _tables(
    pair: tuple[Source, Source],
    graph: DAG,
    outcome: str,
    level: Level | None,
    draws: int,
    rng: np.random.Generator,
) -> _Problem:
    plan = CountPlan.families(graph)
    first, second = align_levels(*(source.counts(plan) for source in pair))
    number = _level_of(first.schema, outcome, level)
    p_values, old, new = {}, {}, {}
    for v in graph.nodes:
        family = (*graph.parents(v), v)
        a, b = first.table(family), second.table(family)
        sizes = a.shape[-1]
        p = likelihood_ratio(np.stack([a.reshape(-1, sizes), b.reshape(-1, sizes)], axis=1))
        p_values[v] = 1.0 if np.isnan(p) else p
        old[v], new[v] = drawn_tables(a, b, draws, rng)
    shares = [c.table([outcome])[number] / c.n for c in (first, second)]

    def measure(weights: Mapping[str, float]) -> Floats:
        return table_measure(graph, old, new, weights, outcome, number)

    observed = (float(shares[0]), float(shares[1]))
    chosen = first.schema[outcome].levels[number]
    return _Problem(measure, p_values, dict(p_values), observed, "probability", chosen, ())


def _level_of(schema: Schema, outcome: str, level: Level | None) -> int:
    """Return the code of the level whose probability is explained."""
    levels = schema[outcome].levels
    if level is None and len(levels) == 2:
        return 1
    if level is None or level not in levels:
        raise ArgumentError(
            f"Name a level of {outcome!r} whose probability changed: one of {list(levels[:10])}."
        )
    return levels.index(level)


def _explained(problem: _Problem, graph: DAG, outcome: str, alpha: float) -> Changes:
    p_values = problem.p_values
    order = sorted(graph.nodes, key=p_values.__getitem__)
    adjusted, largest = {}, 0.0
    for rank, v in enumerate(order):
        largest = max(largest, min(1.0, p_values[v] * (len(order) - rank)))
        adjusted[v] = largest
    differ = [v for v in order if adjusted[v] <= alpha]
    causes = {outcome, *graph.ancestors(outcome)}
    shares, others = shapley(problem.measure, graph.nodes, [v for v in differ if v in causes])
    found = []
    for v in order:
        own = MechanismChange(v, p_values[v], problem.from_sums[v], adjusted[v])
        if v in differ:
            draws = shares.get(v, np.zeros(2))
            low, high = np.quantile(draws[1:], [0.025, 0.975]).tolist()
            own = MechanismChange(
                v, own.p_value, own.p_from_sums, own.adjusted, float(draws[0]), (low, high)
            )
        found.append(own)
    before, after = (float(problem.measure(dict.fromkeys(graph.nodes, t))[0]) for t in (0.0, 1.0))
    remarks = list(problem.remarks)
    observed = problem.observed[1] - problem.observed[0]
    if abs(after - before - observed) > _OBSERVED * abs(observed):
        remarks.append(
            f"In the rows it changed by {observed:.3g}: the graph does not describe all of it. "
            "validate(data, dag) says where it does not fit."
        )
    return Changes(
        outcome,
        problem.named,
        problem.level,
        before,
        after,
        problem.observed,
        tuple(found),
        float(others[0]),
        alpha,
        tuple(remarks),
    )
