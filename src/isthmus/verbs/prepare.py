"""The path from statistics to an objective: read, check, widen, gather, bind.

Every verb (`learn`, `sample`, `score`, `parent_sets`) goes through `prepare`, so all of them accept
and refuse the same things in the same words. The path for objectives that a joint source offers
itself is at the end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from isthmus.errors import GraphError, IsthmusError, MismatchError, warn
from isthmus.graphs import DAG, BoundKnowledge, Knowledge
from isthmus.networks.column_maps import ColumnMap
from isthmus.objectives import LOCAL_SCORES, IndependenceTest, Objective
from isthmus.objectives.correlations import CORRELATIONS
from isthmus.objectives.smooth import NoiseTest
from isthmus.options import described
from isthmus.results import Provenance, Reading, Solution, Status
from isthmus.scores.base import EdgePrior
from isthmus.scores.noise_tests import MOST_ROWS
from isthmus.scores.requested import on_request
from isthmus.scores.unequal_spread import functions_for, hold_level, hold_level_of_sums
from isthmus.searches import PAGSearch, SearchResult
from isthmus.searches.base import Accepts
from isthmus.statistics import CountPlan, Counts, Kind, Moments, Schema, Statistic, Summary
from isthmus.statistics.requested import RequestedCounts
from isthmus.statistics.within import StandardisedColumns
from isthmus.tables import (
    FixedBins,
    Missing,
    Source,
    TimeUnit,
    Transform,
    WithFeatures,
    as_source,
    transformed,
)
from isthmus.tables.dispatch import knows_kinds
from isthmus.verbs.arguments import (
    AnyScore,
    AnySearch,
    check_dag,
    check_kinds,
    check_knowledge,
    check_missing,
    check_score,
    check_search,
    check_transform,
)
from isthmus.verbs.defaults import MANY_COLUMNS, choose_score
from isthmus.watch import Watch, limited

if TYPE_CHECKING:
    from isthmus.searches.base import JointObjective

# --- Learn with an objective that a joint source offers itself, instead of statistics -----------


@final
@dataclass(frozen=True, eq=False)
class JointProblem:
    """An objective that organisations compute together, and the search for it.

    Attributes
    ----------
    source
        The joint source.
    objective
        Its objective.
    search, reason
        The search, and why it was chosen.
    knowledge
        Background knowledge, and that time does not run backwards.
    """

    source: Source
    objective: JointObjective
    search: AnySearch
    reason: str
    knowledge: Knowledge

    def check(self) -> None:
        """Raise an error if the options or the knowledge do not fit; nothing is sent."""
        bound = self.knowledge.bind(self.objective.nodes)
        self.objective.require(self.search, bound)

    def learn(self, seed: int, watch: Watch) -> SearchResult:
        """Search for the graph, together with the other organisations."""
        bound = self.knowledge.bind(self.objective.nodes)
        return self.search.search(self.objective, bound, np.random.default_rng(seed), watch)

    def solution(
        self, result: SearchResult, status: Status, knowledge: Knowledge | None, seed: int
    ) -> Solution:
        """Return the solution of a run, with the knowledge and the seed as the user gave them."""
        return Solution(
            dag=DAG.from_parents(self.objective.nodes, result.parents),
            score=result.score,
            status=status,
            disclosure=self.source.disclosure(),
            choice=f"Search {described(self.search)} ({self.reason}); {self.objective.score_text}.",
            equivalent=self.objective.equivalent,
            sense=self.objective.sense,
            knowledge=knowledge if self.knowledge == Knowledge() else self.knowledge,
            notes=(*self.source.notes(), *result.notes),
            reading=self.source.reading(),
            details=result.details,
            provenance=Provenance.of_call("learn", seed, search=self.search, knowledge=knowledge),
        )


def prepare_jointly(
    data: object,
    search: AnySearch | None,
    *,
    knowledge: Knowledge | None = None,
    **others: object,
) -> JointProblem | None:
    """Return the problem if the search needs an objective that the source offers, else None.

    Parameters
    ----------
    search
        The search, if the user named one. Otherwise a source decides whether it offers statistics.
    **others
        Other arguments of `learn`, which have no effect here and are refused unless they are None.
    """
    if not isinstance(data, Source):
        return None
    objective: Any = data.objective(None if search is None else check_search(search).accepts)
    if objective is None:
        return None
    chosen = objective.default_search() if search is None else search
    for name, value in others.items():
        if value is not None:
            raise MismatchError(
                f"{name}={value!r} has no effect with {type(chosen).__name__}: the study says what "
                f"the organisations compute. Leave out {name}."
            )
    schema = data.schema()
    known = check_knowledge(knowledge).with_time(schema.lag_of)
    reason = "as the study says" if search is None else "as requested"
    return JointProblem(data, objective, chosen, reason, known)


def refuse_joint_search(search: AnySearch, source: Source) -> None:
    """Raise `MismatchError` if a search needs what neither a score nor this source offers."""
    needed = [capability for capability in search.accepts if capability.offered_by]
    if len(needed) == len(search.accepts) > 0:
        raise MismatchError(
            f"{type(search).__name__} needs {needed[0]}, which only {needed[0].offered_by} offers; "
            f"{source!r} does not. Leave out the search to get one that fits."
        )


def refuse_joint_bootstrap(data: object, search: AnySearch | None) -> None:
    """Raise `MismatchError` if the search would run at the sites, whose rows nobody can draw."""
    if not isinstance(data, Source):
        return
    if data.objective(None if search is None else check_search(search).accepts) is None:
        return
    raise MismatchError(
        "The bootstrap draws rows, which stay at the sites."
        + ("" if search is None else f" {type(search).__name__}() is for learn."),
        "Call sample(data): the posterior over graphs needs sums only, if the study allows them.",
    )


# --- The path from statistics to an objective: read, check, widen, gather, bind -----------------

_SECONDS_PER_PAIR = 5e-8
"""Lower bound of the time per pair of columns until a search can start. With 10,000 columns and 200
rows it was twice that on one core."""
MOST_COLUMNS = 300
"""Columns for which functions are summed to challenge an answer: the products of those of more
would take longer than the search. Not tuned."""
_UNEQUAL = "Not challenged by unequal spread: {}."
_HARDLY = 0.5
"""Seconds by which a time limit may be exceeded without a warning."""


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """Data that were read, and the objective that a score made of them.

    Attributes
    ----------
    source
        Source of the statistics.
    schema
        The variables, as they were read.
    reading
        How each column was read, and why.
    score, score_reason
        The score, adapted to the data and with the prior of the knowledge, and why it was chosen.
    plain_score
        The score as it was given or chosen.
    statistics
        Statistics of the source.
    objective
        The score bound to the statistics.
    knowledge
        Background knowledge as the user gave it, and that time does not run backwards.
    waited
        Seconds that others took to give the statistics, which do not count for a time limit.
    wide
        The source with functions of the columns and their moments, if a test needed them.
    unheld
        Why a test assumes noise of constant variance; empty if it does not.
    """

    source: Source
    schema: Schema
    reading: Reading
    score: AnyScore
    score_reason: str
    plain_score: AnyScore
    statistics: Summary
    objective: Objective
    knowledge: Knowledge
    waited: float
    wide: tuple[Source, Moments] | None = None
    unheld: str = ""

    @property
    def constraints(self) -> BoundKnowledge:
        """The knowledge about the nodes of the objective, by index."""
        return self.knowledge.bind(self.objective.nodes)


def prepare(
    data: object,
    *,
    score: AnyScore | None = None,
    search: AnySearch | None = None,
    accepts: Accepts | None = None,
    knowledge: Knowledge | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    dag: DAG | None = None,
    choose: Callable[[Schema, bool], tuple[AnyScore, str]] | None = None,
    structural_em: bool = False,
    requests: bool = False,
    time_limit: float | None = None,
    transform: Transform | None = None,
    pag: bool = False,
    groups: str | None = None,
    plan: CountPlan | None = None,
) -> Problem:
    """Read data and bind a score to their statistics.

    Parameters
    ----------
    score
        The score; by default chosen from the column types and the search.
    search
        The search that the objective is for, if the user named one.
    accepts
        Capabilities that the caller can use, one of which the objective must have. By default
        those of the search, or any.
    missing
        How to handle missing values; by default they are refused.
    dag
        If given, only the statistics of its families are gathered.
    choose
        Chooses the score if none is given, and says why, from the variables and from whether the
        statistics are within groups; by default as for `learn`.
    structural_em
        Whether the caller completes missing values for `StructuralEM`. The objective is then that
        of `AvailableCases`, to start with.
    requests
        Whether the caller runs the search again after counting what it asked for; see
        `RequestedCounts`.
    time_limit
        Seconds that the caller has. Moments of incomplete rows are estimated for at most half of
        them. `TimeLimitError` if reading takes longer.
    transform
        A step that replaces the numbers of a table.
    pag
        Whether the caller can handle a search whose result is a PAG.
    groups
        The column of groups of a table.
    plan
        The tables to count, if the score needs counts; by default those of `dag`, or all.
    """
    check_kinds(kinds)
    known = check_knowledge(knowledge)
    if score is not None:
        score = check_score(score)
    if search is not None:
        accepts = check_search(search).accepts
        if isinstance(search, PAGSearch) and not pag:
            raise MismatchError(
                f"{search!r} gives a PAG, which is for learn; here a DAG is needed. Use a search "
                "such as Boss() or PC()."
            )
    if dag is not None:
        dag = check_dag(dag)
    missing = check_missing(missing)
    if missing is not None and missing.completes and not structural_em:
        raise MismatchError(
            f"{missing!r} learns graphs, so it is for learn and bootstrap. Use AvailableCases(), "
            "MissingAsLevel() for categories, ExpectationMaximisation() for tables with numbers, "
            "or DropRows() here."
        )
    begin = time.monotonic()
    integers = None if score is None else score.kind
    source, maps = _open(
        data,
        transform,
        kinds=kinds,
        integers=integers,
        dag=dag,
        missing=missing,
        groups=groups,
    )
    if search is not None:
        refuse_joint_search(search, source)
    if time_limit is not None:
        source.limit_estimation(begin + 0.5 * time_limit)
    until = begin + time_limit if time_limit is not None and source.timed else math.inf
    with limited(until):
        schema, reading = source.schema(), source.reading()
    reading = reading.with_maps(maps) if maps else reading
    if dag is not None:
        refuse_back_in_time(dag, schema)
    known = known.without(reading.left_out)
    chosen, reason = (score, "as requested") if score is not None else (None, "")
    if chosen is None:
        chosen, reason = (
            choose_score(
                schema,
                search,
                accepts,
                incomplete=source.leaves_missing,
                within_groups=source.within_groups,
            )
            if choose is None
            else choose(schema, source.within_groups)
        )
    require_capability(chosen, chosen.gives, accepts, search)
    variables = schema if dag is None else schema.subset(dag.nodes)
    fixed = data if knows_kinds(data) else None
    _require_kind(chosen, variables, accepts, fixed)
    plain, chosen = chosen, with_prior(source.adapt(chosen), known, source)
    requests = requests and not known.has_prior
    timed, in_memory = source.timed, source.in_memory
    source = _with_features(source, chosen)
    by_column = _by_column(source, chosen, accepts, dag)
    if in_memory and time_limit is not None and not by_column and issubclass(chosen.needs, Moments):
        _warn_of_minimum(source.schema().width, time_limit - (time.monotonic() - begin))
    needs = StandardisedColumns if by_column else chosen.needs
    with limited(until):
        statistics = _gather(source, chosen, dag, needs, requests=requests, plan=plan)
    waited = 0.0 if timed else time.monotonic() - begin
    constants = statistics.constants()
    if source.within_groups:
        reading = reading.with_constants(constants, "it has one value within each group")
    else:
        reading = reading.with_constants(constants)
    reading = replace(reading, remarks=(*reading.remarks, *source.estimation_remarks()))
    objective, wide, unheld = bound(chosen, statistics, source)
    require_capability(chosen, objective.capabilities, accepts, search)
    nodes = set(objective.nodes)
    known = known.with_time({n: lag for n, lag in schema.lag_of.items() if n in nodes})
    return Problem(
        source,
        schema,
        reading,
        chosen,
        reason,
        plain,
        statistics,
        objective,
        known,
        waited,
        wide,
        unheld,
    )


def _open(
    data: object,
    transform: Transform | None,
    *,
    kinds: Mapping[str, Kind | TimeUnit | str] | None,
    integers: Kind | None,
    dag: DAG | None,
    missing: Missing | None,
    groups: str | None,
) -> tuple[Source, Mapping[str, ColumnMap]]:
    """Return the source of data, and what a transform did to their numbers."""
    step = check_transform(transform, data)
    if step is None:
        nodes = None if dag is None else dag.nodes
        source = as_source(
            data, kinds=kinds, integers=integers, columns=nodes, missing=missing, groups=groups
        )
        return source, {}
    own = kinds if groups is None else {**(kinds or {}), groups: Kind.DISCRETE}
    data, kinds, maps = transformed(data, step, kinds=own, integers=integers)
    source = as_source(data, kinds=kinds, integers=integers, missing=missing, groups=groups)
    if not isinstance(step, FixedBins):
        source.record(f"quantiles of {len(maps)} columns", sum(len(m.at) for m in maps.values()))
    return source, maps


def _warn_of_minimum(width: int, left: float) -> None:
    """Warn if computing the Gram matrix will exceed the time limit."""
    minimum = _SECONDS_PER_PAIR * width**2
    if minimum > max(left, _HARDLY):
        warn(
            f"{width:,} columns: the sums of all pairs of columns take about {minimum:.0f} s or "
            f"more, and {max(left, 0.0):.1f} s of the time limit are left. They are computed in "
            "any case, and the search will have no time. Give more time, or fewer columns."
        )


def warn_of_reading(reading: Reading) -> None:
    """Warn of how columns were read, where the result has no notes."""
    if reading.cautions:
        warn(" ".join(reading.cautions))


def require_capability(
    score: object,
    offered: frozenset[Any],
    accepts: Accepts | None,
    search: AnySearch | None,
) -> None:
    """Raise `MismatchError` unless the objective offers one of the accepted capabilities."""
    if accepts is None or any(capability in offered for capability in accepts):
        return
    wanted = " or ".join(capability.name for capability in accepts)
    gives = " and ".join(sorted(capability.name for capability in offered))
    if search is None:
        advice = "Give a local score, such as BIC() or GaussianBIC()."
    elif LOCAL_SCORES in offered:
        advice = "Leave out the score to get one that fits, or use a search such as Boss()."
    else:
        advice = "Leave out the score or the search to get one that fits."
    subject = "This" if search is None else f"{search!r}"
    raise MismatchError(f"{subject} needs {wanted}, and {score!r} gives {gives}. {advice}")


def _require_kind(
    score: AnyScore, schema: Schema, accepts: Accepts | None, fixed: object | None
) -> None:
    """Raise `MismatchError` unless all variables are of the kind that the score takes.

    Parameters
    ----------
    fixed
        The source or statistics whose kinds cannot be changed; None for a table.
    """
    kind = score.kind
    wrong = [v.name for v in schema.variables if kind not in (None, v.kind)]
    if not wrong:
        return
    more = f" (and {len(wrong) - 5} more)" if len(wrong) > 5 else ""
    local = accepts is None or LOCAL_SCORES in accepts
    mixed = len(wrong) < len(schema.variables)
    other = "Leave out the search (and the score) to get one that fits"
    if local:
        pure = "GaussianBIC()" if kind is Kind.DISCRETE else "BIC()"
        other = "Use DegenerateGaussian() for mixed tables" if mixed else f"Use {pure}"
    levels = schema[wrong[0]].levels
    if fixed is not None:
        other = "Leave out the score to get one that fits" if local else other
        advice = (
            f"{other}: the kinds of a {type(fixed).__name__} are fixed, in a federation by the "
            "signed study."
        )
    elif kind is Kind.CONTINUOUS and any(isinstance(level, str) for level in levels):
        # Codes of categories would be read as amounts.
        advice = f"{other}, or leave these columns out of the table." if mixed else f"{other}."
    else:
        kinds = f"kinds={{{wrong[0]!r}: Kind.{str(kind).upper()}}}"
        advice = f"{other}, or say how to read a column: {kinds}."
    names = ", ".join(map(repr, wrong[:5]))
    raise MismatchError(f"{score!r} takes {kind} columns; {names}{more} are not. {advice}")


def refuse_back_in_time(dag: DAG, schema: Schema) -> None:
    """Raise `GraphError` if an edge goes from a variable to one at an earlier time."""
    steps = {name: lag.steps for name, lag in schema.lag_of.items()}
    for cause, effect in dag.edges:
        if steps.get(cause, 0) < steps.get(effect, 0):
            raise GraphError(
                f"The edge {cause} → {effect} points back in time: {effect!r} is earlier than "
                f"{cause!r}. Turn the edge round, or leave it out."
            )


def refuse_left_to_scores(source: Source, instead: str) -> None:
    """Refuse incomplete rows whose missing values are left to a score, where there is no score."""
    if source.leaves_missing:
        raise MismatchError(
            f"{source.missing!r} leaves missing values to a score, and there is none here. Use "
            f"DropRows() or MissingAsLevel(), {instead}."
        )


def with_prior(score: AnyScore, knowledge: Knowledge, source: Source) -> AnyScore:
    """Add prior probabilities of edges to a local score."""
    if not knowledge.has_prior or isinstance(score, EdgePrior):
        return score
    completes = source.missing is not None and source.missing.completes and source.has_missing
    if LOCAL_SCORES not in score.gives or completes:
        what = repr(source.missing) if completes else repr(score)
        raise MismatchError(
            f"Prior probabilities of edges are added to a local score, and {what} has none here. "
            "Leave the probabilities out of the knowledge, or use a score such as BDeu() or "
            "GaussianBIC() and another strategy than StructuralEM()."
        )
    return EdgePrior(score, knowledge)


def _with_features(source: Source, score: AnyScore) -> Source:
    """Add the basis functions that the score needs, unless the source has them already."""
    if score.basis is None or source.schema().has_features:
        return source
    return WithFeatures(source, score.basis)


def _by_column(source: Source, score: AnyScore, accepts: Accepts | None, dag: DAG | None) -> bool:
    """Whether columns are kept instead of the moments of all pairs of them.

    That is so for tables in memory with more than `MANY_COLUMNS` columns and fewer rows than
    columns, if nobody named a search that needs all pairs.
    """
    width = len(source.schema()) if dag is None else len(dag.nodes)
    if not (source.in_memory and score.of_columns and width > MANY_COLUMNS):
        return False
    if accepts is not None and CORRELATIONS not in accepts and dag is None:
        return False
    columns = source.complete_columns()
    return columns is not None and not source.has_missing and len(columns.columns[0]) < width


def bound(
    score: AnyScore, statistics: Summary, source: Source
) -> tuple[Objective, tuple[Source, Moments] | None, str]:
    """Bind a score; a test of moments is also asked again for unequal spread, or of ranks.

    That takes the rows, if they are in memory, or else sums of functions of the columns. The second
    item is the source with these functions and their moments, and the third one says why the test
    is not asked again.
    """
    if isinstance(statistics, RequestedCounts):
        return on_request(score, statistics).objective(), None, ""
    objective: Objective = score.bind(statistics)
    if isinstance(objective, NoiseTest):
        rows = None if source.has_missing else source.complete_columns()
        if rows is not None and len(rows.columns[0]) <= MOST_ROWS:
            places = rows.schema.indices(objective.nodes)
            return objective.with_rows([rows.columns[i] for i in places]), None, ""
        return objective, None, ""
    basis = functions_for(score)
    if basis is None or not isinstance(objective, IndependenceTest):
        return objective, None, ""
    if source.has_missing or not isinstance(statistics, Moments):
        return objective, None, _UNEQUAL.format("values are missing")
    complete = source.complete_columns()
    if complete is not None:
        return hold_level(score, objective, complete.schema, complete.columns), None, ""
    if len(statistics.schema) > MOST_COLUMNS:
        return objective, None, _UNEQUAL.format(f"there are more than {MOST_COLUMNS} columns")
    if statistics.schema.has_features or not statistics.schema.of_kind(Kind.CONTINUOUS):
        return hold_level_of_sums(score, objective, statistics), None, ""
    try:
        wide = WithFeatures(source, basis)
        moments = wide.moments(statistics.schema.names)
    except IsthmusError:
        return objective, None, _UNEQUAL.format("functions of the columns cannot be summed here")
    return hold_level_of_sums(score, objective, moments), (wide, moments), ""


def _gather(
    source: Source,
    score: AnyScore,
    dag: DAG | None,
    needs: type[Statistic],
    *,
    requests: bool,
    plan: CountPlan | None,
) -> Summary:
    """Ask the source for the statistics that the score needs."""
    try:
        if plan is not None and needs is Counts:
            return source.counts(plan)
        if requests and dag is None and needs is Counts:
            counts = source.requested_counts()
            if counts is not None:
                return counts
        return source.gather(needs, dag)
    except MismatchError as refusal:
        raise MismatchError(f"{score!r} needs {score.needs.described}. {refusal}") from refusal
