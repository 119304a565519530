"""Are edges with a probability of 0.3 there three times out of ten?

    python benchmarks/posterior/calibration.py --truths 50 --figure docs/_static/calibration.svg \\
        --results benchmarks/results/posterior-calibration.jsonl

Each truth is a random graph with random parameters; the posterior of its edges given some rows is
compared with the edges. "prior" draws graph, coefficients, variances and means from the prior of
the BGe score itself, so the probabilities must be calibrated. The others are misspecified: noise
that is uniform, or has heavy tails, or effects that are curved.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isthmus as ist

Array = NDArray[np.float64]
ALPHA_MU = 1.0


def graphs(d: int, count: int, seed: int) -> list[ist.DAG]:
    """Uniformly random graphs: draws from a posterior without data."""
    from isthmus.objectives import PythonLocalScore
    from isthmus.watch import drive

    names = [f"x{i}" for i in range(d)]
    flat = PythonLocalScore(names, lambda *_: 0.0, equivalent=True)
    run = partial(
        ist.ExactPosterior().sample,
        flat,
        ist.Knowledge().bind(names),
        np.random.default_rng(seed),
        draws=count,
        chains=1,
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
) -> tuple[Array, Array]:
    """Rows of a network with parameters from the prior of BGe, and its coefficients."""
    d = len(dag.nodes)
    alpha_w = d + 2.0
    scale = ALPHA_MU * (alpha_w - d - 1.0) / (ALPHA_MU + 1.0)
    x, weights = np.zeros((rows, d)), np.zeros((d, d))
    mean = np.zeros(d)
    families = dag.parent_indices()
    for node in dag.topological_order():
        v = dag.index(node)
        parents = list(families[v])
        # As in LinearEffects, with the prior in place of the posterior.
        variance = 0.5 * scale / rng.gamma(0.5 * (alpha_w - d + len(parents) + 1))
        coefficients = np.sqrt(variance / scale) * rng.standard_normal(len(parents))
        weights[parents, v] = coefficients
        deviation = np.sqrt(variance)
        mean[v] = mean[parents] @ coefficients + deviation / np.sqrt(ALPHA_MU) * rng.normal()
        centred = curve(x[:, parents] - mean[parents]) @ coefficients
        x[:, v] = mean[v] + centred + deviation * noise(rng, rows)
    return x, weights


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
    score = ist.BGe(
        alpha_mu=ALPHA_MU, prior_mean=ist.PriorMean.ZERO, prior_scale=ist.PriorScale.UNIT
    )
    off = ~np.eye(d, dtype=bool)
    probabilities, present = [], []
    for dag in graphs(d, truths, seed):
        x, _ = simulate(dag, rows, rng, noise, curve)
        table = {name: x[:, i] for i, name in enumerate(dag.nodes)}
        sampler = ist.ExactPosterior()
        posterior = ist.sample(table, score=score, sampler=sampler, draws=1, chains=1)
        probabilities.append(posterior.edge_probabilities()[off])
        present.append(dag.adjacency()[off].astype(float))
    return np.array(probabilities), np.array(present)


MODELS: dict[str, dict[str, Callable[..., Array]]] = {
    "as the model says": {},
    "uniform noise": {"noise": lambda rng, n: rng.uniform(-np.sqrt(3), np.sqrt(3), n)},
    "heavy tails": {"noise": lambda rng, n: rng.standard_t(3, n) / np.sqrt(3)},
    "curved effects": {"curve": lambda z: np.sin(2.0 * z)},
}


def bins(p: Array, y: Array) -> dict[str, list[Any]]:
    """Number of edges, their mean probability and the share that is there, by tenths."""
    place = np.minimum((p * 10).astype(int), 9)
    inside = [place == k for k in range(10)]
    return {
        "edges": [int(at.sum()) for at in inside],
        "probability": [float(p[at].mean()) if at.any() else None for at in inside],
        "share": [float(y[at].mean()) if at.any() else None for at in inside],
    }


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """Draw the reliability diagram: one line per record."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "calibration", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.6", linestyle="--", linewidth=1)
    for record in records:
        axes.plot(record["probability"], record["share"], marker=".", label=record["label"])
    axes.set(xlabel="probability of an edge", ylabel="share of these edges that are there")
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--truths", type=int, default=50)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--figure", type=Path)
    given = parser.parse_args()
    records: list[dict[str, Any]] = []
    print(
        "model            rows  " + "  ".join(f"{k / 10:.1f}-{(k + 1) / 10:.1f}" for k in range(10))
    )
    for name, options in MODELS.items():
        for rows in (50, 500):
            p, y = pairs(8, rows, given.truths, **options)  # type: ignore[arg-type]
            records.append({"model": name, "rows": rows, "truths": given.truths, **bins(p, y)})
            shares = ["-" if s is None else f"{s:.2f}" for s in records[-1]["share"]]
            print(f"{name:17s} {rows:5d}  " + "  ".join(f"{share:>7s}" for share in shares))
    if given.results is not None:
        lines = (json.dumps(record) + "\n" for record in records)
        given.results.write_text("".join(lines), encoding="utf-8")
    if given.figure is not None:
        many = [{"label": r["model"], **r} for r in records if r["rows"] == 500]
        draw(many, given.figure)


if __name__ == "__main__":
    main()
