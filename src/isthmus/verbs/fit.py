"""Estimate the parameters of a given graph from data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast, final

import numpy as np
from numpy.random import Generator

from isthmus.arrays import Floats
from isthmus.errors import DataError, NotesWarning, warn
from isthmus.graphs import DAG
from isthmus.networks import Network
from isthmus.networks.completion import Completion
from isthmus.options import check_pseudo_count
from isthmus.results import Reading, StructuralEMDetails
from isthmus.scores.criterion import AvailableCasesScore, ExpectedScore
from isthmus.searches.base import SearchResult
from isthmus.statistics import Kind
from isthmus.statistics.coded import CodedRows, as_codes, histogram
from isthmus.statistics.fitting import probabilities
from isthmus.statistics.incomplete import ExpectedCounts, IncompleteCounts
from isthmus.tables import Missing, StructuralEM, TimeUnit, as_source
from isthmus.verbs.arguments import AnySearch, as_read, check_dag, check_kinds, check_missing
from isthmus.verbs.kept import fit_network
from isthmus.verbs.prepare import Problem
from isthmus.watch import Watch


def fit(
    data: object,
    dag: DAG,
    *,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
    pseudo_count: float = 1.0,
    curves: bool = True,
) -> Network:
    """Estimate the parameters of a network with a given graph.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`. Columns that are not nodes of the graph are not used.
    dag
        The graph.
    kinds
        How to read some columns, as for :func:`~isthmus.learn`.
    missing
        How to handle missing values: `DropRows`, `MissingAsLevel` or
        `ExpectationMaximisation`; by default they are refused.
    groups
        Name of the column of groups of a table, as for :func:`~isthmus.learn`: coefficients are
        then those within groups. For tables of continuous columns.
    pseudo_count
        Weight of the prior of discrete and mixed variables, in rows; 0 for maximum likelihood.
    curves
        Whether effects of continuous parents may be curved and interact, where that pays. It
        needs the rows in memory, without groups, and of mixed tables without missing values;
        otherwise effects are straight.
    """
    check_pseudo_count(pseudo_count)
    check_kinds(kinds)
    graph = check_dag(dag)
    source = as_source(
        data, kinds=kinds, columns=graph.nodes, missing=check_missing(missing), groups=groups
    )
    network = fit_network(source, graph, pseudo_count, curves=curves)
    if network.notes:
        warn(NotesWarning(network.notes))
    return replace(network, maps=source.reading().network_maps(graph.nodes))


def fit_as_read(
    data: object,
    dag: DAG,
    reading: Reading,
    pseudo_count: float,
    *,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
    curves: bool = True,
) -> Network:
    """Estimate parameters, with columns of the kinds that they had when the graph was learned.

    Parameters
    ----------
    data, dag, pseudo_count, kinds, missing, groups, curves
        As for :func:`fit`.
    reading
        How columns were read. A source and statistics know their kinds.
    """
    data, kinds = as_read(data, reading, dag.nodes, kinds)
    options: dict[str, Any] = {"kinds": kinds, "missing": missing, "groups": groups}
    network = fit(data, dag, pseudo_count=pseudo_count, curves=curves, **options)
    return replace(network, maps={**network.maps, **reading.network_maps(dag.nodes)})


# --- Structural expectation-maximisation: graphs of discrete variables with missing values ------

_FIRST_PSEUDO_COUNT = 1.0
_PSEUDO_COUNT = 1e-3
"""Per table: rows that are complete for a family need not have all cells that others have."""
_PASSES = 5
"""Maximum number of iterations for the parameters of a graph."""
_GAIN = 0.5
"""Increase of the log-likelihood below which the next graph is learned."""
_PATIENCE = 2
"""Stop after this many graphs without a better score: the next differ by the noise of draws."""


First: TypeAlias = Callable[[Watch], SearchResult]


@final
@dataclass(frozen=True, eq=False)
class _Network:
    """A graph with parameters, and the expectations that follow from them."""

    dag: DAG
    score: float
    log_likelihood: float
    expected: ExpectedCounts


@final
class StructuralEMSearch:
    """Searches again and again, on expected counts given the graph before.

    Parameters
    ----------
    problem
        A problem with the objective of incomplete rows.
    first
        The search for the graph to start with.
    rng
        Random numbers, the same as those of `first`.
    """

    def __init__(self, problem: Problem, search: AnySearch, first: First, rng: Generator) -> None:
        # `prepare` gathers these for all strategies that complete rows.
        self._options = cast(StructuralEM, problem.source.missing)
        self._statistics = cast(IncompleteCounts, problem.statistics)
        self._base = cast(AvailableCasesScore, problem.score).base
        self._search = search
        self._first = first
        self._rng = rng
        self._nodes = problem.objective.nodes
        self._knowledge = problem.constraints
        self._end = ""
        self._converged = True
        self._scores: list[float] = []
        self.network: _Network | None = None
        statistics = self._statistics
        self._sizes = statistics.schema.cardinalities
        missing = np.logical_not(statistics.observed.all(axis=0))
        often = (
            np.ones(len(missing), np.int64) if statistics.weights is None else statistics.weights
        )
        self._incomplete, place = np.unique(
            statistics.codes[:, missing], axis=1, return_inverse=True
        )
        self._weights = np.bincount(place.ravel(), often[missing]).astype(np.int64)
        whole = CodedRows(as_codes(statistics.codes[:, ~missing], self._sizes), often[~missing])
        self._whole = whole.distinct(self._sizes)

    @classmethod
    def of(
        cls, problem: Problem, search: AnySearch, first: First, rng: Generator
    ) -> StructuralEMSearch | None:
        """Return a search if missing values are to be completed, otherwise None."""
        source = problem.source
        if source.missing is None or not source.missing.completes or not source.has_missing:
            return None
        return cls(problem, search, first, rng)

    def completed(self, problem: Problem) -> Problem:
        """Return the problem with the expected counts of the best graph."""
        best = self.network
        if best is None:
            remark = "Stopped before rows were completed: the graph is that of AvailableCases()."
            reading = replace(problem.reading, remarks=(*problem.reading.remarks, remark))
            return replace(problem, reading=reading)
        score = ExpectedScore(self._base)
        objective = score.bind(best.expected)
        return replace(problem, score=score, statistics=best.expected, objective=objective)

    def __call__(self, watch: Watch) -> SearchResult:
        """Return the graph with the highest score of the observed values."""
        watch.suffix = ", for a graph to start with"
        result = self._first(watch)
        with watch.until_stopped():
            if not watch.stopped:
                self._iterate(DAG.from_parents(self._nodes, result.parents), watch)
        if self.network is None:
            return replace(
                result, details=StructuralEMDetails((), None), gap=None, conclusion=self._end
            )
        details = StructuralEMDetails(tuple(self._scores), self.network.log_likelihood)
        parents = self.network.dag.parent_indices()
        return SearchResult(
            parents,
            self.network.score,
            details,
            converged=self._converged,
            conclusion=self._end,
        )

    def _iterate(self, dag: DAG, watch: Watch) -> None:
        tables = self._tables(dag, None)
        without = 0
        for iteration in range(1, self._options.max_iterations + 1):
            best = float("nan") if self.network is None else self.network.score
            watch.suffix = f", iteration {iteration}"
            watch.poll("completing rows", best)
            try:
                completion = Completion(dag, self._sizes.tolist(), self._incomplete, self._weights)
            except DataError as too_large:
                self._end, self._converged = str(too_large), False
                return
            network = self._expect(dag, tables, completion, watch)
            self._scores.append(network.score)
            if self.network is None or network.score > self.network.score:
                self.network, without = network, 0
            else:
                without += 1
            if without == _PATIENCE:
                self._end = f"the last {_PATIENCE} graphs of {iteration} have a lower score."
                return
            objective = ExpectedScore(self._base).bind(network.expected)
            found = self._search.search(objective, self._knowledge, self._rng, watch)
            watch.poll()
            learned = DAG.from_parents(self._nodes, found.parents)
            if learned.cpdag() == dag.cpdag():
                self._end = f"completing the rows leads to the same graph, iteration {iteration}."
                return
            dag, tables = learned, self._tables(learned, network.expected)
        self._end, self._converged = f"stopped after max_iterations={iteration} graphs.", False

    def _tables(self, dag: DAG, expected: ExpectedCounts | None) -> list[Floats]:
        """First parameters of a graph."""
        families = _families(dag)
        if expected is None:
            counts = map(self._statistics.table, families)
            return [probabilities(table, _FIRST_PSEUDO_COUNT) for table in counts]
        return [probabilities(expected.expected(f), _PSEUDO_COUNT) for f in families]

    def _expect(
        self, dag: DAG, tables: Sequence[Floats], completion: Completion, watch: Watch
    ) -> _Network:
        """Estimate the parameters of a graph, then complete the rows."""
        log_likelihood = -np.inf
        for _ in range(_PASSES):
            before = log_likelihood
            log_likelihood, counts, _ = self._pass(dag, tables, completion, 0, watch)
            tables = [probabilities(table, _PSEUDO_COUNT) for table in counts]
            if log_likelihood - before < _GAIN:
                break
        draws = self._options.completions
        log_likelihood, counts, rows = self._pass(dag, tables, completion, draws, watch)
        families = dict(zip(_families(dag), counts, strict=True))
        expected = ExpectedCounts(self._statistics, rows, draws, families)
        each = self._base.parameter_price(expected.n)
        prices = self._base.size_penalties(len(self._nodes))
        penalty = sum(
            each * (table.size - table.size // table.shape[-1]) + prices[table.ndim - 1]
            for table in tables
        )
        return _Network(dag, log_likelihood - float(penalty), log_likelihood, expected)

    def _pass(
        self,
        dag: DAG,
        tables: Sequence[Floats],
        completion: Completion,
        draws: int,
        watch: Watch,
    ) -> tuple[float, list[Floats], CodedRows]:
        """Log-likelihood of the observed values, expected counts, and completed rows."""
        log_likelihood = 0.0
        counts = []
        for family, table in zip(_families(dag), tables, strict=True):
            positions = self._statistics.schema.indices(family)
            sizes = self._sizes[list(positions)]
            own = histogram(self._whole.take(positions), sizes).reshape(sizes).astype(np.float64)
            log_likelihood += float(np.sum(own * np.log(table)))
            counts.append(own)
        codes, weights = [self._whole.codes], [self._whole.filled() * draws]
        for number in range(len(completion)):
            batch = completion.batch(number, tables, draws, int(self._rng.integers(2**63)))
            log_likelihood += batch.log_likelihood
            for total, part in zip(counts, batch.counts, strict=True):
                total += part.reshape(total.shape)
            codes.append(as_codes(batch.draws, self._sizes))
            weights.append(np.ones(batch.draws.shape[1], dtype=np.int64))
            watch.poll()
        rows = CodedRows(np.concatenate(codes, axis=1), np.concatenate(weights))
        return log_likelihood, counts, rows


def _families(dag: DAG) -> list[tuple[str, ...]]:
    return [(*dag.parents(node), node) for node in dag.nodes]
