"""Structural expectation-maximisation: graphs of discrete variables with missing values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast, final

import numpy as np
from numpy.random import Generator

from isthmus.compose.arguments import AnySearch
from isthmus.compose.prepare import Problem
from isthmus.errors import DataError
from isthmus.graphs import DAG
from isthmus.models.completion import Completion
from isthmus.results import StructuralEMDetails
from isthmus.runs import Run
from isthmus.scores.criterion import AvailableCasesScore, ExpectedScore
from isthmus.searches.base import SearchResult
from isthmus.sources import StructuralEM
from isthmus.statistics import ExpectedCounts, IncompleteCounts
from isthmus.statistics.coded import CodedRows, as_codes, histogram
from isthmus.statistics.fitting import probabilities
from isthmus.types import Floats, Work

_FIRST_PSEUDO_COUNT = 1.0
_PSEUDO_COUNT = 1e-3
"""Per table: rows that are complete for a family need not have all cells that others have."""
_PASSES = 5
"""Maximum number of iterations for the parameters of a graph."""
_GAIN = 0.5
"""Increase of the log-likelihood below which the next graph is learned."""
_PATIENCE = 2
"""Stop after this many graphs without a better score: the next differ by the noise of draws."""


@final
@dataclass(frozen=True, eq=False)
class _Network:
    """A graph with parameters, and the expectations that follow from them."""

    dag: DAG
    score: float
    log_likelihood: float
    expected: ExpectedCounts


@final
class StructuralEMRun(Run[SearchResult]):
    """Runs a search again and again, on expected counts given the graph before.

    Parameters
    ----------
    problem
        A problem with the objective of incomplete rows.
    search
        The search for each graph.
    first
        A run of the search, for the graph to start with.
    rng
        Random numbers, the same as those of `first`.
    """

    def __init__(
        self, problem: Problem, search: AnySearch, first: Run[SearchResult], rng: Generator
    ) -> None:
        # `prepare` gathers these for all strategies that complete rows.
        self._options = cast(StructuralEM, problem.source.missing)
        self._statistics = cast(IncompleteCounts, problem.statistics)
        self._base = cast(AvailableCasesScore, problem.score).base
        self._search = search
        self._inner = first
        self._rng = rng
        self._nodes = problem.objective.nodes
        self._knowledge = problem.constraints
        self._text = "a graph to start with"
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
        self._work = self._iterate()

    @classmethod
    def of(
        cls, problem: Problem, search: AnySearch, first: Run[SearchResult], rng: Generator
    ) -> StructuralEMRun | None:
        """Return a run if missing values are to be completed, otherwise None."""
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

    def step(self) -> bool:
        """Search for a few milliseconds, or complete some hundred rows."""
        return next(self._work, self) is self

    def best(self) -> SearchResult:
        """Return the graph with the highest score of the observed values."""
        if self.network is None:
            result = self._inner.best()
            return replace(result, details=StructuralEMDetails((), None), gap=None)
        details = StructuralEMDetails(tuple(self._scores), self.network.log_likelihood)
        parents = self.network.dag.parent_indices()
        return SearchResult(parents, self.network.score, details, converged=self._converged)

    def describe(self) -> tuple[str, float, float | None]:
        """Report what is being done and the best score so far."""
        score = float("nan") if self.network is None else self.network.score
        return self._text, score, None

    def conclusion(self) -> str:
        """Explain why the run stopped."""
        return self._end

    def _iterate(self) -> Work[None]:
        yield from self._learn()
        dag = DAG.from_parents(self._nodes, self._inner.best().parents)
        tables = self._tables(dag, None)
        without = 0
        for iteration in range(1, self._options.max_iterations + 1):
            self._text = f"completing rows, iteration {iteration}"
            try:
                completion = Completion(dag, self._sizes.tolist(), self._incomplete, self._weights)
            except DataError as too_large:
                self._end, self._converged = str(too_large), False
                return
            network = yield from self._expect(dag, tables, completion)
            self._scores.append(network.score)
            if self.network is None or network.score > self.network.score:
                self.network, without = network, 0
            else:
                without += 1
            if without == _PATIENCE:
                self._end = f"the last {_PATIENCE} graphs of {iteration} have a lower score."
                return
            self._text = f"learning a graph, iteration {iteration}"
            objective = ExpectedScore(self._base).bind(network.expected)
            self._inner = self._search.begin(objective, self._knowledge, self._rng)
            yield from self._learn()
            learned = DAG.from_parents(self._nodes, self._inner.best().parents)
            if learned.cpdag() == dag.cpdag():
                self._end = f"completing the rows leads to the same graph, iteration {iteration}."
                return
            dag, tables = learned, self._tables(learned, network.expected)
        self._end, self._converged = f"stopped after max_iterations={iteration} graphs.", False

    def _learn(self) -> Work[None]:
        while not self._inner.step():
            yield

    def _tables(self, dag: DAG, expected: ExpectedCounts | None) -> list[Floats]:
        """First parameters of a graph."""
        families = _families(dag)
        if expected is None:
            counts = map(self._statistics.table, families)
            return [probabilities(table, _FIRST_PSEUDO_COUNT) for table in counts]
        return [probabilities(expected.expected(f), _PSEUDO_COUNT) for f in families]

    def _expect(self, dag: DAG, tables: Sequence[Floats], completion: Completion) -> Work[_Network]:
        """Estimate the parameters of a graph, then complete the rows."""
        log_likelihood = -np.inf
        for _ in range(_PASSES):
            before = log_likelihood
            log_likelihood, counts, _ = yield from self._pass(dag, tables, completion, 0)
            tables = [probabilities(table, _PSEUDO_COUNT) for table in counts]
            if log_likelihood - before < _GAIN:
                break
        draws = self._options.completions
        log_likelihood, counts, rows = yield from self._pass(dag, tables, completion, draws)
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
        self, dag: DAG, tables: Sequence[Floats], completion: Completion, draws: int
    ) -> Work[tuple[float, list[Floats], CodedRows]]:
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
            yield
        rows = CodedRows(np.concatenate(codes, axis=1), np.concatenate(weights))
        return log_likelihood, counts, rows


def _families(dag: DAG) -> list[tuple[str, ...]]:
    return [(*dag.parents(node), node) for node in dag.nodes]
