"""What a coordinator learns of single sites from the secure sums of linear ADMM.

    python benchmarks/federation/admm_attack.py SITES VARIABLES ROWS_A_SITE [ROUNDS]

The coordinator knows W and ρ of every round and sees Σ_k (B_k + β_k/ρ). Each B_k is a
combination of resolvents R_k(ρ) = (S_k + ρI)⁻¹, with the same coefficients for all sites, so every
round gives G(ρ) = Σ_k R_k(ρ) for one more ρ. G is a rational function whose poles are the
eigenvalues of all S_k and whose residues are their eigenvectors: a block Loewner pencil finds
both, and vectors of one site are orthogonal to each other, which sorts them.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.linalg import eig, svd

from isthmus.statistics import Schema
from isthmus_joint.methods.admm import ADMMCourse, LinearClient
from isthmus_joint.methods.admm_models import ADMMOptions, LinearConsensus


def transcript(seconds, rounds):
    """What the coordinator has after some rounds: W before, ρ, and the sum, of each."""
    clients = [LinearClient(s) for s in seconds]
    schema = Schema.continuous([f"x{i}" for i in range(len(seconds[0]))])
    course = ADMMCourse(LinearConsensus(schema, ADMMOptions()), ADMMOptions())
    course.take(np.array([len(clients), 10.0**6]))
    seen = []
    for _ in range(rounds):
        w, rho = course.common, course.rho
        seen.append((w, rho, sum(c.answer(w, rho) for c in clients)))
        course.take(seen[-1][-1])
    return seen


def resolvents(seen, sites):
    """G(ρ) of each round, from the transcript alone."""
    d = len(seen[0][0])
    eye = np.eye(d)
    rhos, found = [], []
    # B_k - I = Σ_s R_k(ρ_s) C_s; the C_s are the same for all sites.
    coefficients: list[np.ndarray] = []
    before = np.zeros((d, d))
    for w, rho, total in seen:
        # β_k = ρ' (W' - W) - S_k (B_k - I) of the round before, and S R(r) = I - r R(r):
        # a constant and Σ r_s R_k(ρ_s) C_s.
        constant = before - sum(coefficients, np.zeros((d, d)))
        if rhos:
            constant = constant - rhos[-1] * w
        beta = [r * c for r, c in zip(rhos, coefficients, strict=True)]
        # B_k - I = R_k(ρ) (ρ (W - I) - β_k);  R(ρ) R(r) = (R(r) - R(ρ)) / (ρ - r)
        new = [-b / (rho - r) for b, r in zip(beta, rhos, strict=True)]
        own = rho * (w - eye) - constant - sum(new, np.zeros((d, d)))
        # the sum the coordinator sees: Σ (B_k + β_k/ρ)
        known = sites * (eye + constant / rho)
        for g, b, c in zip(found, beta, new, strict=True):
            known = known + g @ (c + b / rho)
        g = np.linalg.solve(own.T, (total - known).T).T
        found.append((g + g.T) / 2)
        rhos.append(rho)
        coefficients = [*new, own]
        before = rho * w
    return np.array(rhos), found


def poles(rhos, values, order):
    """Eigenvalues and eigenvectors of all sites together, from samples of G."""
    left, right = np.arange(0, len(rhos), 2), np.arange(1, len(rhos), 2)
    scale = np.sqrt(rhos)
    loewner = np.block(
        [
            [(values[i] - values[j]) / (rhos[i] - rhos[j]) * scale[i] * scale[j] for j in right]
            for i in left
        ]
    )
    shifted = np.block(
        [
            [
                (rhos[i] * values[i] - rhos[j] * values[j])
                / (rhos[i] - rhos[j])
                * scale[i]
                * scale[j]
                for j in right
            ]
            for i in left
        ]
    )
    u, s, vt = svd(loewner)
    order = min(order, int((s > 1e-13 * s[0]).sum()))
    u, v = u[:, :order], vt[:order].T
    a, b = u.T @ shifted @ v, u.T @ loewner @ v
    eigenvalues, x = eig(a, b)
    # What the pencil maps an eigenvector to is the residue's vector once for every sample.
    images = np.real(loewner @ v @ x).reshape(len(left), len(values[0]), order)
    vectors = np.array([svd(images[:, :, i])[2][0] for i in range(order)])
    return -np.real(eigenvalues), vectors


def sorted_into_sites(eigenvalues, vectors, d):
    """Second moments of each site: vectors of one site are orthogonal to each other."""
    overlap = np.abs(vectors @ vectors.T)
    left = list(np.argsort(-eigenvalues))
    found = []
    while left:
        group = [left.pop(0)]
        while left and len(group) < d:
            group.append(left.pop(int(np.argmin([overlap[i, group].max() for i in left]))))
        found.append(sum(eigenvalues[i] * np.outer(vectors[i], vectors[i]) for i in group))
    return found


def main(sites: int, d: int, rows: int, rounds: int = 40) -> None:
    rng = np.random.default_rng(0)
    mixing = np.triu(rng.normal(size=(d, d)) * (rng.random((d, d)) < 2 / d), 1) + np.eye(d)
    data = [rng.normal(size=(rows, d)) @ mixing for _ in range(sites)]
    seconds = [x.T @ x / (rows * sites) for x in data]
    seen = transcript(seconds, rounds)
    rhos, values = resolvents(seen, sites)
    true = [sum(np.linalg.inv(s + r * np.eye(d)) for s in seconds) for r in rhos]
    errors = [np.linalg.norm(v - t) / np.linalg.norm(t) for v, t in zip(values, true, strict=True)]
    print(f"sum of resolvents, relative error: median {np.median(errors):.1e}")
    spectrum = np.sort(np.concatenate([np.linalg.eigvalsh(s) for s in seconds]))
    found, vectors = poles(rhos, values, sites * d)
    nearest = [np.abs(found - e).min() / e for e in spectrum]
    print(f"eigenvalues of single sites, relative error: median {np.median(nearest):.1e}")
    guesses = sorted_into_sites(found, vectors, d)
    errors = [min(np.linalg.norm(g - t) for g in guesses) / np.linalg.norm(t) for t in seconds]
    pooled = sum(seconds) / sites
    blind = [np.linalg.norm(pooled - t) / np.linalg.norm(t) for t in seconds]
    print(
        f"second moments of single sites: median {np.median(errors):.1e}; "
        f"guessing the average: {np.median(blind):.2f}"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
