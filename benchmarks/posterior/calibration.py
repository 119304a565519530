"""Are edges with a probability of 0.3 there three times out of ten?

    python benchmarks/posterior/calibration.py 50

Each truth is a random graph with random parameters; the posterior of its edges given some rows is
compared with the edges. "prior" draws graph, coefficients, variances and means from the prior of
the BGe score itself, so the probabilities must be calibrated. The others are misspecified: noise
that is uniform, or has heavy tails, or effects that are curved.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import isthmus as ist

Array = NDArray[np.float64]
ALPHA_MU = 1.0


def graphs(d: int, count: int, seed: int) -> list[ist.DAG]:
    """Uniformly random graphs: draws from a posterior without data."""
    from isthmus.objectives import PythonLocalScore
    from isthmus.runs import drive

    names = [f"x{i}" for i in range(d)]
    flat = PythonLocalScore(names, lambda *_: 0.0, equivalent=True)
    run = ist.ExactPosterior().begin(
        flat, ist.Knowledge().bind(names), np.random.default_rng(seed), draws=count, chains=1
    )
    draws, _ = drive(run, "ExactPosterior")
    masks = draws.parents[draws.chains[0], :, 0].tolist()
    return [ist.DAG.from_masks(names, row) for row in masks]


def simulate(
    dag: ist.DAG,
    rows: int,
    rng: np.random.Generator,
    noise: Callable[[np.random.Generator, int], Array],
    curve: Callable[[Array], Array],
) -> Array:
    """Rows of a network whose parameters are drawn from the prior of BGe."""
    d = len(dag.nodes)
    alpha_w = d + 2.0
    scale = ALPHA_MU * (alpha_w - d - 1.0) / (ALPHA_MU + 1.0)
    x = np.zeros((rows, d))
    mean = np.zeros(d)
    families = dag.parent_indices()
    for node in dag.topological_order():
        v = dag.index(node)
        parents = list(families[v])
        # As in LinearEffects, with the prior in place of the posterior.
        variance = 0.5 * scale / rng.gamma(0.5 * (alpha_w - d + len(parents) + 1))
        coefficients = np.sqrt(variance / scale) * rng.standard_normal(len(parents))
        deviation = np.sqrt(variance)
        mean[v] = mean[parents] @ coefficients + deviation / np.sqrt(ALPHA_MU) * rng.normal()
        centred = curve(x[:, parents] - mean[parents]) @ coefficients
        x[:, v] = mean[v] + centred + deviation * noise(rng, rows)
    return x


def pairs(
    d: int,
    rows: int,
    truths: int,
    *,
    seed: int = 0,
    noise: Callable[[np.random.Generator, int], Array] = lambda rng, n: rng.normal(size=n),
    curve: Callable[[Array], Array] = lambda z: z,
) -> tuple[Array, Array]:
    """Probabilities and whether the edge is there, each of shape (truths, edges)."""
    rng = np.random.default_rng(seed)
    score = ist.BGe(alpha_mu=ALPHA_MU, prior_mean=ist.PriorMean.ZERO)
    off = ~np.eye(d, dtype=bool)
    probabilities, present = [], []
    for dag in graphs(d, truths, seed):
        x = simulate(dag, rows, rng, noise, curve)
        table = {name: x[:, i] for i, name in enumerate(dag.nodes)}
        sampler = ist.ExactPosterior()
        posterior = ist.sample(table, score=score, sampler=sampler, draws=1, chains=1)
        probabilities.append(posterior.edge_probabilities()[off])
        present.append(dag.adjacency()[off].astype(float))
    return np.array(probabilities), np.array(present)


MODELS: dict[str, dict[str, Callable[..., Array]]] = {
    "prior": {},
    "uniform noise": {"noise": lambda rng, n: rng.uniform(-np.sqrt(3), np.sqrt(3), n)},
    "heavy tails": {"noise": lambda rng, n: rng.standard_t(3, n) / np.sqrt(3)},
    "curved effects": {"curve": lambda z: np.sin(2.0 * z)},
}


def main() -> None:
    truths = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    heads = [f"{k / 10:.1f}-{(k + 1) / 10:.1f}" for k in range(10)]
    print("model            rows  " + "  ".join(heads))
    for name, options in MODELS.items():
        for rows in (50, 500):
            p, y = pairs(8, rows, truths, **options)  # type: ignore[arg-type]
            place = np.minimum((p * 10).astype(int), 9)
            shares = [y[place == k].mean() if (place == k).any() else np.nan for k in range(10)]
            print(f"{name:15s} {rows:5d}  " + "  ".join(f"{s:7.2f}" for s in shares))


if __name__ == "__main__":
    main()
