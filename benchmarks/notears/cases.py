"""The tables of the NOTEARS paper's Figure 3, and what is measured on an answer."""

from __future__ import annotations

import math
import os
import sys
from typing import Any

import numpy as np

from isthmus import simulate
from isthmus.errors import GraphError
from isthmus.graphs import DAG
from isthmus.metrics import shd_cpdag

NOISES = {
    "gauss": (simulate.Gaussian(), 1.0),
    "exp": (simulate.Exponential(), 1.0),
    "gumbel": (simulate.Gumbel(), math.pi**2 / 6),
}


def one_thread() -> None:
    """Start the program again with one thread, as BLAS reads this only once."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    if any(os.environ.get(name) != "1" for name in names):
        os.environ.update(dict.fromkeys(names, "1"))
        os.execv(sys.executable, [sys.executable, *sys.argv])


def draw(graph: str, noise: str, d: int, n: int, seed: int, scale: str) -> simulate.Simulation:
    """ER2 has exactly 2d edges; SF4 joins each new node to four old ones, which are its effects."""
    if graph == "ER2":
        dag = simulate.erdos_renyi(d, min(2 * d, d * (d - 1) // 2), seed=seed)
    else:
        dag = simulate.scale_free(d, 4, hubs=simulate.Hubs.EFFECTS, seed=seed)
    law, variance = NOISES[noise]
    drawn = simulate.linear(
        dag, n, noise=law, variances=simulate.EqualVariances(variance), seed=seed
    )
    return drawn.standardised() if scale == "standardised" else drawn


def judge(weights: np.ndarray, truth: DAG) -> dict[str, Any]:
    """Count wrong pairs of the graph and, if it is acyclic, of its equivalence class."""
    found = weights != 0
    true = truth.adjacency()
    wrong = (found != true) | (found != true).T
    result: dict[str, Any] = {"shd": int(wrong.sum()) // 2, "edges": int(found.sum())}
    try:
        dag = DAG.from_adjacency(truth.nodes, found)
    except GraphError:
        return {**result, "cyclic": True}
    return {**result, "shd_cpdag": shd_cpdag(dag, truth)}
