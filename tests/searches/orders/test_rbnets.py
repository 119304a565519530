"""The agent of RBNets: its targets by hand, its walks against the table, and what it finds."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.objectives.problems import discrete_rows, discrete_score, gaussian_score
from tests.searches.watching import Polls

import isthmus as ist
from isthmus.errors import ArgumentError, MissingExtraError
from isthmus.graphs import DAG, BoundKnowledge, Knowledge
from isthmus.kernels._native import ScoreLines
from isthmus.objectives import ScoreTable, list_parent_sets
from isthmus.results import Ending
from isthmus.scores import BIC, GaussianBIC
from isthmus.searches import Watch, drive
from isthmus.searches.rbnets import RBNets, RBNetsVariant, Replay, Visits, Walks

pytestmark = [
    pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed"),
    pytest.mark.filterwarnings("ignore::isthmus.errors.DataWarning"),
]

SHORT = RBNets(episodes=15, batch=32)


def by_hand(layers: Any, sets: NDArray[Any], needed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Values of a network with one hidden layer and two heads, one set at a time."""
    (w1, b1), (w2, b2), (w3, b3) = [(np.asarray(w, float), np.asarray(b, float)) for w, b in layers]
    found = []
    for row in sets:
        hidden = np.maximum(row @ w1 + b1, 0.0)
        advantage = hidden @ w2 + b2
        open_ = legal(row, needed)
        mean = advantage[open_].mean() if open_ else 0.0
        found.append(advantage - mean + hidden @ w3 + b3)
    return np.array(found)


def legal(row: NDArray[Any], needed: NDArray[np.bool_]) -> list[int]:
    return [
        v for v in range(len(row)) if not row[v] and all(row[p] for p in needed[v].nonzero()[0])
    ]


@pytest.mark.long
def test_targets_of_double_learning_one_by_one() -> None:
    from isthmus.neural.dqn import QNetwork, ReplayBatch

    d = 4
    needed = np.zeros((d, d), np.bool_)
    needed[3, 0] = True
    rng = np.random.default_rng(0)
    network = QNetwork(
        needed, hidden=(8,), rate=0.05, discount=0.9, duelling=True, rng=np.random.default_rng(1)
    )
    # Terminal transitions stand among others; the others have targets of their own.
    sets = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1]])
    actions = np.array([1, 3, 3, 0, 2], np.int32)
    rewards = rng.normal(size=5).astype(np.float32)
    batch = ReplayBatch(sets.astype(np.float32), actions, rewards)
    for _ in range(3):
        network.learn(batch)  # the two networks differ from here on
    online, target = network._parameters, network._target
    wanted = []
    for row, action, reward in zip(sets, actions, rewards, strict=True):
        after = row.copy()
        after[action] = 1
        open_ = legal(after, needed)
        value = float(reward)
        if open_:
            choice = open_[int(np.argmax(by_hand(online, after[None], needed)[0, open_]))]
            value += 0.9 * by_hand(target, after[None], needed)[0, choice]
        wanted.append(value)
    taken = by_hand(online, sets, needed)[np.arange(5), actions]
    expected = float(np.mean((np.array(wanted) - taken) ** 2))
    assert network.values(sets.astype(np.float32)) == pytest.approx(
        by_hand(online, sets, needed), abs=1e-4
    )
    assert network.learn(batch) == pytest.approx(expected, rel=1e-4)


@pytest.mark.long
def test_learning_reaches_what_is_asked_for() -> None:
    from isthmus.neural.dqn import QNetwork, ReplayBatch

    network = QNetwork(
        np.zeros((3, 3), np.bool_),
        hidden=(32, 32),
        rate=0.003,
        discount=1.0,
        duelling=False,
        rng=np.random.default_rng(0),
    )
    # Node v is worth v at place 0, and twice as much later: all six orders, all their steps.
    sets, actions, rewards = [], [], []
    for bits in range(7):
        row = [bits >> v & 1 for v in range(3)]
        for v in (v for v in range(3) if not row[v]):
            sets.append(row)
            actions.append(v)
            rewards.append(float(v * (1 + any(row))))
    batch = ReplayBatch(
        np.array(sets, np.float32), np.array(actions, np.int32), np.array(rewards, np.float32)
    )
    for number in range(3000):
        network.learn(batch)
        if number % 50 == 0:
            network.replace_target()
    first = network.values(np.zeros((1, 3), np.float32))[0]
    assert first == pytest.approx([6.0, 5.0, 4.0], abs=0.2)


def test_walks_get_what_the_table_says() -> None:
    known = Knowledge(required=[("x1", "x0")])
    local = discrete_score(BIC(), 2, 300, 7)
    table = list_parent_sets(local, knowledge=known.bind(local.nodes))
    walks = Walks(ScoreLines(table.starts, table.sets, table.scores), 3)
    rng = np.random.default_rng(0)
    for at in range(7):
        allowed = walks.allowed()
        for e in range(3):
            assert not (allowed[e] & walks.sets[e]).any()
            assert allowed[e, 0] == (walks.sets[e, 1] and not walks.sets[e, 0])
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in allowed])
        before = [np.flatnonzero(row).tolist() for row in walks.sets]
        rewards = walks.take(actions)
        for e in range(3):
            assert rewards[e] == table.best(int(actions[e]), before[e])[1]
        assert walks.ended == (at == 6)
    for e in range(3):
        order = walks.orders[e].tolist()
        total = sum(table.best(v, order[:i])[1] for i, v in enumerate(order))
        assert walks.totals[e] == pytest.approx(total)


def test_bonuses() -> None:
    visits = Visits()
    state = np.array([True, False, False])
    key, bonus = visits.bonuses(state)
    assert bonus is None
    for action in (1, 1, 2, 1):
        visits.count(key, action, 3)
    _, bonus = visits.bonuses(state)
    assert bonus is not None
    assert bonus[1] == pytest.approx(math.sqrt(2 * math.log(4) / 3))
    assert bonus[2] == pytest.approx(math.sqrt(2 * math.log(4) / 1))
    assert bonus[0] == np.inf
    assert visits.bonuses(~state)[1] is None


def test_the_oldest_transitions_go() -> None:
    replay = Replay(4, 3)
    for number in range(6):
        replay.add(np.array([True, False, number % 2 == 0]), number % 3, float(number))
    sets, actions, rewards = replay.draw(200, np.random.default_rng(0))
    assert set(rewards.tolist()) == {2.0, 3.0, 4.0, 5.0}
    assert actions.tolist() == (rewards % 3).tolist()
    assert sets[:, 2].tolist() == (rewards % 2 == 0).tolist()


@pytest.mark.long
@pytest.mark.parametrize(
    "search", [SHORT, RBNets.improved(episodes=15, batch=32)], ids=["paper", "ours"]
)
def test_graphs_seeds_and_knowledge(search: RBNets) -> None:
    known = Knowledge(required=[("x0", "x2")], forbidden=[("x1", "x0")])
    rows = discrete_rows(3, 300, 6)
    kinds = dict.fromkeys(rows, ist.Kind.DISCRETE)
    table = ist.parent_sets(rows, score=ist.BIC(), kinds=kinds, knowledge=known)
    one = ist.solve(table, search=search, knowledge=known, seed=3)
    assert known.allows(one.dag)
    assert ist.score(rows, one.dag, ist.BIC(), kinds=kinds) == pytest.approx(one.score)
    two = ist.solve(table, search=search, knowledge=known, seed=3)
    assert one.dag == two.dag
    assert one.details == two.details
    assert one.details.episodes == 15
    assert one.status.ending is Ending.CONVERGED
    best = ist.solve(table, search=ist.AStar(), knowledge=known).score
    assert one.score <= best + 1e-7
    assert one.score >= max(one.details.policy, one.details.best_walk) - 1e-7
    direct = ist.learn(rows, score=ist.BIC(), search=search, knowledge=known, kinds=kinds, seed=3)
    assert direct.dag == one.dag


@pytest.mark.long
def test_the_optimum_of_small_problems() -> None:
    faithful = improved = 0
    for seed in range(3):
        table = list_parent_sets(discrete_score(BIC(), seed, 300, 6))
        best = ist.solve(table, search=ist.AStar()).score
        faithful += ist.solve(table, search=RBNets(episodes=100, batch=64)).score > best - 1e-7
        improved += ist.solve(table, search=RBNets.improved(episodes=5)).score > best - 1e-7
    assert faithful >= 2
    assert improved == 3


@pytest.mark.long
def test_any_time_and_no_flag_is_changed() -> None:
    jax = pytest.importorskip("jax")
    before = dict(jax.config.values)
    table = list_parent_sets(discrete_score(BIC(), 1, 300, 9))
    solution = ist.solve(table, search=RBNets(episodes=10**6), time_limit=2.0)
    assert solution.status.ending is Ending.TIME_LIMIT
    assert table.total(solution.dag) == pytest.approx(solution.score)
    assert dict(jax.config.values) == before
    begun = partial(SHORT.search, table, Knowledge().bind(table.nodes), np.random.default_rng(0))
    found, status = drive(begun, "test", time_limit=0.0)
    assert status.ending is Ending.TIME_LIMIT
    DAG.from_parents(table.nodes, found.parents)


def test_shaping_keeps_the_best_orders() -> None:
    """Every order's shaped total is its total, moved and scaled by the same numbers."""
    table = list_parent_sets(discrete_score(BIC(), 4, 300, 6))
    base = table.scores[table.starts[:-1]]
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(10):
        walk = Walks(ScoreLines(table.starts, table.sets, table.scores), 1)
        shaped = 0.0
        for v in rng.permutation(6):
            shaped += float(walk.take(np.array([v]))[0]) - base[v]
        pairs.append((float(walk.totals[0]), shaped))
    differences = [total - shaped for total, shaped in pairs]
    assert differences == pytest.approx([differences[0]] * 10)
    assert max(shaped for _, shaped in pairs) <= 1e-9


def test_without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    table = list_parent_sets(discrete_score(BIC(), 1, 100, 4))
    with pytest.raises(MissingExtraError, match="neural"):
        ist.solve(table, search=RBNets())


def test_options_that_make_no_sense() -> None:
    for options in (
        {"episodes": 0},
        {"learning_rate": 0.0},
        {"hidden": (0,)},
        {"variant": "improved"},
    ):
        with pytest.raises(ArgumentError, match="must be"):
            RBNets(**options)
    with pytest.raises(ArgumentError, match="walks"):
        RBNetsVariant(walks=0)


@pytest.mark.long
@pytest.mark.timing
@pytest.mark.parametrize("make", [RBNets, RBNets.improved])
def test_steps_are_short_while_networks_are_compiled(make: Any) -> None:
    table = list_parent_sets(gaussian_score(GaussianBIC(), 1, 200, 50), max_parents=1)
    # A shape that nobody compiled before.
    search = make(hidden=(13, 7), batch=77 if make is RBNets else 78)
    RBNets().search(*tiny(), np.random.default_rng(0), Watch())  # imports JAX
    polls = Polls(150)
    watch = Watch(stop=polls)
    search.search(table, Knowledge().bind(table.nodes), np.random.default_rng(0), watch)
    assert watch.stopped
    assert polls.longest < 0.4
    assert time.monotonic() - polls.times[-1] < 0.3


def tiny() -> tuple[ScoreTable, BoundKnowledge]:
    table = ScoreTable.from_lists(["a", "b"], [[((), -1.0)], [((), -2.0), ((0,), -1.0)]])
    return table, Knowledge().bind(table.nodes)


@pytest.mark.long
def test_jax_is_imported_before_the_first_poll() -> None:
    """Ctrl-C while a search imported it crashed the process."""
    code = """if True:
        import sys
        import numpy as np
        from isthmus.graphs import Knowledge
        from isthmus.objectives import ScoreTable
        from isthmus.searches import RBNets, Watch

        table = ScoreTable.from_lists(["a", "b"], [[((), -1.0)], [((), -2.0), ((0,), -1.0)]])
        assert "jax" not in sys.modules
        known = Knowledge().bind(table.nodes)
        watch = Watch(time_limit=60, stop=lambda: "jaxlib" in sys.modules)
        RBNets().search(table, known, np.random.default_rng(0), watch)
        assert watch.stopped and "jaxlib" in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
