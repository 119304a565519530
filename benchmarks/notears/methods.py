"""The learners that are compared: each takes rows and gives an adjacency or weight matrix."""

from __future__ import annotations

import numpy as np

import isthmus as ist
from isthmus import published, simulate


def _columns(x: np.ndarray) -> dict[str, np.ndarray]:
    return {f"x{i}": x[:, i] for i in range(x.shape[1])}


def official_rules(x: np.ndarray) -> np.ndarray:
    return published.notears(_columns(x)).weights


def dagma(x: np.ndarray) -> np.ndarray:
    from dagma.linear import DagmaLinear

    return DagmaLinear(loss_type="l2").fit(x.copy(), lambda1=0.03)


def boss(x: np.ndarray) -> np.ndarray:
    return ist.learn(_columns(x), score=ist.GaussianEBIC(), search=ist.Boss()).dag.adjacency()


def notears(x: np.ndarray) -> np.ndarray:
    return ist.learn(_columns(x), search=ist.Notears()).dag.adjacency()


def notears_fixed(x: np.ndarray) -> np.ndarray:
    """Give the paper's penalty and threshold to ours."""
    search = ist.Notears(penalty=0.1, threshold=0.3)
    return ist.learn(_columns(x), search=search).dag.adjacency()


def notears_likelihood(x: np.ndarray) -> np.ndarray:
    found = ist.learn(_columns(x), score=ist.LinearLikelihood(), search=ist.Notears())
    return found.dag.adjacency()


def likelihood_without_moves(x: np.ndarray) -> np.ndarray:
    search = ist.Notears(refine=False)
    return ist.learn(_columns(x), score=ist.LinearLikelihood(), search=search).dag.adjacency()


def by_variance(x: np.ndarray) -> np.ndarray:
    return simulate.sort_and_regress(_columns(x)).adjacency()


def by_r_squared(x: np.ndarray) -> np.ndarray:
    return simulate.sort_and_regress(_columns(x), by=simulate.SortBy.R_SQUARED).adjacency()


METHODS = {
    "Notears": notears,
    "Notears, 0.1 and 0.3": notears_fixed,
    "Notears, likelihood": notears_likelihood,
    "Notears, likelihood, no moves": likelihood_without_moves,
    "official rules": official_rules,
    "dagma": dagma,
    "BOSS": boss,
    "sort by variance": by_variance,
    "sort by R2": by_r_squared,
}
