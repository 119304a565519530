"""Without a seed, hill climbing visits the graphs of the Numba kernels. Goes when these go."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels import numba_original as original
from tests.kernels.problems import bic, problem

from isthmus.graphs import BoundKnowledge
from isthmus.kernels.hill_climb import HillClimbRun
from isthmus.searches import HillClimb


@pytest.mark.parametrize("d", [2, 7, 30, 64, 65])
@pytest.mark.parametrize("demands", [False, True])
@pytest.mark.parametrize(
    ("tabu", "patience", "max_parents"),
    [(10, None, None), (0, None, None), (3, 8, 2), (5, 0, 1), (100, 300, 3)],
)
def test_same_graphs(
    d: int, demands: bool, tabu: int, patience: int | None, max_parents: int | None
) -> None:
    for seed in range(3):
        p = problem(d, seed, demands=demands)
        search = HillClimb(tabu=tabu, patience=patience, max_parents=max_parents)
        knowledge = BoundKnowledge(p.required, p.forbidden)
        want_run = search.begin(original.bic(p), knowledge, np.random.default_rng(0))
        while not want_run.step():
            pass
        run = HillClimbRun(
            bic(p),
            tabu=tabu,
            patience=patience,
            required=p.required,
            forbidden=p.forbidden,
            max_parents=max_parents,
        )
        while not run.step():
            pass
        want = want_run.best()
        assert run.best() == (want.parents, want.score)
