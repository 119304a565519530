"""Time and error of Gaussian-process scores: from rows, and from moments of Chebyshev polynomials.

Prints the tables of docs/explanation/gaussian-processes.md. CPU seconds, one thread:

    OMP_NUM_THREADS=1 python benchmarks/scores/gp_scores.py
"""

import sys
import time

import numpy as np

import isthmus as ist
from isthmus.gp.bridge import importance
from isthmus.gp.density import Density, design_from_rows, find_modes
from isthmus.statistics.relations import regressions_from_moments


def fourier(rng, n, d=6, decay=1.0, share=0.4):
    """The nonlinear data of Giudice, Kuipers and Moffa 2023, standardised."""
    x = np.zeros((n, d))
    weights = np.exp(-np.arange(7) / decay)
    weights /= weights.sum()
    for i in range(d):
        x[:, i] = rng.normal(size=n)
        for j in np.flatnonzero(rng.random(i) < share):
            v, w = rng.dirichlet(weights), rng.dirichlet(weights)
            curve = w[0] * x[:, j]
            for k in range(1, 7):
                curve = curve + v[k] * np.sin(k * x[:, j]) + w[k] * np.cos(k * x[:, j])
            x[:, i] += rng.uniform(0.5, 2.0) * rng.choice([-1, 1]) * curve
    return (x - x.mean(axis=0)) / x.std(axis=0)


def families(rng, number, d=6):
    for case in range(number):
        child = int(rng.integers(2, d))
        others = rng.permutation([j for j in range(d) if j != child])
        yield child, tuple(sorted(int(j) for j in others[: 1 + case % 3]))


def timed(function, *arguments):
    begin = time.process_time()
    value = function(*arguments)
    return value, time.process_time() - begin


def speed():
    print("rows, parents, exact ms, moments ms, ratio, Gram of six variables s")
    for n in (100, 850, 5000, 10**6):
        x = fourier(np.random.default_rng(1), n)
        names = [f"x{i}" for i in range(6)]
        source = ist.WithFeatures(ist.Frame(x, names=names), ist.GP().basis)
        moments, gram = timed(source.moments)
        regressions = regressions_from_moments(moments, "benchmark")
        for p in (1, 2, 4):
            parents = [0, 1, 2, 3][:p]
            fast = np.mean([timed(regressions.fit, 5, parents)[1] for _ in range(3)])
            exact = np.nan
            if n <= 850:
                design = design_from_rows(x[:, 5], x[:, parents])
                _, exact = timed(find_modes, Density(design))
            elif n == 5000 and p == 1:
                # An estimate: one evaluation times 16, the mean number per fit at 100 rows.
                density = Density(design_from_rows(x[:, 5], x[:, parents]))
                _, once = timed(density.derivatives, np.zeros(p + 1))
                exact = 16 * once
            print(
                f"{n}, {p}, {1e3 * exact:.0f}, {1e3 * fast:.1f}, {exact / fast:.0f}, {gram:.2f}",
                flush=True,
            )


def error(cases=120):
    print("rows, terms, largest error, share below 0.01, share below 0.1, unresolved")
    for n, number in ((100, cases), (300, cases // 3)):
        found = {terms: [] for terms in (24, 32, 48, 64)}
        coarse = dict.fromkeys(found, 0)
        for seed in range(number // 3):
            rng = np.random.default_rng(seed)
            x = fourier(rng, n)
            names = [f"x{i}" for i in range(6)]
            for child, parents in families(rng, 3):
                exact = find_modes(Density(design_from_rows(x[:, child], x[:, parents])))[0]
                for terms, errors in found.items():
                    source = ist.WithFeatures(ist.Frame(x, names=names), ist.Chebyshev(terms, 5.0))
                    fit = regressions_from_moments(source.moments(), "benchmark").fit(
                        child, parents
                    )
                    errors.append(abs(fit.log_likelihood - exact.log_integral))
                    coarse[terms] += not all(fit.resolved)
        for terms, errors in found.items():
            e = np.array(errors)
            print(
                f"{n}, {terms}, {e.max():.2g}, {(e < 0.01).mean():.0%}, "
                f"{(e < 0.1).mean():.0%}, {coarse[terms] / len(e):.0%}",
                flush=True,
            )


def laplace(cases=60):
    print("parents, Laplace minus importance sampling: mean, lowest, highest; error of the latter")
    differences = {1: [], 2: [], 3: []}
    errors = {1: [], 2: [], 3: []}
    for seed in range(cases // 3):
        rng = np.random.default_rng(seed)
        x = fourier(rng, 100)
        for child, parents in families(rng, 3):
            density = Density(design_from_rows(x[:, child], x[:, parents]))
            modes = find_modes(density)
            estimate = importance(density, modes, 1000, rng)
            differences[len(parents)].append(modes[0].log_integral - estimate.value)
            errors[len(parents)].append(estimate.error)
    for p, d in differences.items():
        print(
            f"{p}, {np.mean(d):.2f}, {np.min(d):.2f}, {np.max(d):.2f}; {np.mean(errors[p]):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    for part in sys.argv[1:] or ("speed", "error", "laplace"):
        {"speed": speed, "error": error, "laplace": laplace}[part]()
