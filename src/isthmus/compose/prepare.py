"""The path from data to an objective: read, check, add features, gather statistics, bind.

`learn`, `score` and `parent_sets` all use `prepare`, so they accept the same arguments and raise
the same errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from isthmus.compose.arguments import (
    AnyScore,
    AnySearch,
    check_dag,
    check_kinds,
    check_knowledge,
    check_score,
    check_search,
)
from isthmus.compose.defaults import choose_score
from isthmus.errors import MismatchError
from isthmus.graphs import DAG, BoundKnowledge, Knowledge
from isthmus.objectives import LOCAL_SCORES, Objective
from isthmus.searches.base import Accepts
from isthmus.sources import Precomputed, Source, WithFeatures, as_source
from isthmus.statistics import Kind, Schema, Statistic


@final
@dataclass(frozen=True, eq=False)
class Problem:
    """Data and the objective that results from binding a score to their statistics.

    Attributes
    ----------
    source
        The source of the statistics.
    schema
        The variables, as they were read.
    score, score_reason
        The score, and why it was chosen.
    statistics
        The statistics gathered from the source.
    objective
        The score bound to the statistics.
    knowledge
        Background knowledge of the user, plus the constraint that effects do not precede causes.
    """

    source: Source
    schema: Schema
    score: AnyScore
    score_reason: str
    statistics: Statistic
    objective: Objective
    knowledge: Knowledge

    @property
    def constraints(self) -> BoundKnowledge:
        """The background knowledge in terms of node indices."""
        return self.knowledge.bind(self.objective.nodes)


def prepare(
    data: object,
    *,
    score: AnyScore | None = None,
    search: AnySearch | None = None,
    accepts: Accepts | None = None,
    knowledge: Knowledge | None = None,
    kinds: Mapping[str, Kind | str] | None = None,
    dag: DAG | None = None,
) -> Problem:
    """Read data and bind a score to their statistics.

    Parameters
    ----------
    data
        A table, statistics or a source.
    score
        The score; by default chosen from the column types and the search.
    search
        The search that will use the objective, if the user passed one.
    accepts
        Capabilities of an objective that the caller can use; it must have one of them. By default
        those that the search accepts, or any.
    knowledge
        Background knowledge.
    kinds
        How to read some columns.
    dag
        If given, only the statistics of its families are gathered.
    """
    check_kinds(kinds)
    background = check_knowledge(knowledge)
    if score is not None:
        score = check_score(score)
    if search is not None:
        accepts = check_search(search).accepts
    if dag is not None:
        dag = check_dag(dag)
    source = as_source(data, kinds=kinds, integers=None if score is None else score.kind)
    schema = source.schema()
    if score is None:
        chosen, reason = choose_score(schema, search, accepts)
    else:
        chosen, reason = score, "as requested"
    require_capability(chosen, chosen.gives, accepts, search)
    variables = schema if dag is None else schema.subset(dag.nodes)
    _require_kind(chosen, variables)
    source = _with_features(source, chosen)
    statistics = _gather(source, chosen, dag)
    objective: Objective = chosen.bind(statistics)
    require_capability(chosen, objective.capabilities, accepts, search)
    lags = {n: lag for n, lag in schema.lag_of.items() if n in objective.nodes}
    background = background.with_time(lags)
    return Problem(source, schema, chosen, reason, statistics, objective, background)


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
        advice = "Use a local score, such as BIC() or GaussianBIC()."
    elif LOCAL_SCORES in offered:
        advice = "Omit the score to get a compatible one, or use a search such as Boss()."
    else:
        advice = "Omit the score or the search to get a compatible one."
    subject = "This" if search is None else f"{search!r}"
    raise MismatchError(f"{subject} needs {wanted}, but {score!r} provides {gives}. {advice}")


def _require_kind(score: AnyScore, schema: Schema) -> None:
    kind = score.kind
    wrong = [v.name for v in schema.variables if kind not in (None, v.kind)]
    if not wrong:
        return
    more = f" (and {len(wrong) - 5} more)" if len(wrong) > 5 else ""
    raise MismatchError(
        f"{score!r} needs {kind} columns; {wrong[:5]}{more} are not. Use DegenerateGaussian() for "
        f"mixed tables, or change how a column is read: kinds={{{wrong[0]!r}: "
        f"Kind.{str(kind).upper()}}}."
    )


def _with_features(source: Source, score: AnyScore) -> Source:
    """Add the basis functions that the score needs, unless the source has them already."""
    if score.basis is None or source.schema().has_features:
        return source
    return WithFeatures(source, score.basis)


def _gather(source: Source, score: AnyScore, dag: DAG | None) -> Statistic:
    """Request the statistics that the score needs from the source."""
    if (
        dag is None
        and isinstance(source, Precomputed)
        and isinstance(source.statistics, score.needs)
    ):
        # Use planned counts as they are; a search that needs other tables raises an error.
        return source.statistics
    try:
        return score.needs.gather(source, dag)
    except MismatchError as refusal:
        raise MismatchError(f"{score!r} needs {score.needs.described}. {refusal}") from refusal
