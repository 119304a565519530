"""Posterior over all graphs of four nodes: Laplace, importance sampling and BGe, compared.

After Figure 3 of Giudice, Kuipers and Moffa 2023. The reference is importance sampling with 5,000
draws per family.

    OMP_NUM_THREADS=1 python benchmarks/scores/gp_posterior.py
"""

import itertools

import numpy as np
from gp_scores import fourier

import isthmus as ist
from isthmus.statistics import Rows
from isthmus.testing import enumerate_dags


def posterior(local, dags, names):
    position = {name: i for i, name in enumerate(names)}
    families = {}
    for child in range(4):
        others = [j for j in range(4) if j != child]
        for size in range(4):
            for parents in itertools.combinations(others, size):
                families[child, parents] = local(child, parents)
    scores = np.array(
        [
            sum(
                families[position[v], tuple(sorted(position[p] for p in dag.parents(v)))]
                for v in names
            )
            for dag in dags
        ]
    )
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def divergence(q, p):
    kept = q > 0
    return float((q[kept] * np.log(q[kept] / np.maximum(p[kept], 1e-300))).sum())


def main():
    names = list("abcd")
    dags = list(enumerate_dags(names))
    print(f"{len(dags)} graphs; KL(q, truth) for BGe, Laplace, importance sampling (300 draws)")
    rows = []
    for seed in range(4):
        x = fourier(np.random.default_rng(seed), 100, d=4, share=0.5)
        table = {name: x[:, i] for i, name in enumerate(names)}
        statistics = Rows(ist.Schema.continuous(names), x)
        sampled = ist.GPIntegral.IMPORTANCE
        truth = posterior(
            ist.ExactGP(integral=sampled, integration_draws=5_000).bind(statistics).local,
            dags,
            names,
        )
        candidates = [
            ist.BGe().bind(ist.summarise(table)).local,
            ist.ExactGP().bind(statistics).local,
            ist.ExactGP(integral=sampled).bind(statistics).local,
        ]
        rows.append([divergence(posterior(c, dags, names), truth) for c in candidates])
        print(seed, *(f"{v:.4f}" for v in rows[-1]), flush=True)
    print("median", *(f"{v:.4f}" for v in np.median(rows, axis=0)))


if __name__ == "__main__":
    main()
