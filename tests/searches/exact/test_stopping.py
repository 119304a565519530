"""Searches on score tables stop in time, at the sizes at which they once did not."""

from __future__ import annotations

import _thread
import math
import threading
import time
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from tests.objectives.problems import gaussian_score
from tests.patience import LATENESS
from tests.searches.watching import Polls

import isthmus as ist
from isthmus.graphs import DAG, Knowledge
from isthmus.objectives import LocalScore, list_parent_sets
from isthmus.results import Ending
from isthmus.scores import BIC, BDeu, GaussianBIC
from isthmus.searches import ASOBS, ILP, OBS, AStar, KnownOrder, RBNets, SubsetDP, Watch, drive
from isthmus.searches.astar import group_nodes
from isthmus.searches.near_best import Component

pytestmark = [
    pytest.mark.timing,
    pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning"),
]

SCIP = pytest.mark.skipif(find_spec("pyscipopt") is None, reason="the extra [ilp] is not there")
JAX = pytest.mark.skipif(find_spec("jax") is None, reason="the extra [numerics] is not there")
SEARCHES: list[Any] = [
    AStar(),
    pytest.param(ILP(), marks=SCIP),
    OBS(),
    ASOBS(),
    pytest.param(RBNets(), marks=JAX),
]


@pytest.fixture(scope="module")
def thousand() -> dict[str, LocalScore]:
    rng = np.random.default_rng(0)
    levels = rng.integers(0, 3, size=(1000, 1000))
    names = [f"v{i}" for i in range(1000)]
    kinds = dict.fromkeys(names, ist.Kind.DISCRETE)
    counts: Any = ist.summarise(
        dict(zip(names, levels, strict=True)), plan=ist.CountPlan.everything(), kinds=kinds
    )
    numbers = rng.normal(size=(400, 1000))
    numbers[:, 1:] += 0.5 * numbers[:, :-1]
    moments: Any = ist.summarise(dict(zip(names, numbers.T, strict=True)))
    return {"levels": BIC().bind(counts), "numbers": GaussianBIC().bind(moments)}


def begin(search: Any, local: LocalScore) -> Any:
    # An objective computes its bound once; each test is about the first time.
    local.__dict__.pop("score_bound", None)
    return partial(search.search, local, Knowledge().bind(local.nodes), np.random.default_rng(0))


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize("kind", ["levels", "numbers"])
@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
def test_a_time_limit_with_a_thousand_variables(
    search: Any, kind: str, thousand: dict[str, LocalScore]
) -> None:
    local = thousand[kind]
    start = time.monotonic()
    run = begin(search, local)
    imported = time.monotonic() - start
    found, status = drive(run, "test", time_limit=0.5)
    assert time.monotonic() - start - imported < 0.5 + LATENESS
    assert status.ending is Ending.TIME_LIMIT
    DAG.from_parents(local.nodes, found.parents)
    total = sum(local.local(v, parents) for v, parents in enumerate(found.parents))
    assert found.score == pytest.approx(total)


@pytest.mark.timing
@pytest.mark.parametrize("after", [0.1, 0.6])
@pytest.mark.parametrize("kind", ["levels", "numbers"])
def test_ctrl_c_with_a_thousand_variables(
    kind: str, after: float, thousand: dict[str, LocalScore]
) -> None:
    run = begin(ASOBS(), thousand[kind])
    threading.Timer(after, _thread.interrupt_main).start()
    start = time.monotonic()
    _, status = drive(run, "test")
    assert status.ending is Ending.INTERRUPTED
    assert time.monotonic() - start < after + LATENESS


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize(
    "search", [*SEARCHES[:4], SubsetDP()], ids=lambda search: type(search).__name__
)
@pytest.mark.parametrize("score", [BIC(), BDeu()], ids=repr)
def test_a_time_limit_with_thousands_of_levels(search: Any, score: Any) -> None:
    rng = np.random.default_rng(0)
    table = {f"v{i}": rng.permutation(np.arange(9000) % 3000) for i in range(12)}
    kinds = dict.fromkeys(table, ist.Kind.DISCRETE)
    counts: Any = ist.summarise(table, plan=ist.CountPlan.everything(), kinds=kinds)
    local = score.bind(counts)
    start = time.monotonic()
    drive(begin(search, local), "test", time_limit=0.5)
    assert time.monotonic() - start < 0.5 + LATENESS


@pytest.mark.timing
def test_a_known_order_stops_while_sets_are_listed(thousand: dict[str, LocalScore]) -> None:
    local = thousand["numbers"]
    start = time.monotonic()
    found, _ = drive(begin(KnownOrder(local.nodes, exact=True), local), "test", time_limit=0.3)
    assert time.monotonic() - start < 0.3 + LATENESS
    total = sum(local.local(v, parents) for v, parents in enumerate(found.parents))
    assert found.score == pytest.approx(total)


@pytest.mark.timing
def test_steps_are_short_while_near_best_graphs_are_listed() -> None:
    table = list_parent_sets(gaussian_score(GaussianBIC(), 1, 300, 11), slack=1e6, max_parents=3)
    polls = Polls(math.inf, time.thread_time)
    watch = Watch(time_limit=2.0, stop=polls)
    known = Knowledge().bind(table.nodes)
    AStar(n_best=20_000).search(table, known, np.random.default_rng(0), watch)
    assert polls.longest < 0.3  # a collection of garbage alone may take half of it


@pytest.mark.timing
def test_sixty_four_nodes_are_grouped_soon() -> None:
    rng = np.random.default_rng(0)
    d, lines = 64, 50
    sets = rng.integers(0, 2**63, size=(d * lines, 1), dtype=np.uint64)
    for v in range(d):
        sets[v * lines : (v + 1) * lines] &= ~np.uint64(1 << v)
    scores = -np.sort(rng.random((d, lines)), axis=1).ravel()
    part = Component(tuple(range(d)), np.arange(d + 1) * lines, sets, scores, np.arange(d * lines))
    start = time.thread_time()
    groups = group_nodes(part, 20, Watch())
    assert time.thread_time() - start < 0.5
    assert sorted(v for group in groups for v in group) == list(range(d))
    assert max(map(len, groups)) <= 20
