"""The statistics that a solution keeps for fitting and refitting; files never get rows."""

from __future__ import annotations

import json
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from functools import cached_property
from io import BytesIO
from math import inf
from pathlib import Path
from typing import Any, final

import numpy as np

import isthmus.scores
from isthmus.errors import DataWarning, FormatError, MismatchError, MissingValuesError
from isthmus.fitting import fit_gaussian, fit_gp, fit_incomplete, fit_mixed, fit_tables, refine
from isthmus.graphs import DAG, Knowledge
from isthmus.graphs.knowledge import without_others
from isthmus.networks import GaussianNetwork, GPNetwork, Level, Network
from isthmus.networks.column_maps import ColumnMap, scored_nodes
from isthmus.objectives import INDEPENDENCE_TESTS, INDEPENDENT_NOISE, LOCAL_SCORES, LocalScore
from isthmus.objectives.additive import CURVES
from isthmus.results import Solution
from isthmus.results.directions import DECIDED, Edges
from isthmus.results.effects import Adjusted, EffectComparison, EffectEstimate
from isthmus.scores.base import Score
from isthmus.searches.reversals import (
    margins_on_all_pairs,
    margins_on_same_pairs,
    reversal_margins,
    reversal_seconds,
)
from isthmus.statistics import CountPlan, Counts, Kind, Moments, Rows, Summary
from isthmus.statistics.regimes import Regimes
from isthmus.statistics.within import ColumnScales, StandardisedColumns
from isthmus.tables import DropRows, Source, as_source, transformed
from isthmus.verbs.arguments import AnyScore
from isthmus.verbs.defaults import MANY_COLUMNS
from isthmus.verbs.effect import EffectData, compared, incomplete_columns
from isthmus.verbs.notes_rows import notes_on_answers
from isthmus.verbs.prepare import Problem, refuse_back_in_time, refuse_left_to_scores

# --- The part of a saved solution that its methods need: statistics, and which score it was -----

_KINDS: dict[str, type[Moments] | type[Counts]] = {s.described: s for s in (Moments, Counts)}
_HEADER = "evidence.json"
_UNKNOWN = object()


def pack_statistics(
    statistics: Moments | Counts,
    score: object,
    nodes: tuple[str, ...],
    caveat: str | None,
) -> bytes:
    """Return a ZIP archive with the statistics, and a score if its options are plain values."""
    kind = statistics.described
    header = {"nodes": nodes, "caveat": caveat, "statistics": kind, "score": _described(score)}
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        _put(archive, _HEADER, json.dumps(header, ensure_ascii=False).encode())
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "statistics"
            statistics.save(path)
            _put(archive, "statistics", path.read_bytes())
    return buffer.getvalue()


def unpack_statistics(
    content: bytes,
) -> tuple[Moments | Counts, AnyScore | None, tuple[str, ...], str | None]:
    """Return statistics, score, names and caveat from what `pack_statistics` returned."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        header = json.loads(archive.read(_HEADER))
        kind = _KINDS[header["statistics"]]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "statistics"
            path.write_bytes(archive.read("statistics"))
            statistics = kind.load(path)
    caveat = header["caveat"]
    if caveat is not None and not isinstance(caveat, str):
        raise FormatError(f"the caveat is {caveat!r}.")
    score = None if header["score"] is None else _built(header["score"])
    if score is not None and score.needs is not kind:
        raise FormatError(f"{score!r} does not fit {statistics.described}.")
    return statistics, score, tuple(header["nodes"]), caveat


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name), content)


def _described(score: object) -> dict[str, Any] | None:
    """Return the name and the options of one of our scores; None if they are not plain values."""
    name = type(score).__name__
    if not is_dataclass(score) or getattr(isthmus.scores, name, None) is not type(score):
        return None
    options = {f.name: _plain(getattr(score, f.name)) for f in fields(score) if f.init}
    return None if _UNKNOWN in options.values() else {"name": name, "options": options}


def _plain(value: object) -> Any:
    """Return an option as JSON has it: a value, or the name of one of our enumerations with it."""
    name = type(value).__name__
    if isinstance(value, Enum):
        ours = getattr(isthmus.scores, name, None) is type(value)
        return {"enum": name, "value": value.value} if ours else _UNKNOWN
    return value if isinstance(value, (str, int, float, bool, type(None))) else _UNKNOWN


def _built(described: dict[str, Any]) -> AnyScore:
    found = getattr(isthmus.scores, described["name"], None)
    if (
        described["name"] not in isthmus.scores.__all__
        or not isinstance(found, type)
        or not issubclass(found, Score)
    ):
        raise FormatError(f"there is no score called {described['name']!r}.")
    options = {name: _option(value) for name, value in described["options"].items()}
    score: AnyScore = found(**options)
    return score


def _option(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    enum = getattr(isthmus.scores, value["enum"], None)
    if not isinstance(enum, type) or not issubclass(enum, Enum):
        raise FormatError(f"there is no enumeration called {value['enum']!r}.")
    return enum(value["value"])


# --- The statistics that a solution keeps for fitting and refitting ------------------------------

_NONLINEAR = (
    "Learn it with score=GP() and call solution.fit_gp().curve(parent, child) for the effect along "
    "an edge with a 95% band, or learn it with a linear score such as GaussianBIC()."
)
"""What to call for nonlinear effects."""
_OTHER_SCALE = (
    "The graph was learned on normal scores, because columns are skewed or have heavy tails. This "
    "network is one of the columns' own values, whose means and predictions can be far off: for a "
    "network of medians and intervals, learn with transform=NormalScores()."
)
_MARGIN_SECONDS = 10.0
"""Margins of directions are not measured unasked if that is estimated to take longer."""


@final
@dataclass(frozen=True, eq=False)
class LearnedStatistics:
    """The statistics and the local score behind a solution.

    Attributes
    ----------
    statistics
        Statistics of the data.
    nodes
        Names of the variables of the graph.
    score
        The score, or None if the graph was learned with a loss or from rows, which are not kept.
    learn_again
        Learns from other moments with the same score, search, knowledge and seed; None if the
        solution has a PAG, or was loaded from a file.
    fit_caveat
        How the network of `fit` differs from the learned model; None if it does not.
    source
        Where the data are: for mixed tables, whose parameters cannot be computed from moments, and
        for tables in memory, whose rows give robust standard errors. It is left out of pickles and
        copies, so that rows stay where they are.
    maps
        What a transform did to the numbers of some columns.
    tested
        Whether tests have decided on directions, and no score.
    max_parents
        Maximum number of parents of a node in the search; None for no limit.
    groups
        The column of groups of the table; None if there is none, or if it is not known any more.
    explained
        Whether a larger model explains edges that the score would have: then margins are over
        graphs with the same adjacent pairs.
    lines
        The score without curves, by which directions must hold, too; None if there is no need. It
        is left out of copies, as the score with curves is.
    on_scores
        Whether `learn` replaced columns by normal scores without being asked, so that the network
        of `fit` is one of other columns than the graph was learned from.
    """

    statistics: Summary
    nodes: tuple[str, ...]
    score: AnyScore | None
    learn_again: Callable[[Moments], Solution] | None
    fit_caveat: str | None = None
    source: Source | None = None
    maps: Mapping[str, ColumnMap] = field(default_factory=dict)
    tested: bool = False
    max_parents: int | None = None
    groups: str | None = None
    explained: bool = False
    lines: LocalScore | None = None
    on_scores: bool = False

    def __getstate__(self) -> dict[str, Any]:
        left_out = {"local", "lines"}
        return {k: v for k, v in self.__dict__.items() if k not in left_out} | {"source": None}

    @classmethod
    def of(
        cls,
        problem: Problem,
        learn_again: Callable[[Moments], Solution] | None = None,
        max_parents: int | None = None,
        *,
        explained: bool = False,
        lines: LocalScore | None = None,
        on_scores: bool = False,
    ) -> LearnedStatistics:
        """Extract from a solved problem what the methods of a solution need."""
        score, statistics = problem.score, problem.statistics.without_rows()
        has_rows = statistics is not problem.statistics
        local = None if has_rows and not score.of_columns else LOCAL_SCORES.of(problem.objective)
        gives = problem.plain_score.gives
        linear = not {INDEPENDENT_NOISE, CURVES}.isdisjoint(gives)
        curves = score.basis is not None and not linear
        nonlinear = curves or (has_rows and not score.of_columns)
        source = problem.source.without_features()
        if CURVES in gives:  # what follows from the graph is computed by lines
            own: Moments | None = statistics.as_moments()
            statistics = statistics if own is None else own.without_features()
        evidence = cls(
            statistics,
            problem.objective.nodes,
            None if local is None or CURVES in gives else score,
            learn_again,
            f"The graph was learned with {score!r}, and its parameters are those of a linear "
            "Gaussian network, which does not include nonlinear effects."
            if nonlinear
            else None,
            source if source.in_memory or problem.schema.of_kind(Kind.DISCRETE) else None,
            problem.reading.maps,
            not {INDEPENDENCE_TESTS, INDEPENDENT_NOISE}.isdisjoint(problem.objective.capabilities),
            max_parents,
            source.group_column,
            explained,
            lines,
            on_scores,
        )
        evidence.__dict__["local"] = local  # it has computed many families already
        return evidence

    @property
    def rows(self) -> int:
        """Number of rows of the data."""
        return self.statistics.number_of_rows

    @cached_property
    def local(self) -> LocalScore | None:
        """The local score of the statistics, if there is a score."""
        if self.score is None or isinstance(self.statistics, ColumnScales):
            return None
        return LOCAL_SCORES.of(self.score.bind(self.statistics))

    def standardised(self) -> Solution:
        """Learn again with the same options from columns scaled to variance one."""
        moments: Moments | None = self.statistics.as_moments()
        if moments is None:
            raise MismatchError(
                "Columns are standardised from moments of all rows, and this graph was learned "
                f"from {self.statistics.described}."
            )
        if moments.schema.has_features or moments.schema.of_kind(Kind.DISCRETE):
            raise MismatchError("Only tables of plain continuous columns can be standardised.")
        if self.learn_again is None:
            raise MismatchError(
                "This solution was loaded from a file, which does not say how to learn it again. "
                "Call learn with the statistics or the data."
            )
        scatter = moments.scatter()
        deviation = np.sqrt(np.diagonal(scatter) / moments.n)
        scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 0)
        zeros = np.zeros(len(deviation))
        gram = scatter * scale[:, None] * scale[None, :]
        standardised = replace(moments, shift=zeros, sums=zeros, gram=gram)
        with warnings.catch_warnings():
            # The user asked for standardised columns; the notes of the result still mention them.
            warnings.simplefilter("ignore", DataWarning)
            return self.learn_again(standardised)

    def to_bytes(self, dag: DAG | None) -> bytes:
        """Return statistics, score and caveat, for a file; nothing for incomplete rows.

        Without a DAG, effects are all that can be computed: from moments of continuous variables.
        """
        if dag is None:
            moments: Moments | None = self.statistics.as_moments()
            if moments is None or moments.schema.of_kind(Kind.DISCRETE):
                return b""
            return pack_statistics(moments, None, self.nodes, self.fit_caveat)
        kept = self.statistics.for_file(dag)
        if kept is None:
            return b""
        return pack_statistics(kept, self.score, self.nodes, self.fit_caveat)

    def fit(
        self, dag: DAG, data: object | None, pseudo_count: float, *, curves: bool = True
    ) -> Network:
        """Estimate the parameters of a network with this graph."""
        network = self._fit(dag, data, pseudo_count, curves=curves)
        if self.on_scores and dag.edges:
            network = replace(network, notes=(*network.notes, _OTHER_SCALE))
        return network

    def _fit(self, dag: DAG, data: object | None, pseudo_count: float, *, curves: bool) -> Network:
        network = None if data is not None else self.statistics.fit(dag, pseudo_count)
        if network is not None:
            return _noted(refined(network, self.source, curves=curves), self.source)
        if data is not None and self.maps:
            data = transformed(data, self.maps).table
        schema = self.statistics.schema.without_features()
        source = self.source
        if data is not None and self.groups is not None and not isinstance(data, Source):
            units = {v.name: v.time_unit for v in schema.variables if v.time_unit}
            kinds = {v.name: v.kind for v in schema.variables} | units
            source = as_source(data, kinds=kinds, columns=dag.nodes, groups=self.groups)
        elif data is not None:
            source = as_source(data, schema=schema)
        if source is None:
            raise MismatchError(
                f"The parameters cannot be computed from {self.statistics.described}, and this "
                "solution does not have its data (any more). Give them: solution.fit(data)."
            )
        try:
            return fit_network(source, dag, pseudo_count, curves=curves)
        except MissingValuesError as refusal:
            raise MissingValuesError(
                "The table has missing values. Call solution.fit() without data to use the "
                "statistics that the graph was learned from, or give a table of complete rows."
            ) from refusal

    def fit_gp(self, dag: DAG) -> GPNetwork:
        """Fit the curves of a Gaussian-process network with this graph."""
        moments: Moments | None = self.statistics.as_moments()
        if moments is not None and moments.schema.has_features:
            return fit_gp(moments, dag)
        raise MismatchError(
            "The curves of a Gaussian-process network are fitted from moments of Chebyshev "
            "polynomials, and this graph was learned from other statistics. Learn it with "
            "score=GP(), or call isthmus.fitting.fit_gp."
        )

    def adjusted_effects(
        self,
        cause: str,
        effect: str,
        change: Sequence[Level] | None,
        outcome: Level | None,
        clusters: str | Sequence[object] | None = None,
    ) -> tuple[Adjusted, EffectComparison, Callable[[EffectEstimate], EffectEstimate]]:
        """Return what computes adjusted effects, what they compare, and what adds notes."""
        schema = self.statistics.schema
        if self.fit_caveat is not None:
            raise MismatchError(
                "`effect` is a regression coefficient, and this graph was learned with a nonlinear "
                f"model. {_NONLINEAR}"
            )
        if isinstance(self.statistics, Regimes):
            raise MismatchError(
                "`effect` is computed from rows in which nothing was set from outside, and this "
                "graph was learned from several regimes. Give the rows of the regimes without "
                "targets: isthmus.effect(table, solution, cause, effect). Or compare "
                "solution.fit().query(effect, do={cause: value}) for two values, which uses all "
                "rows."
            )
        if not schema.of_kind(Kind.DISCRETE) and self.statistics.as_moments() is None:
            raise MismatchError(
                "`effect` is computed from moments of all rows, and this graph was learned from "
                f"{self.statistics.described}. Compare solution.fit().query(target, do={{cause: "
                "value}) for different values; each answer has its sampling error."
            )
        moments: Moments | None = self.statistics.as_moments()
        scored = tuple(v for v in scored_nodes(self.maps) if v in (cause, effect))
        comparison = replace(compared(schema, cause, effect, change, outcome), scored=scored)
        known = EffectData(schema, self.source, moments)
        known = known._replace(clusters=known.numbered(clusters))
        return known.adjusted(cause, effect, comparison), comparison, known.with_notes

    def strengths(self, dag: DAG) -> dict[tuple[str, str], float]:
        """Return for each edge by how much the score decreases without it."""
        local = self.local
        if local is None:
            raise MismatchError(
                "Edge strengths are differences of a local score of statistics. This graph was "
                "learned with a loss or from rows, which a solution does not keep, or with a score "
                "that its file could not keep. See solution.details for the weights of edges, or "
                "compare graphs with isthmus.score."
            )
        position = {name: i for i, name in enumerate(local.nodes)}
        strengths = {}
        for child in dag.nodes:
            parents = [position[p] for p in dag.parents(child)]
            full = local.local(position[child], parents)
            for parent in dag.parents(child):
                others = [p for p in parents if p != position[parent]]
                strengths[parent, child] = full - local.local(position[child], others)
        return strengths

    def margins(
        self, dag: DAG, edges: Edges, knowledge: Knowledge, *, patient: bool = False
    ) -> dict[tuple[str, str], float] | None:
        """Return by how much the score decreases if edges point the other way, if that is clear.

        With curves that tell no directions, it is the smaller one of the margins with and without.
        If curves explain pairs that lines join, causes of one effect look unmarried without these
        pairs, so it is not larger than in the best graph of lines among all pairs either.
        """
        local = self.local
        seconds = inf if local is None else reversal_seconds(local, len(edges))
        if local is None or seconds == inf or (seconds > _MARGIN_SECONDS and not patient):
            return None
        known = without_others(knowledge, dag) if self.explained else knowledge
        margins = reversal_margins(local, dag, edges, known, self.max_parents, patient=patient)
        if self.lines is None:
            return margins
        others = [
            margins_on_same_pairs(self.lines, dag, edges, known, self.max_parents, patient=patient)
        ]
        if self.explained:
            others.append(
                margins_on_all_pairs(
                    self.lines, edges, knowledge, self.max_parents, patient=patient
                )
            )
        for also in others:
            margins = {
                edge: margin if margin == inf else min(margin, also.get(edge, margin))
                for edge, margin in margins.items()
                if edge in also or margin < DECIDED or margin == inf
            }
        return margins


def statistics_kept_from_bytes(content: bytes, maps: Mapping[str, ColumnMap]) -> LearnedStatistics:
    """Return what a solution in a file keeps, without what learns again."""
    statistics, score, nodes, caveat = unpack_statistics(content)
    return LearnedStatistics(statistics, nodes, score, None, caveat, maps=maps)


def refined(network: Network, source: Source | None, *, curves: bool) -> Network:
    """Return a network of lines with what only its rows can tell, if they are at hand."""
    if (
        not isinstance(network, GaussianNetwork)
        or network.rows is None
        or source is None
        or not source.in_memory
        or source.group_column is not None
        or len(network.dag.nodes) > MANY_COLUMNS
    ):
        return network
    if source.has_missing:
        incomplete = incomplete_columns(source)
        if incomplete is None:
            return network
        nodes = network.dag.nodes
        return refine(
            network, Rows(source.schema().subset(nodes), incomplete(nodes)), curves=curves
        )
    rows = Rows.gather(source, network.dag)
    return refine(network, rows, curves=curves) if rows.n == network.rows else network


def fit_network(source: Source, dag: DAG, pseudo_count: float, *, curves: bool = True) -> Network:
    """Estimate the parameters of a graph: tables, regressions, or both."""
    return _noted(_fitted(source, dag, pseudo_count, curves=curves), source)


def _noted(network: Network, source: Source | None) -> Network:
    """Return a network whose answers say what is wrong with the rows, and which were dropped."""
    dropped = source is not None and isinstance(source.missing, DropRows)
    remarks = source.reading().remarks if source is not None and dropped else ()
    return replace(network, notes=(*remarks, *notes_on_answers(source, network.dag.nodes)))


def _fitted(source: Source, dag: DAG, pseudo_count: float, *, curves: bool) -> Network:
    refuse_left_to_scores(source, "or fit the graph that learn finds: learn(data, missing=...)")
    refuse_back_in_time(dag, source.schema())
    kinds = {source.schema()[v].kind for v in dag.nodes}
    if kinds == {Kind.DISCRETE}:
        return fit_tables(source.counts(CountPlan.families(dag)), dag, pseudo_count=pseudo_count)
    if kinds == {Kind.CONTINUOUS} and source.in_memory and len(dag.nodes) > MANY_COLUMNS:
        return StandardisedColumns.gather(source, dag).fit(dag, pseudo_count)
    if kinds == {Kind.CONTINUOUS}:
        network = fit_gaussian(source.moments(dag.nodes), dag)
        return refined(network, source, curves=curves)
    incomplete = source.incomplete_rows()
    if incomplete is not None:
        schema = source.schema()
        values = incomplete[:, list(schema.indices(dag.nodes))]
        return fit_incomplete(schema.subset(dag.nodes), values, dag, pseudo_count=pseudo_count)
    try:
        rows = Rows.gather(source, dag)
    except MismatchError as refusal:
        raise MismatchError(
            f"The parameters of mixed variables are fitted from rows. {refusal.fact} Bring the "
            "table into memory, if you may, and fit from that: isthmus.fit(table, dag) or "
            "solution.fit(table)."
        ) from refusal
    return fit_mixed(rows, dag, pseudo_count=pseudo_count, curves=curves)
