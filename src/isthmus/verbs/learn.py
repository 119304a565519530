"""Learn a graph from data, or from a table of scored parent sets."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast, overload

import numpy as np

from isthmus.errors import ArgumentError, a_type
from isthmus.graphs import DAG, Knowledge
from isthmus.objectives import LOCAL_SCORES, PARENT_SETS, ScoreTable
from isthmus.options import described
from isthmus.results import Disclosure, PAGSolution, Provenance, Solution, Status
from isthmus.searches import AStar, PAGResult, PAGSearch, SearchResult
from isthmus.statistics import Kind, Moments, Schema
from isthmus.tables import Missing, TimeUnit, Transform
from isthmus.verbs.arguments import (
    AnyScore,
    AnySearch,
    check_knowledge,
    check_progress,
    check_search,
    check_seed,
    check_time_limit,
    check_transform,
    refuse_probabilities,
)
from isthmus.verbs.curves import Again, challenge, fits_lines, test_of_curves
from isthmus.verbs.defaults import choose_search, reporter_for
from isthmus.verbs.fit import StructuralEMSearch
from isthmus.verbs.kept import LearnedStatistics
from isthmus.verbs.notes import notes_on
from isthmus.verbs.on_demand import OnDemandSearch, RequestedSearch, within_tables
from isthmus.verbs.prepare import prepare, prepare_jointly, require_capability
from isthmus.watch import Ending, Progress, Watch, drive


@overload
def learn(
    data: object,
    *,
    search: PAGSearch,
    score: AnyScore | None = None,
    knowledge: Knowledge | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
    transform: Transform | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
) -> PAGSolution: ...


@overload
def learn(
    data: object,
    *,
    score: AnyScore | None = None,
    search: AnySearch | None = None,
    knowledge: Knowledge | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
    transform: Transform | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
) -> Solution: ...


def learn(
    data: object,
    *,
    score: AnyScore | None = None,
    search: AnySearch | None = None,
    knowledge: Knowledge | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
    transform: Transform | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
) -> Solution | PAGSolution:
    """Learn the graph of a Bayesian network from data.

    The score and the search algorithm are chosen from the columns, unless you pass them. Missing
    values are refused, unless you say how to handle them.

    Parameters
    ----------
    data
        A table (pandas, Polars, PyArrow, a mapping of columns), a table of an engine (Polars lazy,
        DuckDB, Spark, Ibis), statistics computed earlier, or a source, also a `Federation` or
        `TwoParty`, whose data stay where they are.
    score
        Score to optimise. By default chosen from the column types.
    search
        Search algorithm. By default chosen from the score, the column types and the number of
        columns. `BossFCI` and `FCI` allow for hidden common causes. `ADMM` needs a `Federation`;
        `PrivateK2` and `StructureOnly` need a `TwoParty`.
    knowledge
        Required and forbidden edges, and tiers.
    kinds
        How to read some columns, if the default is not what you want: ``"continuous"`` and
        ``"discrete"`` (or `Kind`), or a unit for dates such as ``"days"`` (or `TimeUnit`).
    missing
        How to handle missing values: `DropRows`, `MissingAsLevel`, `AvailableCases`, `StructuralEM`
        or `ExpectationMaximisation`. By default they are refused.
    groups
        Name of the column of a table that says to which group (site, clinic, batch, subject) each
        row belongs. It is not a variable: the mean of each group is removed from all others, so
        that groups of different levels cause no edges.
    transform
        A step that replaces numbers of a table before: `NormalScores`, or `QuantileBins`,
        `FixedBins` or `MDLBins`, which cut them into levels. ``solution.reading.maps`` keeps it.
    seed
        Random seed. The same seed gives the same graph.
    time_limit
        Stop after this many seconds and return the best graph so far. Reading a table is included,
        also one of an engine: it is checked after each batch of rows and each query, and
        `TimeLimitError` is raised if there is no graph yet. Waiting for the sites of a federation
        is not included. Sums of a table in memory are computed in any case: with 10,000 columns
        that takes tens of seconds, and a warning says so before. `PrivateK2` and `StructureOnly`
        have no graph before their end: they raise `AbortedError`, and the next call resumes the
        run.
    progress
        True, False, or a function that is called with a :class:`~isthmus.watch.Progress`. By
        default progress is shown if standard error is a terminal and the search takes long.

    Returns
    -------
    Solution or PAGSolution
        The graph, its score, and methods to fit, plot, save and report it. Searches that allow for
        hidden common causes give a `PAGSolution` instead, with ``solution.pag``. Ctrl-C during the
        search also returns a solution: the best graph so far. It raises `KeyboardInterrupt` if
        there is none yet, as in a computation on secret shares.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> solution = ist.learn(data)
    >>> solution.dag.parents("either")
    ('tub', 'lung')
    >>> knowledge = ist.Knowledge(roots=["smoke"])
    >>> ist.learn(data, score=ist.BDeu(), knowledge=knowledge).dag.parents("smoke")
    ()
    """
    seed, time_limit = check_seed(seed), check_time_limit(time_limit)
    check_progress(progress)
    begin = time.monotonic()
    options: dict[str, Any] = {
        "knowledge": knowledge,
        "kinds": kinds,
        "missing": missing,
        "groups": groups,
    }
    joint = prepare_jointly(data, search, score=score, **options)
    if joint is not None:
        check_transform(transform, data)
        refuse_probabilities(check_knowledge(knowledge), repr(joint.search))
        result, status = _drive(partial(joint.learn, seed), joint.search, time_limit, progress)
        return joint.solution(result, status, knowledge, seed)
    problem = prepare(
        data,
        score=score,
        search=search,
        **options,
        structural_em=True,
        requests=True,
        time_limit=time_limit,
        transform=transform,
        pag=True,
    )
    until = math.inf if time_limit is None else begin + problem.waited + time_limit
    again = Again(data, transform, options, search, seed, progress, until)
    sentence, default = "", score is None
    if default:
        problem, sentence = test_of_curves(problem, again)
    if search is None:
        search, reason = choose_search(problem.schema, problem.objective)
        search, reason = within_tables(search, reason, problem.statistics)
    else:
        reason = "as requested"
    spent = time.monotonic() - begin - problem.waited
    if time_limit is not None:
        time_limit -= spent
    require_capability(problem.score, problem.objective.capabilities, search.accepts, search)
    rng = np.random.default_rng(seed)
    requesting = RequestedSearch.of(problem, search, seed)
    work = (
        requesting
        or OnDemandSearch.of(problem, search, seed)
        or partial(search.search, problem.objective, problem.constraints, rng)
    )
    completing = StructuralEMSearch.of(problem, search, work, rng)
    result, status = _drive(completing or work, search, time_limit, progress)
    status = _without_time(status, time_limit, spent)
    if completing is not None:
        problem = completing.completed(problem)
    dag = DAG.from_parents(problem.objective.nodes, result.parents)
    if requesting is not None:
        problem = requesting.completed(problem, dag)
    unheld = f" {problem.unheld}" if problem.unheld else ""
    choice = (
        f"Score {described(problem.score)} ({problem.score_reason}); "
        f"search {described(search)} ({reason}).{sentence}{unheld}"
    )
    value, equivalent = result.score, problem.objective.equivalent
    explained, ranked, on_scores, of_search = False, False, False, result.notes
    lines = None
    if default and fits_lines(problem) and not isinstance(result, PAGResult):
        challenged = challenge(problem, dag, again)
        choice += f" {challenged.sentence}"
        on_scores = bool(challenged.problem.reading.maps) and not problem.reading.maps
        status, problem = challenged.status(status), challenged.judge(problem)
        explained, ranked, lines = challenged.explained, challenged.ranked, challenged.lines()
        if challenged.changed or explained:
            dag, of_search = challenged.dag, challenged.notes
            value = LOCAL_SCORES.require(problem.objective).total(dag)
            equivalent = not challenged.directed
    objective = problem.objective
    notes = (
        *notes_on(problem, dag, named=not default and time_limit is None, ranked=ranked),
        *of_search,
    )
    provenance = Provenance.of_call(
        "learn", seed, score=problem.plain_score, search=search, **options, transform=transform
    )
    if isinstance(result, PAGResult):
        return PAGSolution(
            pag=result.pag,
            status=status,
            disclosure=problem.source.disclosure(),
            choice=choice,
            knowledge=knowledge,
            notes=notes,
            reading=problem.reading,
            details=result.details,
            statistics_kept=LearnedStatistics.of(problem),
            provenance=provenance,
        )
    learn_again = cast(
        "Callable[[Moments], Solution]",
        partial(
            learn,
            score=problem.score,
            search=search,
            knowledge=knowledge,
            seed=seed,
            progress=False,
        ),
    )
    known = problem.knowledge
    nodes = objective.nodes
    identified = problem.statistics.identified(dag)
    identified += tuple((nodes[a], nodes[b]) for a, b in result.identified)
    identified = tuple(edge for edge in identified if edge not in known.required)
    known = replace(known, required=(*known.required, *identified))
    if objective.equivalent_given_targets is not None:
        # Within the class that the targets leave, the data tell no direction.
        equivalent = objective.equivalent_given_targets
    if objective.equivalent:
        dag = _with_levels_first(dag, known, problem.schema)
    return Solution(
        dag=dag,
        score=value,
        status=status,
        disclosure=problem.source.disclosure(),
        choice=choice,
        equivalent=equivalent,
        sense=objective.sense,
        knowledge=knowledge if known == Knowledge() else known,
        notes=notes,
        reading=problem.reading,
        details=result.details,
        statistics_kept=LearnedStatistics.of(
            problem,
            learn_again,
            getattr(search, "max_parents", None),
            explained=explained,
            lines=lines,
            on_scores=on_scores,
        ),
        provenance=provenance,
        identified=identified,
    )


def _without_time(status: Status, time_limit: float | None, spent: float) -> Status:
    """Say so if reading took all of the time."""
    if time_limit is None or time_limit > 0.0 or status.ending is not Ending.TIME_LIMIT:
        return status
    message = (
        f"reading the data and computing the statistics took {spent:.2g} s, so the search had "
        "no time. Give a time_limit of several times that, or fewer columns."
    )
    return replace(status, message=message)


def _with_levels_first(dag: DAG, known: Knowledge, schema: Schema) -> DAG:
    """Return a graph of the same class whose open edges lead from categories to numbers.

    Parameters of a mixed network depend on these directions: a mean for each level and a regression
    of the levels on a number are different models. The first is the one that moments determine.
    """
    levels = {v.name for v in schema.variables if v.kind is Kind.DISCRETE}
    if not levels or levels >= {*dag.nodes}:
        return dag
    cpdag = dag.cpdag(known)
    ends = (pair for a, b in cpdag.undirected for pair in ((a, b), (b, a)))
    first = sorted((a, b) for a, b in ends if a in levels and b not in levels)
    return cpdag.preferred_dag([*first, *dag.edges])


def solve(
    table: ScoreTable,
    *,
    search: AnySearch | None = None,
    knowledge: Knowledge | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
) -> Solution:
    """Learn a graph from a table of scored parent sets.

    Parameters
    ----------
    table
        From :func:`~isthmus.parent_sets`, or read by ``ScoreTable.load``.
    search
        A search that accepts score tables; :class:`~isthmus.AStar` by default.
    knowledge
        Forbidden edges. Pass required edges to :func:`~isthmus.parent_sets` instead.
    seed
        Random seed. The same seed gives the same graph.
    time_limit
        Stop after this many seconds and return the best graph so far.
    progress
        As for :func:`~isthmus.learn`.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=1000, seed=1)
    >>> table = ist.parent_sets(data, score=ist.BIC())
    >>> ist.solve(table).dag.parents("either")
    ('tub', 'lung')
    """
    seed, time_limit = check_seed(seed), check_time_limit(time_limit)
    check_progress(progress)
    if PARENT_SETS not in getattr(table, "capabilities", ()):
        raise ArgumentError(
            f"solve takes a ScoreTable; {a_type(table)} was given. Make one with "
            "parent_sets(data), or learn from data with learn(data)."
        )
    search = AStar() if search is None else check_search(search)
    refuse_probabilities(check_knowledge(knowledge), "a table of scored parent sets")
    bound = check_knowledge(knowledge).bind(table.nodes)
    require_capability(table, table.capabilities, search.accepts, search)
    work = partial(search.search, table, bound, np.random.default_rng(seed))
    result, status = _drive(work, search, time_limit, progress)
    return Solution(
        dag=DAG.from_parents(table.nodes, result.parents),
        score=result.score,
        status=status,
        disclosure=Disclosure.none(),
        choice=f"A score table of {len(table)} parent sets; search {search!r}.",
        equivalent=table.equivalent,
        sense=table.sense,
        knowledge=knowledge,
        notes=result.notes,
        details=result.details,
        provenance=Provenance.of_call("solve", seed, search=search, knowledge=knowledge),
    )


def _drive(
    work: Callable[[Watch], SearchResult],
    search: AnySearch,
    time_limit: float | None,
    progress: bool | Callable[[Progress], None] | None,  # noqa: FBT001 - as given by the user
) -> tuple[SearchResult, Status]:
    """Search, and show progress."""
    with reporter_for(progress) as report:
        return drive(work, type(search).__name__, time_limit=time_limit, report=report)
