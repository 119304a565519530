"""Estimate an effect in a given graph, also if some of its variables were not observed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from isthmus.arrays import Integers
from isthmus.errors import (
    ArgumentError,
    DataError,
    GraphError,
    MismatchError,
    SchemaError,
    a_type,
    counted,
)
from isthmus.fitting import adjusted_effect
from isthmus.fitting.effects import Estimate, check_clusters
from isthmus.fitting.indirect_effects import (
    RowsOf,
    discrete_front_door,
    front_door_effect,
    instrument_effect,
)
from isthmus.fitting.standardised import slope_effect, standardised_effect
from isthmus.graphs import CPDAG, DAG, PDAG
from isthmus.graphs.identification import Identification, Route, identify
from isthmus.graphs.names import listed
from isthmus.networks import Level
from isthmus.networks.column_maps import scored_nodes
from isthmus.results.effects import (
    Adjusted,
    EffectComparison,
    EffectEstimate,
    PossibleEffect,
    ZeroEffect,
    effect_class,
    estimate_effect,
    estimate_in_solution,
)
from isthmus.results.solution import Solution
from isthmus.statistics import Kind, Moments, Schema
from isthmus.tables import ExpectationMaximisation, Missing, Source, TimeUnit, as_source
from isthmus.tables.dispatch import knows_kinds
from isthmus.verbs.arguments import as_read, check_kinds, check_missing
from isthmus.verbs.notes_rows import RowTable, notes_on_answers
from isthmus.verbs.notes_shapes import limited_outcome


def effect(
    data: object,
    graph: DAG | CPDAG | PDAG | Solution,
    cause: str,
    effect: str,
    *,
    hidden: Collection[str] = (),
    change: Sequence[Level] | None = None,
    outcome: Level | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
    clusters: str | Sequence[object] | None = None,
) -> EffectEstimate:
    """Estimate the total effect of one variable on another in a given causal graph.

    If the graph has hidden variables, the effect is identified in the first of these ways that
    the graph allows, and the answer names it:

    - adjustment for observed variables (back-door),
    - observed mediators of the whole effect (front-door),
    - instruments, for continuous variables with linear effects.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`. Columns that are not nodes of the graph are not used.
    graph
        The causal graph: a DAG, which may have hidden nodes; an equivalence class, for which the
        answer is a range if its members disagree; or a solution, for its class, its knowledge
        and the way in which it read the columns.
    cause, effect
        Names of two observed variables.
    hidden
        Names of nodes of the graph that were not observed.
    change, outcome
        Levels of discrete variables, as for `Solution.effect`.
    kinds, missing
        As for :func:`~isthmus.learn`. ``kinds`` has precedence over a solution.
    groups
        Name of the column of groups of a table, as for :func:`~isthmus.learn`: the effect is then
        that within groups. For continuous variables. By default that of a solution.

    Returns
    -------
    EffectEstimate
        The effect with its standard error and interval, and in ``alternatives`` the way in which
        it was identified. If there is none of the three ways, ``identified`` is False.

    Examples
    --------
    >>> import numpy as np
    >>> import isthmus as ist
    >>> rng = np.random.default_rng(0)
    >>> genes, noise = rng.normal(size=(2, 5000))
    >>> smoking = genes + rng.normal(size=5000)
    >>> tar = 0.5 * smoking + rng.normal(size=5000)
    >>> table = {"smoking": smoking, "tar": tar, "lung": 2 * genes + 0.8 * tar + noise}
    >>> edges = [("smoking", "tar"), ("tar", "lung"), ("genes", "smoking"), ("genes", "lung")]
    >>> dag = ist.DAG(["genes", "smoking", "tar", "lung"], edges)
    >>> answer = ist.effect(table, dag, "smoking", "lung", hidden=["genes"])
    >>> print(f"{answer.value:.2f} ± {answer.standard_error:.3f}", answer.alternatives[0].through)
    0.37 ± 0.015 ('tar',)
    """
    check_kinds(kinds)
    solution: Solution | None = None
    scores: tuple[str, ...] = ()
    if isinstance(graph, Solution):
        solution, graph = graph, effect_class(graph)
        data, kinds = as_read(data, solution.reading, graph.nodes, kinds)
        if groups is None and not knows_kinds(data):
            groups = getattr(solution.statistics_kept, "groups", None)
        scores = scored_nodes(solution.reading.network_maps(solution.dag.nodes))
    observed = _observed(graph, (cause, effect), hidden)
    source = as_source(
        data, kinds=kinds, columns=observed, missing=check_missing(missing), groups=groups
    )
    if isinstance(clusters, str) and clusters not in observed:
        if knows_kinds(data):
            raise MismatchError(
                f"clusters={clusters!r} names a column of a table. Give the table itself, or one "
                "label per row: clusters=[...]."
            )
        marked = {**(kinds or {}), clusters: Kind.DISCRETE}
        source = as_source(
            data,
            kinds=marked,
            columns=(*observed, clusters),
            missing=check_missing(missing),
            groups=groups,
        )
    schema = source.schema().without_features()
    absent = [v for v in observed if v not in schema.names]
    if absent:
        raise SchemaError(
            f"The table has no column for {listed(absent)}. If they were not observed, and the "
            f"graph is a DAG, say so: hidden={absent!r}."
        )
    part = schema.subset(observed)
    moments = None if part.of_kind(Kind.DISCRETE) else source.moments(observed)
    known = EffectData(part, source, moments)
    known = known._replace(clusters=known.numbered(clusters))
    if moments is None and source.within_groups:
        raise MismatchError(
            f"Effects within groups are estimated for continuous variables, and "
            f"{listed(part.of_kind(Kind.DISCRETE))} are discrete.",
            "Read columns of zeros and ones as numbers: kinds={'column': 'continuous'}. The effect "
            "is then that of a linear model.",
        )
    if moments is None and known.rows() is None:
        raise MismatchError(
            "Effects with discrete variables are computed from complete rows in memory. Bring the "
            "table into memory, and leave out rows with missing values: missing=DropRows()."
        )
    scored = tuple(v for v in scores if v in (cause, effect))
    comparison = replace(compared(part, cause, effect, change, outcome), scored=scored)
    if not isinstance(graph, DAG):
        in_class = (
            partial(estimate_effect, graph, None)
            if solution is None
            else partial(estimate_in_solution, solution)
        )
        found = in_class(cause, effect, known.adjusted(cause, effect, comparison), comparison)
        return known.with_notes(found)
    given = graph.parents(cause)
    whole = partial(EffectEstimate, cause, effect, comparison=comparison)
    if effect not in graph.descendants(cause):
        nothing = PossibleEffect(given, (), 0.0, 0.0, 0)
        return whole(
            identified=True, alternatives=(nothing,), has_path=False, zero=ZeroEffect.GRAPH
        )
    route = identify(graph, cause, effect, observed)
    if route is None:
        return whole(identified=False, alternatives=(), reason=_NOT_IDENTIFIED)
    if route.method is Identification.ADJUSTMENT:
        adjust = known.adjusted(cause, effect, comparison)
        own = PossibleEffect(given, route.adjustment, *adjust(cause, effect, route.adjustment))
    else:
        values = known.indirect(cause, effect, route, comparison)
        own = PossibleEffect(
            given, route.adjustment, *values, method=route.method, through=route.through
        )
    return known.with_notes(whole(identified=True, alternatives=(own,)))


_NOT_IDENTIFIED = (
    "hidden common causes can neither be adjusted for nor avoided by mediators (front-door) or "
    "instruments. Measure a common cause or a mediator, or give bounds by reasoning about how "
    "strong the hidden causes can be."
)


def _observed(graph: object, pair: tuple[str, str], hidden: Collection[str]) -> tuple[str, ...]:
    """Return the observed nodes of a graph; raise if names are not as they should be."""
    if not isinstance(graph, DAG | CPDAG | PDAG):
        raise ArgumentError(
            f"graph must be a DAG, a CPDAG, a PDAG or a solution; {a_type(graph)} was given."
        )
    if isinstance(hidden, str):
        raise ArgumentError(f"hidden must be a list of names: hidden=[{hidden!r}].")
    for name in (*pair, *hidden):
        graph.index(name)  # raises for a name that is not a node
    if hidden and not isinstance(graph, DAG):
        raise MismatchError("hidden is for a DAG; in an equivalence class all nodes are observed.")
    unseen = [v for v in pair if v in hidden]
    if unseen:
        raise ArgumentError(f"{listed(unseen)} cannot be hidden: cause and effect are observed.")
    return tuple(v for v in graph.nodes if v not in hidden)


def incomplete_columns(source: Source) -> RowsOf | None:
    """Return a function that returns columns with NaN, if the likelihood was maximised."""
    if not isinstance(source.missing, ExpectationMaximisation):
        return None
    values = source.incomplete_rows()
    if values is None:
        return None
    schema = source.schema()
    return lambda names: values[:, list(schema.indices(names))]


@final
class EffectData(NamedTuple):
    """What effects are computed from.

    Attributes
    ----------
    schema
        The variables.
    source
        Where the rows are; None if they are not known any more.
    moments
        Moments, if all variables are continuous.
    clusters
        The cluster of each row, numbered from zero; None if rows are independent.
    """

    schema: Schema
    source: Source | None
    moments: Moments | None
    clusters: Integers | None = None

    def rows(self) -> RowsOf | None:
        """Return a function that returns columns, if there are complete rows in memory."""
        source = self.source
        if source is None or not source.in_memory or source.has_missing:
            return None
        return source.selected

    def numbered(self, clusters: str | Sequence[object] | None) -> Integers | None:
        """Return the number of the cluster of each row.

        Parameters
        ----------
        clusters
            A column of the source, or one label per row; None for independent rows.
        """
        if clusters is None:
            return None
        rows = self.rows()
        if rows is None or self.source is None:
            raise MismatchError(
                "Standard errors by clusters are computed from complete rows in memory. Give the "
                "table, without missing values: isthmus.effect(table, graph, cause, effect, "
                "clusters=..., missing=isthmus.DropRows())."
            )
        if isinstance(clusters, str):
            if clusters not in self.source.schema().names:
                raise SchemaError(
                    f"There is no column {clusters!r} for clusters here. Give the table that has "
                    f"it, isthmus.effect(table, graph, cause, effect, clusters={clusters!r}), or "
                    "one label per row."
                )
            labels: NDArray[Any] = rows((clusters,))[:, 0]
        else:
            labels = np.asarray(clusters)
        numbers: Integers = np.unique(labels, return_inverse=True)[1].ravel().astype(np.int64)
        n = len(rows(self.schema.names[:1]))
        if len(numbers) != n:
            raise ArgumentError(
                f"clusters must have one label per row: there are {counted(n, 'row')} and "
                f"{counted(len(numbers), 'label')}."
            )
        check_clusters(numbers)
        return numbers

    def with_notes(self, estimate: EffectEstimate) -> EffectEstimate:
        """Add which rows were dropped, and what the others say against the standard error."""
        if self.source is None or estimate.zero is not None:
            return estimate
        estimate = replace(estimate, notes=self.source.reading().remarks)
        rows = RowTable.of(self.source)
        if rows is not None and rows.groups is None:
            limit = limited_outcome(rows, estimate.effect)
            estimate = replace(estimate, notes=(*estimate.notes, *limit))
        if self.clusters is not None:
            return estimate
        adjusted = {v for each in estimate.alternatives for v in each.adjustment}
        notes = notes_on_answers(self.source, {estimate.cause, estimate.effect, *adjusted})
        return replace(estimate, notes=(*estimate.notes, *notes))

    def adjusted(self, cause: str, effect: str, comparison: EffectComparison) -> Adjusted:
        """Return a function that computes adjusted effects."""
        if self.moments is not None and not self.schema.of_kind(Kind.DISCRETE):
            return partial(
                adjusted_effect,
                self.moments.without_features(),
                rows=self.rows(),
                clusters=self.clusters,
                incomplete=None if self.source is None else incomplete_columns(self.source),
            )
        schema, kept = self.schema.without_features(), self._kept()
        levels = schema[cause].levels
        if not levels and schema[effect].levels:
            raise MismatchError(
                f"`effect` of the continuous variable {cause!r} on the discrete {effect!r} depends "
                "on where it starts.",
                f"Compare solution.fit().query({effect!r}, do={{{cause!r}: value}}) for two "
                "values; each answer has its sampling error.",
            )

        def adjusted(first: str, second: str, given: tuple[str, ...]) -> Estimate:
            names = (first, second, *given)
            rows = kept(names)
            if len(rows) and np.ptp(rows[:, 1]) == 0:
                raise DataError(
                    f"Column {second!r} is constant: it has the same value in all rows, so there "
                    "is no effect to estimate."
                )
            if comparison.change is None:
                return slope_effect(schema.subset(names), rows, self.clusters)
            codes = _codes(schema, cause, effect, comparison)
            return standardised_effect(schema.subset(names), rows, *codes, self.clusters)

        return adjusted

    def indirect(
        self, cause: str, effect: str, route: Route, comparison: EffectComparison
    ) -> Estimate:
        """Return an effect by mediators or by instruments."""
        if self.clusters is not None:
            raise MismatchError(
                f"Standard errors by clusters are for effects by adjustment, and this one is "
                f"identified by the {route.method.value}. Leave out clusters."
            )
        names = (cause, effect, *route.through, *route.adjustment)
        schema = self.schema.subset(names)
        discrete = schema.of_kind(Kind.DISCRETE)
        front_door = route.method is Identification.FRONT_DOOR
        if not discrete:
            assert self.source is not None
            moments = self.moments or self.source.moments(names)
            if front_door:
                return front_door_effect(moments, cause, effect, route.through, self.rows())
            return instrument_effect(
                moments, cause, effect, route.through, route.adjustment, self.rows()
            )
        numbers = [v for v in schema.of_kind(Kind.CONTINUOUS) if v != effect]
        if front_door and not numbers:
            rows = self._kept()(names)
            return discrete_front_door(schema, rows, *_codes(schema, cause, effect, comparison))
        where = "the front-door criterion" if front_door else "instruments"
        mixed = numbers if front_door else discrete
        raise MismatchError(
            f"Effects by {where} are estimated if all of {list(names)} are "
            f"{'continuous, or all discrete' if front_door else 'continuous'}, and {listed(mixed)} "
            f"{'are not' if len(mixed) > 1 else 'is not'}.",
            "Read columns of zeros and ones as numbers: kinds={'column': 'continuous'}. The effect "
            "is then that of a linear model.",
        )

    def _kept(self) -> RowsOf:
        rows = self.rows()
        if rows is not None:
            return rows
        again = "pass {} with the solution to isthmus.effect, or learn again from {}"
        if self.source is None:
            why = "this solution has no rows: files and copies of solutions do not keep them"
            what = f"{again.format('the table', 'it').capitalize()}."
        elif not self.source.in_memory:
            why = "this solution was learned from a table that is not in memory"
            what = f"Read it into a data frame, and {again.format('that', 'it')}."
        else:
            why = "some values of the table are missing"
            what = (
                f"Use the rows without missing values: {again.format('the table', 'it')}, both "
                "with missing=isthmus.DropRows(). Or compare solution.fit().query(effect, "
                "do={cause: level}) for two levels, which uses all rows."
            )
        raise MismatchError(
            f"`effect` with discrete variables is computed from complete rows, and {why}.", what
        )


def _codes(
    schema: Schema, cause: str, effect: str, comparison: EffectComparison
) -> tuple[tuple[int, int], int | None]:
    """Return the codes of the levels that are compared, and of the outcome."""
    assert comparison.change is not None
    a, b = (schema[cause].levels.index(level) for level in comparison.change)
    outcome = comparison.outcome
    return (a, b), None if outcome is None else schema[effect].levels.index(outcome)


def compared(
    schema: Schema, cause: str, effect: str, change: Sequence[Level] | None, outcome: Level | None
) -> EffectComparison:
    """Return which levels an effect compares; raise if they must be named, or do not exist."""
    if cause == effect:
        raise GraphError(f"Cause and effect are the same node, {cause!r}; name two.")
    levels, others = schema[cause].levels, schema[effect].levels
    for name in (cause, effect):
        if len(schema[name].levels) == 1:
            raise DataError(
                f"Column {name!r} is constant: all of its rows have {schema[name].levels[0]!r}, so "
                "there is no effect to estimate."
            )
    if not levels and change is not None:
        raise ArgumentError(
            f"{cause!r} is continuous, so its effect is per unit. Leave out change, and multiply."
        )
    if not others and outcome is not None:
        raise ArgumentError(f"{effect!r} is continuous and has no levels. Leave out outcome.")
    if levels and change is None and len(levels) != 2:
        raise ArgumentError(
            f"{cause!r} has {counted(len(levels), 'level')}. Name the two to compare: "
            f"change=({levels[0]!r}, {levels[-1]!r})."
        )
    if others and outcome is None and len(others) != 2:
        raise ArgumentError(
            f"{effect!r} has {counted(len(others), 'level')}. Name the one whose probability is "
            f"asked for: outcome={others[-1]!r}."
        )
    pair = tuple(levels if change is None else change)
    for level in pair:
        if level not in levels:
            raise SchemaError(f"{level!r} is not one of the levels of {cause!r}: {levels!r}.")
    if levels and (len(pair) != 2 or pair[0] == pair[1]):
        raise ArgumentError(f"change must be two different levels of {cause!r}; got {change!r}.")
    if outcome is not None and outcome not in others:
        raise SchemaError(f"{outcome!r} is not one of the levels of {effect!r}: {others!r}.")
    event = others[1] if others and outcome is None else outcome
    return EffectComparison((pair[0], pair[1]) if levels else None, event)
