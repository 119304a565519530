"""Power of the nonlinear test beside the kernel test (KCI) of causal-learn.

    python benchmarks/hidden/power.py --rows 200 --repetitions 100
    python benchmarks/hidden/power.py --rows 500 --repetitions 50

Both test whether x and y are independent, without a condition or given z, at the level 0.05, on the
same tables. Prints the share of rejected tables and the CPU time per test. KCI has its default
options: Gaussian kernels and the gamma approximation. One core.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from causallearn.utils.KCI.KCI import KCI_CInd, KCI_UInd

import isthmus as ist

LEVEL = 0.05


def tables(rng, n):
    """Yield the name of a relation, x, y, and z or None; the first two are independent."""
    x, z, e = rng.normal(size=(3, n))
    yield "independent", x, e, None
    yield "independent given z", z**2 + x, np.tanh(2.0 * z) + e, z
    yield "line", x, 0.2 * x + e, None
    yield "parabola", x, 0.3 * x**2 + e, None
    yield "sine", x, 0.5 * np.sin(2.5 * x) + e, None
    yield "noise that spreads with the size of x", x, np.abs(x) * e, None
    yield "line given z", np.tanh(z) + x, 0.3 * x + z**2 + e, z
    yield "parabola given z", np.tanh(z) + x, 0.3 * x**2 + z + e, z
    yield "interaction given z", x, 0.4 * x * z + e, z


def ours(x, y, z):
    table = {"x": x, "y": y} | ({} if z is None else {"z": z})
    test = ist.NonlinearLikelihoodRatio()
    bound = test.bind(ist.WithFeatures(table, test.basis).moments())
    return bound.p_values(0, [] if z is None else [2], [1])[0]


def kernels(x, y, z):
    if z is None:
        return KCI_UInd().compute_pvalue(x[:, None], y[:, None])[0]
    return KCI_CInd().compute_pvalue(x[:, None], y[:, None], z[:, None])[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=100)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    methods = {"NonlinearLikelihoodRatio": ours, "KCI": kernels}
    rejected, seconds = {}, dict.fromkeys(methods, 0.0)
    for repetition in range(options.repetitions):
        rng = np.random.default_rng((repetition, options.rows))
        for relation, *columns in tables(rng, options.rows):
            for name, test in methods.items():
                begin = time.process_time()
                p_value = test(*columns)
                seconds[name] += time.process_time() - begin
                rejected.setdefault(relation, dict.fromkeys(methods, 0))[name] += p_value < LEVEL
    print(f"{options.rows} rows, {options.repetitions} tables")
    print("| relation | " + " | ".join(methods) + " |")
    print("| --- " * (1 + len(methods)) + "|")
    for relation, counts in rejected.items():
        shares = (f"{counts[name] / options.repetitions:.2f}" for name in methods)
        print(f"| {relation} | " + " | ".join(shares) + " |")
    tests = options.repetitions * len(rejected)
    times = (f"{1e3 * seconds[name] / tests:.2g}" for name in methods)
    print("| CPU ms per test | " + " | ".join(times) + " |")


if __name__ == "__main__":
    main()
