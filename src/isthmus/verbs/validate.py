"""Ask data whether they agree with a given graph.

Each pair without an edge is tested given the parents of the later one (the local Markov property),
and Holm's correction holds the level over all pairs. That was the best of four tests: see
``benchmarks/validate.py``. Fisher's C needs p-values that are independent of each other: numbers
are regressed on their predecessors one by one, and tables condition on the parents of both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import inf, isnan, log, nan
from typing import Any, NamedTuple, final
from warnings import catch_warnings, simplefilter

import numpy as np

from isthmus.errors import ArgumentError, DataError, DataWarning, counted
from isthmus.graphs import CPDAG, DAG, PAG, PDAG, Knowledge
from isthmus.graphs.names import bits
from isthmus.graphs.pag import separator
from isthmus.objectives import INDEPENDENCE_TESTS, IndependenceTest
from isthmus.results.validation import EdgeSupport, ImpliedIndependence, Shuffled, Validation
from isthmus.scores import FisherZ, MixedLikelihoodRatio
from isthmus.scores.tests import LikelihoodRatio
from isthmus.scores.unequal_spread import ChallengedTest, SpreadFromSums
from isthmus.statistics import CountPlan, Counts, Kind, Schema
from isthmus.tables import Missing, TimeUnit
from isthmus.verbs.arguments import (
    AnyScore,
    check_count,
    check_dag,
    check_knowledge,
    check_score,
    check_seed,
)
from isthmus.verbs.learn import learn
from isthmus.verbs.prepare import Problem, prepare, warn_of_reading

_SMALLEST = 1e-300
"""p-values below this count as this in Fisher's C."""

_SAME = 1e-9
"""Relative difference of scores up to which two graphs count as equivalent."""

_FROM_SUMS = (
    "The p-values are from sums, so they assume noise of constant variance and straight lines; no "
    "rows were at hand to challenge that."
)
_SPREAD_FROM_SUMS = (
    "The p-values are from sums: noise may vary with any one of the columns that are conditioned "
    "on, and only straight lines and, for mixed tables, curves of these are allowed for."
)


def validate(
    data: object,
    dag: DAG | CPDAG | PDAG | PAG | Knowledge,
    *,
    alpha: float = 0.05,
    test: AnyScore | None = None,
    knowledge: Knowledge | None = None,
    kinds: Mapping[str, Kind | TimeUnit | str] | None = None,
    missing: Missing | None = None,
    groups: str | None = None,
    permutations: int = 200,
    seed: int = 0,
) -> Validation:
    """Test whether data agree with a graph, and say where they object.

    A graph claims that variables without an edge are independent given some others. Each of these
    claims is tested, with a correction for their number. No test can see an edge too many, so the
    edges that the data do not show are listed, too. Which of two equivalent graphs is true cannot
    be tested.

    Parameters
    ----------
    data
        As for :func:`~isthmus.learn`. Columns that are not nodes of the graph are not used.
    dag
        The graph, as somebody drew it. Of an equivalence class, one member is tested, which has the
        same independences as the others. Of a PAG, each pair without an edge is tested given a set
        that separates the two; it has neither Fisher's C nor shuffled names. Of `Knowledge`, the
        best graph that agrees with it is learned: pairs that may have no edge are tested in it, and
        required edges. Directions that the data decide otherwise without it are listed, too.
    alpha
        Probability of any objection if the graph is true. Of knowledge alone it
        is not exact (see the guide): the graph is learned from the same rows.
    test
        The test of independence; by default partial correlations for numbers, likelihood ratios of
        tables for categories, and `MixedLikelihoodRatio` for both.
    knowledge
        Background knowledge that the graph is compared with.
    kinds, missing, groups
        As for :func:`~isthmus.learn`. With groups, independences are those within groups.
    permutations
        Number of times that the names of the graph are shuffled, to see whether it scores better
        than chance; 0 for none. Categories are scored in memory only.
    seed
        Random seed of the shuffles.

    Examples
    --------
    >>> import isthmus as ist
    >>> data = ist.datasets.asia(rows=5000, seed=1)
    >>> edges = [edge for edge in data.dag.edges if edge != ("smoke", "bronc")]
    >>> answer = ist.validate(data, ist.DAG(data.dag.nodes, edges))
    >>> answer.agrees
    False
    >>> print(answer.objections[0])
    smoke and bronc
    """
    only = dag if isinstance(dag, Knowledge) else None
    if isinstance(dag, Knowledge):
        dag, contradicted = _learned(data, dag, kinds, missing, groups)
    else:
        contradicted = ()
    graph = dag if isinstance(dag, PAG) else _dag_of(dag)
    if not 0.0 < alpha < 1.0:
        raise ArgumentError(f"alpha={alpha!r} was given; it must be between 0 and 1, such as 0.05.")
    seed = check_seed(seed)
    check_count(permutations, "permutations", least=0, optional=False)
    known = check_knowledge(knowledge)

    def choose(schema: Schema, within_groups: bool) -> tuple[AnyScore, str]:  # noqa: FBT001
        return _choose_test(schema.subset(graph.nodes), within_groups=within_groups)

    claims, edges = _of_pag(graph) if isinstance(graph, PAG) else _of_dag(graph)
    if only is not None:
        claims = [c for c in claims if not (only.permits(c.x, c.y) or only.permits(c.y, c.x))]
        edges = [c for c in edges if (c.x, c.y) in only.required]
    sets = [(c.x, c.y, *c.given) for c in (*claims, *edges)] + [(v,) for v in graph.nodes]
    problem = prepare(
        data,
        score=None if test is None else check_score(test),
        accepts=(INDEPENDENCE_TESTS,),
        kinds=kinds,
        missing=missing,
        groups=groups,
        dag=DAG(graph.nodes) if isinstance(graph, PAG) else graph,
        choose=choose,
        plan=CountPlan.sets(sets),
    )
    warn_of_reading(problem.reading)
    tests = _Tests(problem)
    remarks = list(tests.remarks())
    independences, left_out = _tested(claims, tests)
    if left_out:
        remarks.append(
            f"{counted(left_out, 'independence')} could not be tested: the parents determine one "
            "of the two variables, or have too many combinations."
        )
    everything = None
    if only is None and not isinstance(graph, PAG):
        everything = _everything(problem)
    drawn = DAG(()) if isinstance(graph, PAG) else graph
    return Validation(
        graph,
        problem.statistics.number_of_rows,
        float(alpha),
        independences,
        _support(edges, tests),
        None if everything is None else _fisher_c(claims, drawn, _Tests(everything)),
        None if everything is None else _shuffled(everything, drawn, permutations, seed),
        () if isinstance(graph, PAG) else _violated(graph, known),
        tuple(remarks),
        only,
        contradicted,
    )


def _learned(
    data: object,
    knowledge: Knowledge,
    kinds: Mapping[str, Kind | TimeUnit | str] | None,
    missing: Missing | None,
    groups: str | None,
) -> tuple[DAG, tuple[str, ...]]:
    """Return the best graph that agrees with knowledge, and directions that the data turn round."""
    options: dict[str, Any] = {"kinds": kinds, "missing": missing, "groups": groups}
    with catch_warnings():
        simplefilter("ignore", DataWarning)  # about the learned graph, which is not the answer
        bound = learn(data, knowledge=knowledge, **options).dag
        free = learn(data, **options).directions
    turned = (
        (a, b) for a, b in free.determined if knowledge.permits(b, a) > knowledge.permits(a, b)
    )
    margins = ((edge, free.margins.get(edge, inf)) for edge in turned)
    return bound, tuple(
        f"{a} → {b}" + (f" (by {margin:.1f} nats)" if margin < inf else "")
        for (a, b), margin in margins
    )


class _Claim(NamedTuple):
    """Two variables and others to condition on; for Fisher's C those of the union.

    Without an edge between them they are independent given the others. With an edge they would be
    if the edge were left out.
    """

    x: str
    y: str
    given: tuple[str, ...]
    union: tuple[str, ...] = ()


def _dag_of(graph: DAG | CPDAG | PDAG) -> DAG:
    return check_dag(graph.to_dag() if isinstance(graph, CPDAG | PDAG) else graph)


def _of_dag(graph: DAG) -> tuple[list[_Claim], list[_Claim]]:
    """Return a claim for each pair without an edge, and one for each edge.

    Both condition on the parents of the second variable, which is the later one.
    """
    claims = []
    for x, y in combinations(graph.topological_order(), 2):
        if not graph.has_edge(x, y):
            given = graph.parents(y)
            claims.append(_Claim(x, y, given, tuple({*given, *graph.parents(x)})))
    edges = [_Claim(a, b, tuple(p for p in graph.parents(b) if p != a)) for a, b in graph.edges]
    return claims, edges


def _of_pag(graph: PAG) -> tuple[list[_Claim], list[_Claim]]:
    """Return the same of a graph with hidden causes, given sets that separate the two."""
    claims = [_Claim(x, y, given) for (x, y), given in graph.separating_sets().items()]
    member, observed, edges = graph.member(), len(graph.nodes), []
    for a, _, b in graph.edges:
        hidden = {h for h in member.nodes[observed:] if set(member.children(h)) == {a, b}}
        kept = [e for e in member.edges if set(e) != {a, b} and e[0] not in hidden]
        given = separator(DAG(member.nodes, kept), observed, graph.index(a), graph.index(b))
        edges.append(_Claim(a, b, tuple(graph.nodes[v] for v in bits(given or 0))))
    return claims, edges


def _choose_test(schema: Schema, *, within_groups: bool) -> tuple[AnyScore, str]:
    discrete = len(schema.of_kind(Kind.DISCRETE))
    if discrete == len(schema) and not within_groups:
        return LikelihoodRatio(), "all columns are discrete"
    if discrete == 0:
        return FisherZ(), "all columns are continuous"
    return MixedLikelihoodRatio(), "some columns are discrete"


@final
class _Tests:
    """The test of a problem, and the same test from sums alone, by names."""

    def __init__(self, problem: Problem) -> None:
        test = INDEPENDENCE_TESTS.require(problem.objective)
        self._test: IndependenceTest = test
        self._challenged = isinstance(test, ChallengedTest)
        self._sums: IndependenceTest = (
            problem.score.bind(problem.statistics) if self._challenged else test
        )
        self.tables = isinstance(problem.statistics, Counts)
        self._place = {name: i for i, name in enumerate(test.nodes)}

    def remarks(self) -> Sequence[str]:
        """Say what the p-values take for granted."""
        if isinstance(self._test, SpreadFromSums):
            return (_SPREAD_FROM_SUMS,)
        if self._challenged or self.tables:
            return ()
        return (_FROM_SUMS,)

    def p_value(self, x: str, y: str, given: Sequence[str]) -> float:
        """Return the p-value of an independence."""
        return self._asked(self._test, x, y, given)

    def from_sums(self, x: str, y: str, given: Sequence[str]) -> float:
        """Return the p-value of an independence from sums alone."""
        return self._asked(self._sums, x, y, given)

    def _asked(self, test: IndependenceTest, x: str, y: str, given: Sequence[str]) -> float:
        condition = sorted(self._place[v] for v in given)
        try:
            return float(test.p_values(self._place[x], condition, [self._place[y]])[0])
        except DataError:  # a table of too many cells
            return nan


def _tested(claims: Sequence[_Claim], tests: _Tests) -> tuple[tuple[ImpliedIndependence, ...], int]:
    """Return the tested independences, clearest objection first, and how many were left out."""
    p_values = [tests.p_value(c.x, c.y, c.given) for c in claims]
    order = sorted((k for k, p in enumerate(p_values) if not isnan(p)), key=p_values.__getitem__)
    found, largest = [], 0.0
    for rank, k in enumerate(order):
        largest = max(largest, min(1.0, p_values[k] * (len(order) - rank)))
        x, y, given = claims[k][:3]
        sums = tests.from_sums(x, y, given)
        found.append(ImpliedIndependence(x, y, given, p_values[k], sums, largest))
    return tuple(found), len(claims) - len(order)


def _support(edges: Sequence[_Claim], tests: _Tests) -> tuple[EdgeSupport, ...]:
    found = [EdgeSupport(c.x, c.y, c.given, tests.p_value(c.x, c.y, c.given)) for c in edges]
    return tuple(sorted(found, key=lambda e: -1.0 if isnan(e.p_value) else -e.p_value))


def _fisher_c(
    claims: Sequence[_Claim], graph: DAG, tests: _Tests
) -> tuple[float, int, float] | None:
    """Combine p-values that are independent of each other if the graph is true."""
    from scipy.special import chdtrc

    p_values = []
    before: dict[str, list[str]] = {v: [*graph.parents(v)] for v in graph.nodes}
    for x, y, _, union in claims:
        p_values.append(tests.p_value(x, y, union if tests.tables else before[y]))
        before[y].append(x)
    p_values = [p for p in p_values if not isnan(p)]
    if not p_values:
        return None
    c = -2.0 * sum(log(max(p, _SMALLEST)) for p in p_values)
    freedom = 2 * len(p_values)
    return c, freedom, float(chdtrc(freedom, c))


def _everything(problem: Problem) -> Problem | None:
    """Return the problem with all tables, which are only asked for in memory."""
    if not isinstance(problem.statistics, Counts):
        return problem
    if not problem.source.in_memory:
        return None
    counts = problem.source.counts(CountPlan.sets([problem.objective.nodes]))
    return replace(problem, statistics=counts, objective=problem.score.bind(counts))


def _shuffled(problem: Problem, graph: DAG, permutations: int, seed: int) -> Shuffled | None:
    """Score the graph with its names shuffled."""
    if not permutations:
        return None
    score = INDEPENDENCE_TESTS.require(problem.objective).local_score()
    parents = graph.reorder(score.nodes).parent_indices()

    @cache
    def family(child: int, own: frozenset[int]) -> float:
        return score.local(child, sorted(own))

    def total(names: Sequence[int]) -> float:
        return sum(
            family(names[v], frozenset(names[p] for p in own)) for v, own in enumerate(parents)
        )

    rng = np.random.default_rng(seed)
    own = total(range(len(parents)))
    others = [total(rng.permutation(len(parents)).tolist()) for _ in range(permutations)]
    close = _SAME * max(1.0, abs(own))  # sums of the same terms in another order differ a little
    equal = sum(abs(other - own) <= close for other in others)
    at_least = sum(other >= own - close for other in others)
    share = (1 + at_least) / (1 + permutations)
    return Shuffled(own, max(others), share, permutations, equal)


def _violated(graph: DAG, knowledge: Knowledge) -> tuple[str, ...]:
    """Return what contradicts background knowledge."""
    if knowledge.allows(graph):
        return ()
    forbidden = [f"{a} → {b}" for a, b in graph.edges if not knowledge.permits(a, b)]
    absent = [f"{a} → {b}" for a, b in knowledge.required if not graph.has_edge(a, b)]
    return (
        *(f"the edge {edge} is forbidden." for edge in forbidden),
        *(f"the edge {edge} is required, and missing." for edge in absent),
    )
