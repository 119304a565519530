"""Learn again with curves where a graph of lines does not survive them.

`learn` begins with lines. The graph is then challenged by curves at the table's own number of rows
(`isthmus.claims.curves`). If it survives, it is the answer. Otherwise the effects that need curves
get them, and the search runs again, until nothing is left to explain. Columns are also replaced by
their normal scores, and the scale on which the graph explains more is kept; an edge must hold on
both.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, final

import numpy as np

from isthmus.claims.curves import (
    CurvedEdges,
    challenge_by_curves,
    doubts_of_other_scale,
    looks_normal,
)
from isthmus.errors import IsthmusError, MismatchError, counted
from isthmus.graphs import DAG, BoundKnowledge
from isthmus.graphs.knowledge import without_others
from isthmus.kernels.greedy import begin_hill_climb
from isthmus.objectives import LOCAL_SCORES, LocalScore
from isthmus.objectives.additive import CURVES, CurvedScore
from isthmus.options import described
from isthmus.scores import (
    AdditiveEBIC,
    BGe,
    DegenerateGaussian,
    FisherZ,
    GaussianBIC,
    GaussianEBIC,
    NonlinearLikelihoodRatio,
)
from isthmus.scores.base import EdgePrior
from isthmus.searches import XGES
from isthmus.statistics import Chebyshev, Kind, Moments
from isthmus.tables import NormalScores, Transform, WithFeatures
from isthmus.tables.dispatch import knows_kinds
from isthmus.verbs.arguments import AnyScore, AnySearch
from isthmus.verbs.defaults import choose_search, reporter_for
from isthmus.verbs.notes_rows import listed
from isthmus.verbs.prepare import MOST_COLUMNS, Problem, bound, prepare, with_prior
from isthmus.watch import Ending, Progress, Status, drive

_ROUNDS = 8
"""Times that the search is repeated with further curves; two or three are usual."""
_SEARCHES = 4
"""As many searches as are usual, between which the default divides its starts."""
_CLIMBED = 40
"""With more columns, a graph of lines is changed edge by edge instead of searching anew: a family
of many curves takes a hundred times as long as one of lines."""
_DENSE = 4
"""With more edges per column as well, it is only challenged: learning again from 86 columns with
400 edges took minutes."""
_STAGED = 3e8
"""Products of functions (rows times squared columns) above which the first look is at cubics."""
_NORMAL_ROOTS = 0.8
"""Share of the variables without parents that must look normal if curves shall tell directions:
where noise is skewed, curves make causes of straight effects look like effects. See
``benchmarks/curves/straight.py``."""


_SKEWED = 0.5
"""Skewness of two columns from which an edge between them needs another scale: noise that grows
with a cause makes edges between its effects. Of five log-normal effects (skewness 2), a federation
of 20,000 rows joined five pairs on average, and one of 5,000 rows none."""


class OutOfTimeError(Exception):
    """The time was over before a search with curves had ended."""


@final
@dataclass(frozen=True, eq=False)
class Again:
    """How a verb reads its data and searches them, to do both again with curves.

    Attributes
    ----------
    data, transform
        As they were given to the verb.
    options
        Further arguments of `prepare`, without a search.
    search
        The search if the user named one.
    seed, progress
        As they were given to the verb.
    until
        Time of ``time.monotonic()`` at which a search must have ended.
    """

    data: object
    transform: Transform | None
    options: Mapping[str, Any]
    search: AnySearch | None = None
    seed: int = 0
    progress: bool | Callable[[Progress], None] | None = False
    until: float = math.inf

    def improve(self, problem: Problem, dag: DAG) -> DAG:
        """Learn a graph with another score, from one that is near."""
        if self.search is None and len(dag.nodes) > _CLIMBED and dag.edges:
            return self._climb(problem, dag, problem.constraints)
        return self.learn(problem)

    def within(self, problem: Problem, dag: DAG) -> DAG:
        """Turn and remove edges of a graph, and add none between other pairs."""
        known = without_others(problem.knowledge, dag).bind(problem.objective.nodes)
        try:
            return self._climb(problem, dag, known) if dag.edges else dag
        except OutOfTimeError:
            return dag

    def _climb(self, problem: Problem, dag: DAG, known: BoundKnowledge) -> DAG:
        """Change single edges of a graph, of which the strongest one stays."""
        score = LOCAL_SCORES.require(problem.objective)
        place = {name: i for i, name in enumerate(score.nodes)}
        parents = [[place[p] for p in dag.parents(name)] for name in score.nodes]

        def strength(edge: tuple[int, int]) -> float:
            parent, child = edge
            rest = [p for p in parents[child] if p != parent]
            return score.local(child, parents[child]) - score.local(child, rest)

        parent, child = max(((p, c) for c, own in enumerate(parents) for p in own), key=strength)
        run = begin_hill_climb(
            score.kernel, seed=self.seed, required=known.required, forbidden=known.forbidden
        )
        run.start(parents, parent=parent, child=child, restarts=0, nearby=False)
        while not run.step():
            if time.monotonic() >= self.until:
                raise OutOfTimeError
        return DAG.from_parents(score.nodes, tuple(map(tuple, run.best()[0])))

    def learn(self, problem: Problem, *, searches: int = _SEARCHES) -> DAG:
        """Learn a graph with another score; `OutOfTimeError` if that does not end in time."""
        search = self.search
        if search is None or LOCAL_SCORES not in search.accepts or needs_classes(search, problem):
            search, _ = choose_search(problem.schema, problem.objective, runs=searches)
        left = None if math.isinf(self.until) else self.until - time.monotonic()
        if left is not None and left <= 0.0:
            raise OutOfTimeError
        rng = np.random.default_rng(self.seed)
        work = partial(search.search, problem.objective, problem.constraints, rng)
        with reporter_for(self.progress) as report:
            result, status = drive(work, type(search).__name__, time_limit=left, report=report)
        if status.ending in (Ending.TIME_LIMIT, Ending.INTERRUPTED):
            raise OutOfTimeError
        return DAG.from_parents(problem.objective.nodes, result.parents)

    def on_normal_scores(self) -> Problem | None:
        """Prepare the data with their normal scores; None if the user chose the scale."""
        if self.transform is not None or knows_kinds(self.data):
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table was read before, and its notes given
            try:
                return prepare(self.data, **self.options, transform=NormalScores())
            except IsthmusError:
                return None


@final
@dataclass(frozen=True, eq=False)
class Challenged:
    """What curves made of a graph of lines.

    Attributes
    ----------
    problem
        The data, with the score that the graph was learned with.
    dag
        The graph.
    sentence
        What was done, for the reader of the result.
    changed
        Whether lines were not enough.
    directed
        Whether the score tells directions that the equivalence class of the graph leaves open.
    explained
        Whether edges were left out that the score of the problem would have, because curves or
        another scale of the columns explain them. The graph is then the best one without them.
    other
        The graph on the other scale of the columns, if there is one.
    ranked
        Whether the graph was also learned from normal scores, so that tails and skewness were
        considered.
    notes
        What the result must say of edges that were not compared on another scale.
    """

    problem: Problem
    dag: DAG
    sentence: str
    changed: bool = False
    directed: bool = False
    explained: bool = False
    other: _Refined | None = None
    ranked: bool = False
    notes: tuple[str, ...] = ()

    def judge(self, problem: Problem) -> Problem:
        """Return the data with the score of the graph."""
        return judged_by(problem, self.problem) if self.changed else problem

    def score_of_lines(self) -> DegenerateGaussian | None:
        """Return the score without curves of the same columns, if curves do not tell directions.

        Graphs that are equivalent have the same score by it. By one with curves they have not, so
        its margins mix the direction of an edge with how well curves and lines fit.
        """
        score = self.problem.plain_score
        if not self.changed or self.directed or not isinstance(score, AdditiveEBIC):
            return None
        return DegenerateGaussian(gamma=score.gamma)

    def lines(self) -> LocalScore | None:
        """Return that score of the data."""
        score = self.score_of_lines()
        if score is None:
            return None
        return LOCAL_SCORES.require(with_score(self.problem, score).objective)

    def with_doubts(self, gamma: float) -> Challenged:
        """Lower the score of edges that are not in the graph and gain less on the other scale.

        Methods that weigh or search many graphs then ask that edges hold on both, too.
        """
        if self.other is None:
            return self
        model, other = _Refined(self.problem, self.dag), self.other
        doubts = doubts_of_other_scale(model.full(gamma), other.full(gamma), self.dag)
        if not doubts:
            return self
        score = EdgePrior(self.problem.plain_score, self.problem.knowledge, doubts)
        objective = score.bind(self.problem.statistics)
        return replace(self, problem=replace(self.problem, score=score, objective=objective))

    def status(self, lines: Status) -> Status:
        """Return how the search ended, given how that with lines did."""
        if not self.changed and not self.explained:
            return lines
        message = (
            "the search was repeated with curves until no effect needed another one."
            if self.changed
            else "no edge that is turned or removed improves the score."
        )
        return replace(lines, ending=Ending.CONVERGED, message=message)


def challenge(problem: Problem, dag: DAG, again: Again) -> Challenged:
    """Challenge a graph of lines by curves, and learn again with curves if it does not survive."""
    reason = _why_not(problem)
    if reason:
        return Challenged(problem, dag, _not_challenged(reason))
    if time.monotonic() >= again.until:
        return Challenged(problem, dag, _not_challenged("no time was left"))
    weight = gamma_of(problem)
    try:
        model, found = _compared(problem, dag, weight)
    except IsthmusError as error:
        return Challenged(problem, dag, _not_challenged(str(error).rstrip(".")))
    if found.survives:
        return Challenged(problem, dag, _SURVIVED)
    if len(dag.nodes) > _CLIMBED and len(dag.edges) > _DENSE * len(dag.nodes):
        sentence = _only_challenged(problem, found)
        dag = again.within(problem, found.dag) if found.explained else dag
        return Challenged(problem, dag, sentence, explained=bool(found.explained))
    try:
        best = _refined(model, dag, again)
        directed = False
        if _has_shapes(model):
            near = len(best.dag.nodes) > _CLIMBED
            free = again.improve(model, best.dag) if near else again.learn(model, searches=1)
            directed = _roots_look_normal(model, free)
            best = _Refined(model, free) if directed else best
        other = _on_normal_scores(again, weight)
    except OutOfTimeError:
        sentence = "Curves gain over lines, and no time was left to learn with them."
        return Challenged(problem, dag, sentence)
    if other is not None and other.gain() > best.gain():
        best, other, directed = other, best, False
    agreed, explained = best.dag, False
    if other is not None:
        also = challenge_by_curves(other.full(weight), agreed, problem.knowledge, other_scale=True)
        explained = bool(also.explained)
        agreed = again.within(best.problem, also.dag) if explained else agreed
    scale = " on normal scores" if best.problem.reading.maps and not problem.reading.maps else ""
    bent = _number_of_curves(best.problem, agreed)
    sentence = (
        f"Challenged by curves at n = {problem.statistics.number_of_rows:,}, which lines did not "
        f"survive: learned again with `AdditiveEBIC`{scale}{_instead(again, best.problem)}; "
        f"{counted(bent, 'edge')} {'has a curve' if bent == 1 else 'have curves'}."
    )
    ranked = any(each is not None and each.problem.reading.maps for each in (best, other))
    return Challenged(
        best.problem,
        agreed,
        sentence,
        changed=True,
        directed=directed,
        explained=explained,
        other=other,
        ranked=ranked,
        notes=_of_one_scale(best, agreed) if knows_kinds(again.data) else (),
    )


def needs_classes(search: AnySearch, problem: Problem) -> bool:
    """Whether a search needs a score that gives equivalent graphs one value, and has another."""
    return isinstance(search, XGES) and not LOCAL_SCORES.require(problem.objective).equivalent


def _instead(again: Again, model: Problem) -> str:
    if again.search is None or not needs_classes(again.search, model):
        return ""
    return " and the default search, as XGES takes no score that tells directions"


def _compared(problem: Problem, dag: DAG, gamma: float) -> tuple[Problem, CurvedEdges]:
    """Return the data with functions of the columns, and what these say of a graph of lines.

    If sums of many products would take long, cubics decide whether further functions are needed.
    """
    if problem.statistics.number_of_rows * (4.0 * len(problem.schema)) ** 2 > _STAGED:
        with suppress(MismatchError):  # a federation sums only the functions that its study fixes
            model = with_score(problem, AdditiveEBIC(gamma, basis=Chebyshev(3, 3.0)), _CURVED)
            found = challenge_by_curves(_curved(model), dag, problem.knowledge)
            if found.survives:
                return model, found
    model = with_score(problem, AdditiveEBIC(gamma), _CURVED)
    return model, challenge_by_curves(_curved(model), dag, problem.knowledge)


def _only_challenged(problem: Problem, found: CurvedEdges) -> str:
    """Say what curves explain and add, of a graph that is too dense to learn it again."""
    parts = []
    if found.explained:
        gone = counted(len(found.explained), "edge")
        parts.append(f"explain {gone}, which {'is' if gone == '1 edge' else 'are'} left out")
    if found.bent or found.missing:
        parts.append(f"add to {counted(len(found.bent) + len(found.missing), 'pair')}")
    return (
        f"Challenged by curves at n = {problem.statistics.number_of_rows:,}: they "
        f"{', and they '.join(parts)}. The graph is too dense to learn it again with curves in "
        "seconds; score=AdditiveEBIC() does so in minutes."
    )


def _not_challenged(reason: str) -> str:
    return f"Not challenged by curves: {reason}."


_FEWEST_ROWS = 12
"""With fewer, no square, exponential or absolute value was found in 20 tables of each, and with as
many in 17 or more (`tests/claims/test_curves.py`)."""
_SURVIVED = "Challenged by curves, which find nothing that lines miss."


def fits_lines(problem: Problem) -> bool:
    """Whether the graph was learned with the default score of lines, from all rows alike."""
    lines = (GaussianEBIC, DegenerateGaussian)
    return isinstance(problem.plain_score, lines) and isinstance(problem.score, (*lines, EdgePrior))


def challenge_default(problem: Problem, again: Again) -> Challenged:
    """Challenge the graph of lines of data that are prepared for another default score.

    Samplers, tests and bootstraps do not learn one graph by lines, so it is learned here.
    """
    reason = _why_not(problem)
    if reason:
        return Challenged(problem, DAG(problem.objective.nodes, []), _not_challenged(reason))
    mixed = problem.schema.of_kind(Kind.DISCRETE)
    lines = with_score(problem, DegenerateGaussian(gamma=0.5) if mixed else GaussianEBIC())
    try:
        return challenge(lines, again.learn(lines), again).with_doubts(gamma_of(lines))
    except OutOfTimeError:
        return Challenged(
            problem, DAG(problem.objective.nodes, []), _not_challenged("no time was left")
        )


def test_of_curves(problem: Problem, again: Again) -> tuple[Problem, str]:
    """Return the data with a test that sees curves if lines do not survive them, and a sentence.

    Problems with other scores than the default test of lines are returned as they are.
    """
    if not isinstance(problem.score, FisherZ):
        return problem, ""
    challenged = challenge_default(problem, again)
    sentence = f" {challenged.sentence}"
    if not challenged.changed:
        return problem, sentence
    model = with_score(challenged.problem, NonlinearLikelihoodRatio(), _CURVED)
    return judged_by(problem, model), sentence


def judged_by(problem: Problem, model: Problem) -> Problem:
    """Return data as they were read, with the score and the objective of a larger model of them.

    What follows from a graph, such as effects, is computed from the data in their own units.
    """
    return replace(
        problem,
        score=model.score,
        plain_score=model.plain_score,
        score_reason=_CURVED,
        objective=model.objective,
        unheld=model.unheld,
    )


def with_score(problem: Problem, score: AnyScore, reason: str = "") -> Problem:
    """Return the same data with another score, and with the functions that it needs."""
    source, statistics = problem.source, problem.statistics
    if score.basis is not None and not statistics.schema.has_features:
        if problem.wide is not None and score.basis == AdditiveEBIC().basis:
            source, statistics = problem.wide
        else:
            source = WithFeatures(source, score.basis)
            statistics = source.moments()
    chosen = with_prior(score, problem.knowledge, source) if problem.knowledge.has_prior else score
    objective, _, unheld = bound(chosen, statistics, source)
    return replace(
        problem,
        source=source,
        statistics=statistics,
        score=chosen,
        plain_score=score,
        score_reason=reason or problem.score_reason,
        objective=objective,
        unheld=unheld,
    )


def gamma_of(problem: Problem) -> float:
    """Return the weight of the extended penalty of a score of lines."""
    score = problem.plain_score
    return score.gamma if isinstance(score, (GaussianEBIC, DegenerateGaussian)) else 0.5


def _why_not(problem: Problem) -> str:
    """Return why a graph cannot be challenged; empty if it can."""
    schema = problem.schema
    if not schema.of_kind(Kind.CONTINUOUS):
        return "all columns are discrete"
    if len(schema) < 2:
        return "there is one column"
    if problem.statistics.number_of_rows < _FEWEST_ROWS:
        return f"there are fewer than {_FEWEST_ROWS} rows"
    if len(schema) > MOST_COLUMNS:
        return f"there are more than {MOST_COLUMNS} columns"
    if not isinstance(problem.statistics, Moments) or problem.source.has_missing:
        return "functions of the columns cannot be summed here"
    return ""


def _curved(problem: Problem) -> CurvedScore:
    return CURVES.require(problem.plain_score.bind(problem.statistics))


def _moments(problem: Problem) -> Moments:
    assert isinstance(problem.statistics, Moments)
    return problem.statistics


_LINES = (GaussianBIC, GaussianEBIC, DegenerateGaussian, BGe)
_CURVED = "effects are curved"


@final
@dataclass(frozen=True, eq=False)
class _Refined:
    """A graph, and the problem whose objective it was learned with."""

    problem: Problem
    dag: DAG

    def gain(self) -> float:
        """Return by how much the graph is better than one without edges."""
        objective = self.full(gamma_of(self.problem))
        return objective.total(self.dag) - objective.total(DAG(self.dag.nodes, []))

    def full(self, gamma: float) -> CurvedScore:
        """Return the score in which all effects may be curved."""
        return AdditiveEBIC(gamma).bind(_moments(self.problem))


def _refined(model: Problem, dag: DAG, again: Again) -> _Refined:
    """Allow curves where they are needed and learn again, until no more are."""
    score = model.plain_score
    assert isinstance(score, AdditiveEBIC)
    full = score.bind(_moments(model))
    curves: frozenset[tuple[str, str]] = frozenset()
    problem = with_score(model, replace(score, curved=()), _CURVED)
    for _ in range(_ROUNDS):
        found = challenge_by_curves(full, dag, model.knowledge)
        dag = found.dag
        if found.curves <= curves:
            break
        curves |= found.curves
        problem = with_score(model, replace(score, curved=curves), _CURVED)
        dag = again.improve(problem, dag)
    return _Refined(problem, dag)


def _on_normal_scores(again: Again, gamma: float) -> _Refined | None:
    """Learn from normal scores, if the data can be replaced by them."""
    problem = again.on_normal_scores()
    if problem is None:
        return None
    model = with_score(problem, AdditiveEBIC(gamma), _CURVED)
    return _refined(model, again.learn(problem), again)


def _has_shapes(model: Problem) -> bool:
    """Whether the distributions of all columns are known, by which curves may tell directions.

    Moments within groups have no means, and an indicator is no Gaussian variable.
    """
    return _moments(model).groups is None and not model.schema.of_kind(Kind.DISCRETE)


def _roots_look_normal(model: Problem, dag: DAG) -> bool:
    """Whether the variables without parents look normal, so that curves tell directions.

    Their first four moments follow from the means of Chebyshev polynomials.
    """
    moments = _moments(model)
    means = moments.mean()
    normal = []
    for variable, (start, stop) in zip(moments.schema.variables, moments.blocks, strict=True):
        if dag.parents(variable.name) or stop - start < 5:
            continue
        t1, t2, t3, t4 = means[start + 1 : start + 5].tolist()
        second = (t2 + 1.0) / 2.0
        powers = (t1, second, (t3 + 3.0 * t1) / 4.0, (t4 + 8.0 * second - 1.0) / 8.0)
        normal.append(looks_normal(powers, moments.n))
    return bool(normal) and float(np.mean(normal)) >= _NORMAL_ROOTS


def note_on_lines(problem: Problem, dag: DAG) -> tuple[str, ...]:
    """Name the edges of a graph of lines that do not survive curves."""
    if not isinstance(problem.score, _LINES) or _why_not(problem):
        return ()
    try:
        _, found = _compared(problem, dag, gamma_of(problem))
    except IsthmusError:
        return ()
    parts = []
    if found.explained:
        parts.append(f"explain {_pairs(found.explained)}")
    if found.bent or found.missing:
        parts.append(f"add to {_pairs((*found.bent, *found.missing))}")
    if not parts:
        return ()
    note = (
        f"Leave out the score, or use AdditiveEBIC(): {described(problem.plain_score)} sees lines "
        f"only, and curves {' and '.join(parts)}."
    )
    return (note,)


def _pairs(edges: Sequence[tuple[str, str]]) -> str:
    """Return pairs of names for a note, at most three of them."""
    shown = ", ".join(f"{a} – {b}" for a, b in edges[:3])
    more = len(edges) - 3
    return f"{shown} and {more} more" if more > 0 else shown


def _of_one_scale(model: _Refined, dag: DAG) -> tuple[str, ...]:
    """Name skewed columns with edges among them, of data whose scale cannot be changed."""
    skewed = _skewed(_moments(model.problem))
    joined = {name for edge in dag.edges if {*edge} <= skewed for name in edge}
    if not joined:
        return ()
    names = [name for name in dag.nodes if name in joined]
    note = (
        f"Replace {listed(names, 10)} by their logarithms or normal scores where the rows are, and "
        "compare the edges among them: they are skewed, and noise that grows with a cause leads to "
        "false edges between its effects. Of tables, both scales are compared by default."
    )
    return (note,)


def _skewed(moments: Moments) -> set[str]:
    """Return the columns whose values, clipped at three standard deviations, are skewed."""
    scatter = moments.scatter() / moments.n
    # Within groups there are no means; the window of the functions is centred.
    means = np.zeros(len(scatter)) if moments.groups is not None else moments.mean()
    found = set()
    for variable, (start, _) in zip(moments.schema.variables, moments.blocks, strict=True):
        if variable.features is None or scatter[start + 1, start + 1] <= 0.0:
            continue
        first = start + 1  # T1 = x and T2 = 2 x² - 1
        second = scatter[first, first]
        third = scatter[first, first + 1] / 2.0 - 2.0 * means[first] * second
        if abs(third) > _SKEWED * second**1.5:
            found.add(variable.name)
    return found


def _number_of_curves(problem: Problem, dag: DAG) -> int:
    objective = CURVES.require(problem.plain_score.bind(problem.statistics))
    place = {name: i for i, name in enumerate(objective.nodes)}
    return sum(
        int((objective.degrees(place[v], [place[p] for p in dag.parents(v)]) > 0).sum())
        for v in dag.nodes
    )
