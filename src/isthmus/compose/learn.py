"""The composer: from any data, any score and any search to a result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from isthmus.compose.defaults import AnyScore, AnySearch, choose_score, choose_search
from isthmus.compose.progress import reporter_for
from isthmus.errors import DataWarning, MismatchError
from isthmus.fitting import fit_gaussian, fit_tables
from isthmus.graphs import DAG, Knowledge
from isthmus.models import DiscreteNetwork, GaussianNetwork
from isthmus.objectives import LocalScore, Objective, QuadraticLoss
from isthmus.results import Solution
from isthmus.searches import Progress, drive
from isthmus.sources import Expanded, Source, Summary, as_source
from isthmus.statistics import Counts, Kind, Moments, Plan, Rows
from isthmus.statistics.basis import features_of

_SORTED = 0.9
"""Share of paths along which variance grows that is worth a warning."""
_MANY_EDGES = 3
"""With fewer edges the share says little."""


def learn(
    data: object,
    *,
    score: AnyScore | None = None,
    search: AnySearch | None = None,
    knowledge: Knowledge | None = None,
    kinds: Mapping[str, Kind] | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
) -> Solution:
    """Learn the graph of a Bayesian network.

    Parameters
    ----------
    data
        A table (pandas, Polars, PyArrow, a mapping of columns), a table of an engine (Polars lazy,
        DuckDB, Spark, Ibis), statistics computed earlier, or a source.
    score
        What is good; by default chosen from the kinds of the columns.
    search
        How to look; by default chosen from the kinds of the columns and their number.
    knowledge
        Edges and orders that are known beforehand.
    kinds
        How to read some columns, where the default reading is not what you mean.
    seed
        Of all random choices: the same seed gives the same graph.
    time_limit
        Seconds after which the search returns the best graph so far.
    progress
        True, False, or a function that is called with a :class:`~isthmus.searches.Progress`. By
        default progress is shown when the error stream is a terminal and the search takes long.

    Returns
    -------
    Solution
        The graph, its score, and what can be done with them. Ctrl-C during the search also
        returns: with the best graph so far.
    """
    source = as_source(data, kinds=kinds, integers=None if score is None else score.kind)
    schema = source.schema()
    chosen, why = choose_score(schema, search) if score is None else (score, "as asked")
    source = _widened(source, chosen)
    statistics = _gather(source, chosen)
    objective: Objective = chosen.bind(statistics)
    looked, how = choose_search(schema, objective) if search is None else (search, "as asked")
    fits = any(c in objective.capabilities for c in looked.accepts)
    if not fits:
        raise MismatchError(
            f"{looked!r} needs {looked.accepts[0]} and {chosen!r} gives "
            f"{' and '.join(sorted(map(str, objective.capabilities)))}. "
            "Leave the score out to get one that fits."
        )
    known = Knowledge() if knowledge is None else knowledge
    bound, rng = known.bind(objective.nodes), np.random.default_rng(seed)
    with reporter_for(progress) as report:
        run = looked.begin(objective, bound, rng)
        found, status = drive(run, type(looked).__name__, time_limit=time_limit, report=report)
    dag = DAG.from_parents(objective.nodes, found.parents)
    notes = _look_at(_columns_of(objective, statistics)) + _look_at_scales(objective, dag)
    return Solution(
        dag=dag,
        score=found.score,
        status=status,
        disclosure=source.disclosure(),
        choice=f"Score {chosen!r} ({why}); search {looked!r} ({how}).",
        equivalent=objective.equivalent,
        knowledge=knowledge,
        notes=notes,
        details=found.details,
        evidence=_Evidence(
            statistics.moments() if isinstance(statistics, Rows) else statistics,
            objective,
            partial(
                learn, score=chosen, search=looked, knowledge=knowledge, seed=seed, progress=False
            ),
        ),
    )


def score(
    data: object,
    dag: DAG,
    score: AnyScore,
    *,
    kinds: Mapping[str, Kind] | None = None,
) -> float:
    """Score a graph on data.

    Only the statistics of its families are asked of the source.
    """
    source = as_source(data, kinds=kinds, integers=score.kind)
    if score.needs is Counts:
        statistics: Moments | Counts = source.counts(Plan.families(dag))
    elif score.needs is Moments and score.basis is None:
        statistics = source.moments(dag.nodes)
    else:
        raise _scores_weights(score)
    objective = score.bind(statistics)
    if not isinstance(objective, LocalScore):
        raise _scores_weights(score)
    return objective.total(dag)


def _scores_weights(score: AnyScore) -> MismatchError:
    return MismatchError(
        f"{score!r} scores weights, not graphs. Give a local score, such as GaussianBIC()."
    )


def summarise(
    data: object,
    *,
    plan: Plan | None = None,
    kinds: Mapping[str, Kind] | None = None,
) -> Moments | Counts:
    """Compute the statistics that scores need, to save them, to add them up, or to learn later.

    Parameters
    ----------
    data
        As for :func:`learn`.
    plan
        The tables to count; without a plan the moments are computed.
    kinds
        How to read some columns.
    """
    source = as_source(data, kinds=kinds)
    return source.moments() if plan is None else source.counts(plan)


def _widened(source: Source, score: AnyScore) -> Source:
    """Add the columns that the score needs and the source can compute."""
    if score.basis is None:
        return source
    schema = source.schema()
    if any(features_of(schema.names).values()) or schema.of_kind(Kind.DISCRETE):
        return source
    return Expanded(source, score.basis)


def _gather(source: Source, score: AnyScore) -> Moments | Counts | Rows:
    """Ask the source for what the score needs."""
    schema = source.schema()
    wrong = [v.name for v in schema.variables if score.kind not in (None, v.kind)]
    if wrong:
        kind = score.kind
        raise MismatchError(
            f"{score!r} takes {kind} columns; {wrong[:5]} are not"
            + (f" (and {len(wrong) - 5} more)" if len(wrong) > 5 else "")
            + ". Use DegenerateGaussian for mixed tables, or say how to read a column by kinds="
            + "{"
            + f"{wrong[0]!r}: Kind.{str(kind).upper()}"
            + "}."
        )
    if score.needs is Counts:
        if isinstance(source, Summary) and isinstance(source.statistics, Counts):
            # Counts made by a plan are all there is: a search that asks for more is told so.
            return source.statistics
        return source.counts(Plan.everything())
    if score.needs is Rows:
        return Rows(schema, _rows(source, score))
    return source.moments()


def _rows(source: Source, score: AnyScore) -> NDArray[np.float64]:
    try:
        return source.rows()
    except MismatchError as refusal:
        raise MismatchError(f"{score!r} needs the rows themselves. {refusal}") from refusal


def _columns_of(
    objective: Objective, statistics: Moments | Counts | Rows
) -> Moments | Counts | Rows:
    """Leave out columns that are functions of others."""
    if isinstance(statistics, Moments) and len(objective.nodes) < len(statistics.schema):
        return statistics.select(objective.nodes)
    return statistics


def _look_at(statistics: Moments | Counts | Rows) -> tuple[str, ...]:
    """Name the columns that cannot tell anything."""
    notes = []
    constants = statistics.constants()
    if constants:
        notes.append(
            f"Constant columns: {list(constants)}. They have no edges; leave them out or check "
            "why they do not vary."
        )
    copies = statistics.duplicates()
    if copies:
        notes.append(
            f"Columns that determine each other exactly: {[list(c) for c in copies]}. "
            "The edges between them and to others are arbitrary; keep one of each."
        )
    for note in notes:
        warnings.warn(note, DataWarning, stacklevel=3)
    return tuple(notes)


def _look_at_scales(objective: Objective, dag: DAG) -> tuple[str, ...]:
    """Say so when a loss that reads variances found a graph along which variances grow."""
    if not isinstance(objective, QuadraticLoss) or len(dag.edges) < _MANY_EDGES:
        return ()
    from isthmus.simulate.sortability import order_alignment

    share = order_alignment(np.diagonal(objective.matrix), dag)
    if share < _SORTED:
        return ()
    note = (
        f"Variance grows along {share:.0%} of the directed paths found (varsortability). Least "
        "squares reads variances: if the scales of the columns are a matter of units, the "
        "directions are too. solution.standardised_refit() names the edges that depend on scale; "
        "score=LinearLikelihood() does not see it."
    )
    warnings.warn(note, DataWarning, stacklevel=3)
    return (note,)


@final
@dataclass(frozen=True, eq=False)
class _Evidence:
    """The statistics and the objective behind a solution."""

    statistics: Moments | Counts
    objective: Any
    again: Callable[[Moments], Solution]

    def standardised(self) -> Solution:
        """Learn again in the same way, from columns of variance one."""
        moments = self.statistics
        if not isinstance(moments, Moments):
            raise MismatchError("Only numbers can be standardised; this graph is of counts.")
        if len(moments.schema.of_kind(Kind.CONTINUOUS)) != len(self.objective.nodes):
            raise MismatchError("Only tables of plain numeric columns can be standardised.")
        spread = np.sqrt(np.diagonal(moments.scatter()) / moments.n)
        scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        zeros = np.zeros(len(spread))
        gram = moments.scatter() * scale[:, None] * scale[None, :]
        return self.again(Moments(moments.schema, moments.n, zeros, zeros, gram))

    def fit(self, dag: DAG) -> DiscreteNetwork | GaussianNetwork:
        """Estimate parameters."""
        if isinstance(self.statistics, Counts):
            return fit_tables(self.statistics, dag)
        return fit_gaussian(self.statistics, dag)

    def strengths(self, dag: DAG) -> dict[tuple[str, str], float]:
        """Return what the score loses when one edge is taken away."""
        if not isinstance(self.objective, LocalScore):
            raise MismatchError("Strengths of edges are differences of a local score.")
        position = {name: i for i, name in enumerate(self.objective.nodes)}
        lost = {}
        for child in dag.nodes:
            parents = [position[p] for p in dag.parents(child)]
            full = self.objective.local(position[child], parents)
            for parent in dag.parents(child):
                fewer = [p for p in parents if p != position[parent]]
                lost[parent, child] = full - self.objective.local(position[child], fewer)
        return lost
