"""XGES of the compiled core: the same graphs and scores as Numba's. Goes when Numba goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.kernels.discrete_problems import dependent_codes
from tests.kernels.problems import problem

from isthmus.graphs import BoundKnowledge
from isthmus.kernels.greedy import XgesRun
from isthmus.kernels.scoring import DiscreteForm, discrete_score, foreign_score
from isthmus.objectives import CompiledLocalScore, LocalScore
from isthmus.scores import GaussianBIC
from isthmus.searches.greedy.xges import XGES
from isthmus.statistics import Moments, Schema


def numba_result(
    local: LocalScore, required: Any, forbidden: Any, max_parents: int | None, extended: bool
) -> tuple[Any, float]:
    search = XGES(extended=extended, max_parents=max_parents)
    knowledge = BoundKnowledge(required, forbidden)
    run = search.begin(local, knowledge, np.random.default_rng(0))
    while not run.step():
        pass
    found = run.best()
    return found.parents, found.score


def native_result(run: XgesRun) -> tuple[Any, float]:
    while not run.step():
        pass
    return run.best()


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize("demands", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 6, 12, 30, 66, 130])
def test_gaussian(d: int, demands: bool, extended: bool) -> None:
    if d > 100 and demands:
        pytest.skip("takes minutes in Numba")
    for seed in range(2 if d > 60 else 12):
        max_parents = None if seed % 3 else 2 + seed % 4
        p = problem(d, seed, n=60 + 40 * seed + 4 * d, demands=demands)
        names = tuple(f"v{i:03d}" for i in range(d))
        zeros = np.zeros(d)
        moments = Moments(Schema.continuous(names), p.n, zeros, zeros, p.n * p.covariance)
        local = GaussianBIC().bind(moments)
        rules = {"required": p.required, "forbidden": p.forbidden}
        ours = XgesRun(
            foreign_score(d, local.handle, local),
            **rules,
            max_parents=max_parents,
            extended=extended,
        )
        want = numba_result(local, p.required, p.forbidden, max_parents, extended)
        assert native_result(ours) == want
        assert not ours.guarded


@pytest.mark.parametrize("form", [DiscreteForm.LIKELIHOOD, DiscreteForm.BDEU])
@pytest.mark.parametrize("levels", [[2, 3, 2, 4, 2] * 5, [2, 40, 3, 17, 300] * 3])
def test_discrete(form: DiscreteForm, levels: list[int]) -> None:
    from isthmus.numerics import discrete

    d = len(levels)
    names = tuple(f"v{i:03d}" for i in range(d))
    none = np.zeros((d, d), np.bool_)
    for seed in range(4):
        codes = dependent_codes(seed, levels, 300 * (seed + 1), np.uint16)
        kind = discrete.Form[form.name]
        data, keep = discrete.pack_discrete(codes, None, np.array(levels), kind, 3.0)
        address = discrete.discrete_score.address
        local = CompiledLocalScore(names, address, data, keep, equivalent=True)
        ours = XgesRun(discrete_score(codes, None, np.array(levels), form, 3.0))
        want = numba_result(local, none, none | np.eye(d, dtype=np.bool_), None, True)
        assert native_result(ours) == want
