"""XGES against enumeration, against slow operators, and under knowledge."""

from __future__ import annotations

import ctypes
import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest
import tests.searches.slow as slow
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.searches.watching import Polls

from isthmus.errors import MismatchError
from isthmus.graphs import CPDAG, DAG, Knowledge
from isthmus.kernels.greedy import begin_xges
from isthmus.kernels.scoring import foreign_score
from isthmus.objectives import LocalScore, PythonLocalScore
from isthmus.scores import BIC, K2, GaussianBIC
from isthmus.searches import XGES, Progress, SearchResult, Watch, drive
from isthmus.statistics import CountPlan, Counts, Moments, Schema
from isthmus.testing import enumerate_dags
from isthmus.watch import Ending

if TYPE_CHECKING:
    import networkx as nx

NAMES = tuple(f"v{i:02d}" for i in range(70))


def objective(seed: int, d: int, n: int = 200, edges: int | None = None) -> LocalScore:
    x, _ = slow.linear_data(seed, n, d, d if edges is None else edges)
    return GaussianBIC().bind(Moments.from_array(Schema.continuous(NAMES[:d]), x))


def begin(
    search: XGES, local: LocalScore, knowledge: Knowledge | None = None
) -> Callable[[Watch], SearchResult]:
    bound = (knowledge or Knowledge()).bind(local.nodes)
    return partial(search.search, local, bound, np.random.default_rng(0))


def run(search: XGES, local: LocalScore, knowledge: Knowledge | None = None) -> SearchResult:
    found, status = drive(begin(search, local, knowledge), "test")
    assert status.ending is Ending.CONVERGED
    DAG.from_parents(local.nodes, found.parents)
    expected = sum(local.local(v, p) for v, p in enumerate(found.parents))
    assert found.score == pytest.approx(expected, rel=1e-10)
    return found


def screened(whole: LocalScore) -> LocalScore:
    """The same score, but extensions that do not gain are -inf when a search asks."""

    def called(data: int, child: int, parents: int, k: int, more: int, m: int, out: int) -> int:
        given = (ctypes.c_int64 * k).from_address(parents)
        added = (ctypes.c_int64 * m).from_address(more)
        values = whole.extensions(child, list(given), list(added))
        values[1:][values[1:] <= values[0]] = -np.inf
        ctypes.memmove(out, values.ctypes.data, values.nbytes)
        return 0

    callback = ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_int64,) * 7)(called)
    address = ctypes.cast(callback, ctypes.c_void_p).value or 0
    kernel = foreign_score(len(whole.nodes), (address, 0), keep=callback)
    return LocalScore(whole.nodes, kernel, equivalent=True)


class Pattern:
    """An essential graph as sets of indices, with everything done the slow way."""

    def __init__(self, graph: CPDAG) -> None:
        at = {name: i for i, name in enumerate(graph.nodes)}
        self.parents: list[set[int]] = [set() for _ in at]
        self.children: list[set[int]] = [set() for _ in at]
        self.neighbours: list[set[int]] = [set() for _ in at]
        for a, b in graph.directed:
            self.parents[at[b]].add(at[a])
            self.children[at[a]].add(at[b])
        for a, b in graph.undirected:
            self.neighbours[at[a]].add(at[b])
            self.neighbours[at[b]].add(at[a])
        self.adjacent = [
            p | c | n for p, c, n in zip(self.parents, self.children, self.neighbours, strict=True)
        ]

    def is_clique(self, nodes: set[int]) -> bool:
        return all(b in self.adjacent[a] for a, b in itertools.combinations(nodes, 2))

    def blocked(self, y: int, x: int, by: set[int]) -> bool:
        import networkx as nx

        paths: nx.DiGraph[int] = nx.DiGraph()
        paths.add_nodes_from(range(len(self.parents)))
        for v, ahead in enumerate(self.children):
            paths.add_edges_from((v, w) for w in ahead | self.neighbours[v])
        paths.remove_nodes_from(by)
        return not nx.has_path(paths, y, x)

    def insertions(self, local: LocalScore) -> Iterator[float]:
        for x, y in itertools.permutations(range(len(self.parents)), 2):
            if x in self.adjacent[y]:
                continue
            common = self.neighbours[y] & self.adjacent[x]
            for more in subsets(self.neighbours[y] - self.adjacent[x]):
                chosen = common | more
                if self.is_clique(chosen) and self.blocked(y, x, chosen):
                    yield gain(local, y, self.parents[y] | chosen, x)

    def deletions(self, local: LocalScore) -> Iterator[float]:
        for x, y in itertools.permutations(range(len(self.parents)), 2):
            if x in self.parents[y] | self.neighbours[y]:
                for chosen in subsets(self.neighbours[y] & self.adjacent[x]):
                    if self.is_clique(chosen):
                        yield -gain(local, y, (self.parents[y] | chosen) - {x}, x)


def subsets(nodes: set[int]) -> Iterator[set[int]]:
    for size in range(len(nodes) + 1):
        for chosen in itertools.combinations(sorted(nodes), size):
            yield set(chosen)


def gain(local: LocalScore, child: int, parents: set[int], more: int) -> float:
    return local.local(child, sorted(parents | {more})) - local.local(child, sorted(parents))


@pytest.mark.long
@pytest.mark.parametrize(("seed", "d"), [*((s, 6 + s) for s in range(10)), (0, 66)])
def test_every_class_on_the_way_is_scored_right(seed: int, d: int) -> None:
    local = objective(seed, d, edges=2 * d)
    search = begin_xges(local.kernel)
    visited = [-np.inf]
    while not search.step(0.0):
        if search.score == visited[-1]:
            continue
        parents, score = search.best()
        assert score == pytest.approx(search.score, rel=1e-9)
        dag = DAG.from_parents(local.nodes, parents)
        assert score == pytest.approx(local.total(dag), rel=1e-9)
        visited.append(search.score)
    assert len(visited) > d // 2
    assert visited == sorted(visited)


@pytest.mark.long
def test_four_nodes_against_all_543_graphs() -> None:
    reached = 0
    for seed in range(40):
        local = objective(seed, 4, edges=4)
        best = max(local.total(dag) for dag in enumerate_dags(local.nodes))
        found = run(XGES(), local)
        assert found.score <= best + 1e-9
        reached += found.score >= best - 1e-9
    assert reached >= 38


@pytest.mark.long
@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("extended", [False, True])
def test_no_operator_gains_at_the_end(seed: int, extended: bool) -> None:
    local = objective(seed, 6, n=60 + 10 * seed, edges=9)
    found = run(XGES(extended=extended), local)
    pattern = Pattern(DAG.from_parents(local.nodes, found.parents).cpdag())
    assert all(value <= 1e-5 for value in pattern.insertions(local))
    assert all(value <= 1e-5 for value in pattern.deletions(local))


def test_no_turn_gains_at_the_end() -> None:
    # A turn reverses one edge in one member; so does every member's every reversal.
    for seed in range(15):
        local = objective(seed, 5, n=100, edges=7)
        found = run(XGES(extended=False), local)
        pattern = DAG.from_parents(local.nodes, found.parents).cpdag()
        for member in pattern.members():
            for parents in slow.single_edge_changes(member.parent_indices()):
                total = sum(local.local(v, sorted(p)) for v, p in enumerate(parents))
                assert total <= found.score + 1e-5


def test_the_second_phase_is_never_worse_and_sometimes_better() -> None:
    better = 0
    for seed in range(12):
        local = objective(seed, 10, n=100, edges=25)
        first, both = run(XGES(extended=False), local), run(XGES(), local)
        assert both.score >= first.score - 1e-9
        better += both.score > first.score + 1e-6
    assert better > 0


def test_discrete_scores() -> None:
    rng = np.random.default_rng(1)
    a, b, c = rng.integers(0, 2, 500), rng.integers(0, 3, 500), rng.integers(0, 2, 500)
    noise = rng.random(500) < 0.1
    codes = {"a": a, "b": b, "c": c ^ noise, "d": np.where(noise, 0, (a + b) % 3)}
    local = BIC().bind(as_counts(codes))
    best = max(local.total(dag) for dag in enumerate_dags(local.nodes))
    assert run(XGES(), local).score == pytest.approx(best)


def as_counts(codes: dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]) -> Counts:
    from isthmus.tables import as_source

    return as_source(codes).counts(CountPlan.everything())


@pytest.mark.long
@given(
    seed=st.integers(0, 1000),
    required=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=4),
    forbidden=st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12),
    cut=st.integers(0, 6),
    extended=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_knowledge_is_obeyed(
    seed: int,
    required: set[tuple[int, int]],
    forbidden: set[tuple[int, int]],
    cut: int,
    extended: bool,
) -> None:
    must = {(a, b) for a, b in required if a < b}
    never = {(a, b) for a, b in forbidden if a != b} - must
    knowledge = Knowledge(
        required=[(NAMES[a], NAMES[b]) for a, b in must],
        forbidden=[(NAMES[a], NAMES[b]) for a, b in never],
        tiers=[t for t in (NAMES[:cut], NAMES[cut:6]) if t],
    )
    local = objective(seed, 6, edges=9)
    watch = Watch(stop=Polls(seed % 12))
    stopped = begin(XGES(extended=extended), local, knowledge)(watch)
    assert knowledge.allows(DAG.from_parents(local.nodes, stopped.parents))
    found = run(XGES(extended=extended), local, knowledge)
    assert knowledge.allows(DAG.from_parents(local.nodes, found.parents))


@pytest.mark.long
def test_best_graph_under_knowledge_is_found() -> None:
    knowledge = Knowledge(
        required=[(NAMES[2], NAMES[0])], forbidden=[(NAMES[0], NAMES[1])], roots=[NAMES[3]]
    )
    reached = 0
    for seed in range(10):
        local = objective(seed, 4, edges=4)
        allowed = [g for g in enumerate_dags(local.nodes) if knowledge.allows(g)]
        best = max(local.total(g) for g in allowed)
        reached += run(XGES(), local, knowledge).score >= best - 1e-9
    assert reached >= 8


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_max_parents(limit: int) -> None:
    found = run(XGES(max_parents=limit), objective(1, 8, edges=16))
    assert max(len(p) for p in found.parents) == limit


def test_a_python_score_gives_the_same_graph() -> None:
    compiled = objective(3, 8, edges=14)
    python = PythonLocalScore(compiled.nodes, compiled.local, equivalent=True)
    assert run(XGES(), compiled).parents == run(XGES(), python).parents


def test_values_of_extensions_that_do_not_gain_are_not_used() -> None:
    for seed in range(4):
        whole = objective(seed, 8, edges=14)
        assert run(XGES(), whole).parents == run(XGES(), screened(whole)).parents


def test_an_error_in_a_score_reaches_the_user() -> None:
    def broken(child: int, parents: tuple[int, ...]) -> float:
        if len(parents) > 1:
            raise ZeroDivisionError("the score of the user")
        return float(len(parents))

    local = PythonLocalScore(NAMES[:5], broken, equivalent=True)
    with pytest.raises(ZeroDivisionError, match="the score of the user"):
        run(XGES(), local)


def test_one_variable() -> None:
    assert run(XGES(), objective(0, 1, edges=0)).parents == ((),)


def test_a_score_that_is_not_equivalent_is_refused() -> None:
    rng = np.random.default_rng(0)
    local = K2().bind(as_counts({"a": rng.integers(0, 2, 20), "b": rng.integers(0, 3, 20)}))
    with pytest.raises(MismatchError, match="HillClimb"):
        begin(XGES(), local)(Watch())


@pytest.mark.parametrize("calls", [3, 40, 150, 400, 700])
def test_interruption_gives_the_best_so_far(calls: int) -> None:
    local = objective(2, 10, edges=25)
    counter = itertools.count()

    def interrupted(child: int, parents: tuple[int, ...]) -> float:
        if next(counter) == calls:
            raise KeyboardInterrupt
        return local.local(child, parents)

    python = PythonLocalScore(local.nodes, interrupted, equivalent=True)
    found, status = drive(begin(XGES(), python), "test")
    assert status.ending is Ending.INTERRUPTED
    empty = sum(local.local(v, ()) for v in range(10))
    assert found.score >= empty


def test_progress_says_where_the_search_is(monkeypatch: pytest.MonkeyPatch) -> None:
    local = objective(2, 10, n=100, edges=25)

    def slowly(child: int, parents: tuple[int, ...]) -> float:
        time.sleep(0.001)
        return local.local(child, parents)

    python = PythonLocalScore(local.nodes, slowly, equivalent=True)
    texts: set[str] = set()
    scores: list[float] = []

    def hear(progress: Progress) -> None:
        assert progress.done is None
        texts.add(progress.text.split(" ", 1)[1])
        scores.append(progress.score)

    monkeypatch.setattr("isthmus.watch._REPORT_INTERVAL", 0.0)
    found, status = drive(begin(XGES(), python), "test", report=hear)
    assert texts == {"changes", "deletions left to try"}
    assert scores[0] <= scores[-1] == pytest.approx(found.score)
    assert "improves the score" in status.message
