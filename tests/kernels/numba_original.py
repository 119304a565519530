"""The Numba kernels that the compiled core replaces. Goes when they go."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.kernels.problems import TOLERANCE, Floats, Problem, correlate, likelihood_tables

from isthmus.graphs import BoundKnowledge
from isthmus.numerics import gaussian
from isthmus.objectives import CompiledLocalScore
from isthmus.searches import Boss


def names(d: int) -> list[str]:
    return [str(v) for v in range(d)]


def scalar_score(
    correlation: Floats,
    log_scale: Floats,
    tables: tuple[Floats, Floats, Floats],
    squares: Floats | None = None,
) -> CompiledLocalScore:
    data, keep = gaussian.pack_scalar(correlation, log_scale, tables, TOLERANCE, squares)
    return CompiledLocalScore(
        names(len(correlation)), gaussian.scalar_score.address, data, keep, equivalent=False
    )


def matrix_score(matrix: Floats, tables: tuple[Floats, Floats, Floats]) -> CompiledLocalScore:
    correlation, variance = correlate(matrix)
    return scalar_score(correlation, np.log(variance), tables)


def bic(problem: Problem) -> CompiledLocalScore:
    return matrix_score(problem.covariance, likelihood_tables(problem.n, problem.d))


def boss(problem: Problem, objective: Any, *, seed: int, starts: int = 2) -> Any:
    search = Boss(starts=starts, max_parents=problem.max_parents)
    knowledge = BoundKnowledge(problem.required, problem.forbidden)
    run = search.begin(objective, knowledge, np.random.default_rng(seed))
    while not run.step():
        pass
    return run.best()
