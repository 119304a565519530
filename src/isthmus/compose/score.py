"""Score a graph, and compute statistics."""

from __future__ import annotations

from collections.abc import Mapping

from isthmus.compose.arguments import AnyScore, check_dag, check_kinds, check_missing, check_score
from isthmus.compose.prepare import prepare, refuse_left_to_scores, warn_of_reading
from isthmus.errors import ArgumentError
from isthmus.graphs import DAG
from isthmus.objectives import LOCAL_SCORES
from isthmus.plurals import a_type
from isthmus.sources import Missing, TimeUnit, as_source
from isthmus.statistics import CountPlan, Counts, Kind, Moments


def score(
    data: object,
    dag: DAG,
    score: AnyScore | None = None,
    *,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
) -> float:
    """Compute the score of a graph on data.

    Only the statistics of the graph's families are requested from the source.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`.
    dag
        The graph; its nodes are columns of the data.
    score
        A local score, such as ``BIC()`` or ``GaussianBIC()``; by default the one that
        :func:`~isthmus.learn` would choose from the columns.
    kinds
        How to read some columns.
    missing
        How to handle missing values, as for :func:`~isthmus.learn`, except `StructuralEM`.
    groups
        Name of the column of groups of a table, as for :func:`~isthmus.learn`.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> empty = ist.DAG(data.dag.nodes)
    >>> ist.score(data, data.dag) > ist.score(data, empty)
    True
    """
    problem = prepare(
        data,
        score=None if score is None else check_score(score),
        accepts=(LOCAL_SCORES,),
        kinds=kinds,
        missing=missing,
        groups=groups,
        dag=check_dag(dag),
    )
    warn_of_reading(problem.reading)
    return LOCAL_SCORES.require(problem.objective).total(dag)


def summarise(
    data: object,
    *,
    plan: CountPlan | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
) -> Moments | Counts:
    """Compute the statistics that scores need, so that you can save them, add them or learn later.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`.
    plan
        The tables to count; without a plan the moments are computed.
    kinds
        How to read some columns.
    missing
        How to handle missing values: `DropRows`, `MissingAsLevel` or
        `ExpectationMaximisation`; by default they are refused.
    groups
        Name of the column of groups of a table, as for :func:`~isthmus.learn`.

    Examples
    --------
    >>> import isthmus as ist
    >>> from isthmus import simulate
    >>> dag = simulate.erdos_renyi(5, 6, seed=1)
    >>> numbers = simulate.linear(dag, 300, seed=1).data
    >>> ist.summarise(numbers).mean().shape
    (5,)
    """
    check_kinds(kinds)
    if plan is not None and not isinstance(plan, CountPlan):
        raise ArgumentError(
            f"plan must be a Plan; {a_type(plan)} was given. "
            "Write plan=CountPlan.everything() or plan=CountPlan.sets([['a', 'b'], ['b', 'c']])."
        )
    source = as_source(data, kinds=kinds, missing=check_missing(missing), groups=groups)
    refuse_left_to_scores(source, "or give the table itself to learn, score or parent_sets")
    return source.moments() if plan is None else source.counts(plan)
