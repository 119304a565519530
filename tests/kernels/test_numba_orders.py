"""The same seeds give the same graphs as the Numba kernels. Goes when these go."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels import numba_original as original
from tests.kernels.problems import bic, boss, likelihood_tables, matrix_score, problem

from isthmus.kernels.orders import OrderDescent
from isthmus.numerics import boss as numba_boss
from isthmus.numerics import grow_shrink


@pytest.mark.parametrize("d", [2, 5, 10, 20, 64, 65])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("demands", [False, True])
@pytest.mark.parametrize("max_parents", [None, 1, 3])
def test_same_graphs(d: int, seed: int, demands: bool, max_parents: int | None) -> None:
    p = problem(d, seed, demands=demands, max_parents=max_parents)
    want = original.boss(p, original.bic(p), seed=seed)
    # Equal scores: NumPy's order of additions is part of the port.
    assert boss(p, bic(p), seed=seed) == (want.parents, want.score)


@pytest.mark.parametrize("seed", [0, 1])
def test_many_starts_keep_the_same_one(seed: int) -> None:
    """Equivalent graphs tie up to rounding, so the choice shows any difference in it."""
    p = problem(12, seed, n=300)
    tables = likelihood_tables(p.n, p.d, gamma=0.5)
    want = original.boss(p, original.matrix_score(p.covariance, tables), seed=seed, starts=20)
    got = boss(p, matrix_score(p.covariance, tables), seed=seed, starts=20)
    assert got == (want.parents, want.score)


def test_same_graphs_with_determinants() -> None:
    """Weights as those of BGe: every term of the Gaussian kernel takes part."""
    p = problem(25, 11)
    tables = (-3.0 * np.arange(26.0), np.full(26, 500.0), np.linspace(0.0, 1.0, 26))
    want = original.boss(p, original.matrix_score(p.covariance, tables), seed=1)
    got = boss(p, matrix_score(p.covariance, tables), seed=1)
    assert got == (want.parents, want.score)


@pytest.mark.parametrize("d", [1, 6, 40])
@pytest.mark.parametrize("refine", [False, True])
def test_descents_along_given_orders(d: int, refine: bool) -> None:
    """As NOTEARS uses them: one order after the other on the same trees."""
    p = problem(d, 4)
    objective = original.bic(p)
    forest = grow_shrink.new_forest(d, 200_000, 400_000)
    rules = grow_shrink.new_rules(p.required, p.forbidden, None)
    scratch, places = grow_shrink.new_scratch(d), numba_boss.new_places(d)
    want_rng, rng = np.random.default_rng(1), np.random.default_rng(1)
    descent = OrderDescent(bic(p), rng, forbidden=p.forbidden)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(d)
        state = numba_boss.new_order(order)
        arguments = objective.handle, forest, scratch, state, places, rules
        assert numba_boss.settle(*arguments, 0, d)[0] == grow_shrink.DONE
        moved = refine and d > 1
        while moved:
            gains = [
                numba_boss.improve(*arguments, v, 1e-10)[1]
                for v in want_rng.permutation(d).tolist()
            ]
            moved = max(gains) > 0.0
        descent.start(order, refine=refine)
        assert not descent.settled
        while not descent.step():
            pass
        assert descent.settled
        np.testing.assert_array_equal(descent.order(), state.order)
        want = [
            tuple(sorted(numba_boss.parents_in_order(*arguments, v)[1].tolist())) for v in range(d)
        ]
        assert descent.parents() == tuple(want)
