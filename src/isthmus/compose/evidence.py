"""The statistics that a solution keeps for fitting and refitting; files never get rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from isthmus.compose.evidence_file import pack_evidence, unpack_evidence
from isthmus.compose.prepare import Problem, refuse_left_to_scores
from isthmus.errors import DataWarning, MismatchError, MissingValuesError
from isthmus.fitting import adjusted_effect, fit_gaussian, fit_gp, fit_mixed, fit_tables
from isthmus.graphs import DAG
from isthmus.models import GPNetwork, Network
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.results import Solution
from isthmus.results.effects import Adjusted
from isthmus.sources import Frame, Interventions, Precomputed, as_source
from isthmus.sources.base import Source
from isthmus.statistics import (
    Counts,
    ExpectedCounts,
    IncompleteCounts,
    Kind,
    Moments,
    Plan,
    Regimes,
    Rows,
    Schema,
    Statistic,
)

_TABLES = (Counts, ExpectedCounts, IncompleteCounts, Regimes)
"""Statistics from which the tables of discrete variables are fitted."""
_NONLINEAR = (
    "Learn it with score=GP() and call solution.fit_gp().curve(parent, child) for the effect along "
    "an edge with a 95% band, or learn it with a linear score such as GaussianBIC()."
)
"""What to call for nonlinear effects."""


@final
@dataclass(frozen=True, eq=False)
class LearnedFrom:
    """The statistics and the local score behind a solution.

    Attributes
    ----------
    statistics
        Statistics of the data.
    nodes
        Names of the variables of the graph.
    local
        The local score, or None if the graph was learned with a loss or from rows: neither is
        kept, as it may hold rows.
    learn_again
        Learns from other moments with the same score, search, knowledge and seed; None if the
        solution was loaded from a file.
    fit_caveat
        How the network of `fit` differs from the learned model; None if it does not.
    source
        Where the data are: for mixed tables, whose parameters cannot be computed from moments, and
        for tables in memory, whose rows give robust standard errors. It is left out of pickles and
        copies, so that rows stay where they are.
    """

    statistics: Statistic
    nodes: tuple[str, ...]
    local: LocalScore | None
    learn_again: Callable[[Moments], Solution] | None
    fit_caveat: str | None = None
    source: Source | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"source": None}

    @classmethod
    def of(cls, problem: Problem, learn_again: Callable[[Moments], Solution]) -> LearnedFrom:
        """Extract from a solved problem what the methods of a solution need."""
        statistics, score = problem.statistics, problem.score
        nonlinear = score.basis is not None or score.needs is Rows
        return cls(
            statistics.without_rows(),
            problem.objective.nodes,
            None if score.needs is Rows else LOCAL_SCORES.of(problem.objective),
            learn_again,
            f"The graph was learned with {score!r}, and its parameters are those of a linear "
            "Gaussian network, which does not include nonlinear effects."
            if nonlinear
            else None,
            problem.source
            if problem.schema.of_kind(Kind.DISCRETE) or isinstance(problem.source, Frame)
            else None,
        )

    def standardised(self) -> Solution:
        """Learn again with the same options from columns scaled to variance one."""
        moments = self.statistics
        if not isinstance(moments, Moments):
            raise MismatchError(
                "Columns are standardised from moments of all rows, and this graph was learned "
                f"from {moments.described}."
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
        standardised = Moments(moments.schema, moments.n, zeros, zeros, gram)
        with warnings.catch_warnings():
            # The user asked for standardised columns; the notes of the result still mention them.
            warnings.simplefilter("ignore", DataWarning)
            return self.learn_again(standardised)

    def to_bytes(self, dag: DAG) -> bytes:
        """Return statistics, score and caveat, for a file; nothing for incomplete rows."""
        statistics = self.statistics
        if isinstance(statistics, Counts):
            # The families of the graph are all that a loaded solution needs.
            statistics = Precomputed(statistics).counts(Plan.families(dag))
        if not isinstance(statistics, Moments | Counts):
            return b""
        recipe = None if self.local is None else self.local.recipe
        score = None if recipe is None else getattr(recipe.bind, "__self__", None)
        return pack_evidence(statistics, score, self.nodes, self.fit_caveat)

    def fit(self, dag: DAG, data: object | None, pseudo_count: float) -> Network:
        """Estimate the parameters of a network with this graph."""
        statistics = self.statistics
        schema = statistics.schema
        continuous = len(schema.of_kind(Kind.CONTINUOUS)) == len(schema)
        if data is None and isinstance(statistics, Regimes) and continuous:
            return fit_gaussian(statistics, dag)
        if data is None and isinstance(statistics, Regimes) and schema.of_kind(Kind.CONTINUOUS):
            raise MismatchError(
                "The parameters of mixed variables are fitted from rows, and those of several "
                "regimes are not kept. Give a table in which no variable was a target: "
                "solution.fit(table)."
            )
        if data is None and isinstance(statistics, _TABLES):
            return fit_tables(statistics, dag, pseudo_count=pseudo_count)
        if data is None and not schema.of_kind(Kind.DISCRETE):
            if isinstance(statistics, Moments):
                return fit_gaussian(statistics, dag)
            raise MismatchError(
                f"Parameters are fitted from moments or counts; this graph was learned from "
                f"{statistics.described}. Learn with a score that needs moments or counts."
            )
        if isinstance(data, Interventions):
            raise MismatchError(
                "A network is fitted to several regimes by the graph that was learned from them: "
                "call solution.fit() without data, or give a table in which no variable was a "
                "target."
            )
        source = self.source if data is None else _read(data, schema)
        if source is None:
            raise MismatchError(
                "The parameters of discrete variables cannot be computed from moments, and this "
                "solution was copied or loaded without its data. Give them: solution.fit(data)."
            )
        try:
            return fit_network(source, dag, pseudo_count)
        except MissingValuesError as refusal:
            raise MissingValuesError(
                "The table has missing values. Call solution.fit() without data to use the "
                "statistics that the graph was learned from, or give a table of complete rows."
            ) from refusal

    def fit_gp(self, dag: DAG) -> GPNetwork:
        """Fit the curves of a Gaussian-process network with this graph."""
        if isinstance(self.statistics, Moments) and self.statistics.schema.has_features:
            return fit_gp(self.statistics, dag)
        raise MismatchError(
            "The curves of a Gaussian-process network are fitted from moments of Chebyshev "
            "polynomials, and this graph was learned from other statistics. Learn it with "
            "score=GP(), or call isthmus.fitting.fit_gp."
        )

    def adjusted_effects(self) -> Adjusted:
        """Return a function that computes adjusted regression coefficients."""
        moments = self.statistics
        if isinstance(moments, Regimes):
            raise MismatchError(
                "Standard errors of effects are those of a regression on the rows of one table, "
                "and there are several regimes here. Compare solution.fit().query(target, "
                "do={cause: value}) for different values."
            )
        discrete = moments.schema.of_kind(Kind.DISCRETE)
        if discrete:
            # A mixed network has no bounds over graphs of one class, as other networks have.
            known = (
                " If the data do not direct the edges between them, the answer is unknown: learn "
                "with knowledge that directs them, for instance knowledge=Knowledge(tiers=[[cause],"
                " [target]])."
            )
            raise MismatchError(
                "`effect` needs continuous columns. Compare solution.fit().query(target, "
                "do={cause: value}) for different values."
                + (known if len(discrete) < len(moments.schema) else "")
            )
        if not isinstance(moments, Moments) and self.fit_caveat is None:
            raise MismatchError(
                "`effect` is computed from moments of all rows, and this graph was learned from "
                f"{moments.described}."
            )
        if self.fit_caveat is not None or not isinstance(moments, Moments):
            raise MismatchError(
                "`effect` is a regression coefficient, and this graph was learned with a nonlinear "
                f"model. {_NONLINEAR}"
            )
        rows = None
        if isinstance(self.source, Frame) and not self.source.has_missing:
            rows = self.source.selected
        return partial(adjusted_effect, moments.without_features(), rows=rows)

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


def evidence_from_bytes(content: bytes) -> LearnedFrom:
    """Return what a solution in a file keeps, without what learns again."""
    statistics, score, nodes, caveat = unpack_evidence(content)
    local = None if score is None else LOCAL_SCORES.of(score.bind(statistics))
    return LearnedFrom(statistics, nodes, local, None, caveat)


def _read(data: object, schema: Schema) -> Source:
    """Read a table as the one that the graph was learned from."""
    if isinstance(data, (Source, Statistic)):
        return as_source(data)
    return Frame(data, schema=schema.without_features())


def fit_network(source: Source, dag: DAG, pseudo_count: float) -> Network:
    """Estimate the parameters of a graph: tables, linear regressions, or both."""
    refuse_left_to_scores(source, "or fit the graph that learn finds: learn(data, missing=...)")
    kinds = {source.schema()[v].kind for v in dag.nodes}
    if kinds == {Kind.DISCRETE}:
        return fit_tables(source.counts(Plan.families(dag)), dag, pseudo_count=pseudo_count)
    if kinds == {Kind.CONTINUOUS}:
        return fit_gaussian(source.moments(dag.nodes), dag)
    try:
        rows = Rows.gather(source, dag)
    except MismatchError as refusal:
        raise MismatchError(
            f"The parameters of mixed variables are fitted from rows. {refusal} "
            "Then call solution.fit(table)."
        ) from refusal
    return fit_mixed(rows, dag, pseudo_count=pseudo_count)
