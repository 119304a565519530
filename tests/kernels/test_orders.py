"""Best order score search: brute force on small problems, demands, odd input."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from tests.kernels.problems import Problem, bic, boss, problem

from isthmus.kernels.orders import BossRun, OrderDescent, random_order
from isthmus.kernels.scoring import LocalScore, local, python_score


def slow_parents(score: LocalScore, p: Problem, child: int, before: tuple[int, ...]) -> list[int]:
    """Add the best predecessor while that helps, then remove while that helps."""
    required = np.flatnonzero(p.required[:, child]).tolist()
    chosen = list(required)
    most = p.d if p.max_parents is None else p.max_parents
    while len(chosen) < most:
        now = local(score, child, chosen)
        gains = {
            x: local(score, child, [*chosen, x]) - now
            for x in sorted(before)
            if x not in chosen and not p.forbidden[x, child]
        }
        if not gains or max(gains.values()) <= 0.0:
            break
        chosen.append(max(gains, key=lambda x: gains[x]))
    while True:
        now = local(score, child, chosen)
        gains = {
            x: local(score, child, [y for y in chosen if y != x]) - now
            for x in chosen
            if x not in required
        }
        if not gains or max(gains.values()) <= 0.0:
            return sorted(chosen)
        chosen.remove(max(gains, key=lambda x: gains[x]))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("demands", [False, True])
def test_a_variable_cannot_move_to_a_better_place(seed: int, demands: bool) -> None:
    p = problem(5, seed, n=200, demands=demands, max_parents=3)
    score = bic(p)

    def along(order: tuple[int, ...]) -> float:
        families = ((v, slow_parents(score, p, v, order[:j])) for j, v in enumerate(order))
        return sum(local(score, v, parents) for v, parents in families)

    allowed = [
        order
        for order in permutations(range(5))
        if not any(p.required[v, w] for j, v in enumerate(order) for w in order[:j])
    ]
    totals = {order: along(order) for order in allowed}
    parents, total = boss(p, score, seed=seed, starts=6)
    assert total == pytest.approx(sum(local(score, v, q) for v, q in enumerate(parents)))
    reached = [order for order, value in totals.items() if value == pytest.approx(total)]
    assert reached

    def best_after_one_move(order: tuple[int, ...]) -> float:
        moved = [
            (*rest[:j], v, *rest[j:])
            for v in order
            for rest in [tuple(w for w in order if w != v)]
            for j in range(5)
        ]
        return max(totals.get(other, -np.inf) for other in moved)

    assert any(best_after_one_move(order) <= total + 1e-5 for order in reached)


@pytest.mark.parametrize("seed", range(4))
def test_no_single_parent_more_or_less_is_better(seed: int) -> None:
    p = problem(12, seed, n=100, demands=seed % 2 == 1, max_parents=4)
    score = bic(p)
    descent = OrderDescent(
        score,
        np.random.default_rng(seed),
        required=p.required,
        forbidden=p.forbidden,
        max_parents=p.max_parents,
    )
    descent.start(random_order(p.required, np.random.default_rng(seed)))
    while not descent.step():
        pass
    order = descent.order().tolist()
    for v, parents in enumerate(descent.parents()):
        now = local(score, v, parents)
        before = order[: order.index(v)]
        assert set(parents) <= set(before)
        for x in before:
            if x in parents and not p.required[x, v]:
                assert local(score, v, [y for y in parents if y != x]) <= now + 1e-9
            elif x not in parents and not p.forbidden[x, v] and len(parents) < 4:
                assert local(score, v, [*parents, x]) <= now + 1e-9


def test_the_best_so_far_leaves_the_run_as_it_is() -> None:
    p = problem(30, 4)
    quiet = boss(p, bic(p), seed=9)
    run = BossRun(bic(p), np.random.default_rng(9), starts=2, forbidden=p.forbidden)
    assert run.best()[0] == ((),) * 30
    while not run.step(0.0):
        assert run.describe()
        run.best()
    assert run.best() == quiet


def test_required_edges_stand_before_any_order_is_scored() -> None:
    p = problem(10, 8, demands=True)
    run = BossRun(bic(p), np.random.default_rng(0), required=p.required, forbidden=p.forbidden)
    parents, score = run.best()
    assert parents == tuple(tuple(np.flatnonzero(p.required[:, v])) for v in range(10))
    assert score == pytest.approx(sum(local(bic(p), v, q) for v, q in enumerate(parents)))


@pytest.mark.parametrize("seed", range(3))
def test_demands_are_met(seed: int) -> None:
    p = problem(15, seed, demands=True, max_parents=3)
    for v, parents in enumerate(boss(p, bic(p), seed=seed)[0]):
        required = set(np.flatnonzero(p.required[:, v]))
        assert required <= set(parents)
        assert not any(p.forbidden[x, v] for x in parents)
        assert len(parents) <= max(3, len(required))


def test_bad_orders_are_refused() -> None:
    p = problem(4, 1)
    descent = OrderDescent(bic(p), np.random.default_rng(0))
    for order in ([0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 4], [-1, 0, 1, 2], []):
        with pytest.raises(ValueError, match="every variable must come once"):
            descent.start(np.array(order, np.int64))
    required = np.zeros((4, 4), np.bool_)
    required[3, 0] = True
    descent = OrderDescent(bic(p), np.random.default_rng(0), required=required)
    with pytest.raises(ValueError, match="a required parent comes after its child"):
        descent.start(np.arange(4))


def test_an_order_can_be_given_up() -> None:
    p = problem(40, 2)
    score = bic(p)
    fresh = OrderDescent(score, np.random.default_rng(3))
    again = OrderDescent(score, np.random.default_rng(3))
    again.start(np.arange(40), refine=False)
    again.step(0.0)
    for descent in (fresh, again):
        descent.start(np.arange(40)[::-1])
        while not descent.step():
            pass
    assert fresh.parents() == again.parents()
    np.testing.assert_array_equal(fresh.order(), again.order())


@pytest.mark.parametrize("starts", [0, -1])
def test_no_starts_are_refused(starts: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        BossRun(bic(problem(3, 0)), np.random.default_rng(0), starts=starts)


def test_bad_demands_are_refused() -> None:
    score = bic(problem(3, 0))
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="square"):
        BossRun(score, rng, required=np.zeros((3, 2), np.bool_))
    with pytest.raises(ValueError, match="number of variables"):
        BossRun(
            score, rng, required=np.zeros((4, 4), np.bool_), forbidden=np.eye(4, dtype=np.bool_)
        )
    with pytest.raises(ValueError, match="its own parent"):
        BossRun(score, rng, required=np.eye(3, dtype=np.bool_))
    with pytest.raises(TypeError):
        BossRun(score, rng, max_parents=-1)
    cycle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], np.bool_)
    with pytest.raises(ValueError, match="cycle"):
        BossRun(score, rng, required=cycle).step()
    with pytest.raises(ValueError, match="no variables"):
        BossRun(python_score(0, lambda _child, _parents: 0.0), rng)


def test_random_orders_keep_required_edges() -> None:
    p = problem(20, 1, demands=True)
    for seed in range(5):
        order: Any = random_order(p.required, np.random.default_rng(seed))
        place = np.argsort(order)
        assert sorted(order) == list(range(20))
        assert all(place[x] < place[v] for x, v in np.argwhere(p.required))
