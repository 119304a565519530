"""How often tests of independence reject what is independent, and what is not.

    python benchmarks/hidden/levels.py --tables 1000 --rows 200 1000 5000 20000

For each relation of x and y given z: the share of tables in which the test rejects at 5% and at 1%.
In rows that begin with "power", x and y depend on each other, and otherwise they do not.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import isthmus as ist

RELATIONS = {}


def relation(test, name):
    def register(make):
        RELATIONS[name] = test, make
        return make

    return register


def text(codes):
    return np.array([f"level {k}" for k in range(int(codes.max()) + 1)])[codes]


def discrete(z, x, y):
    return {"x": text(x), "y": text(y), "z": text(z)}


def rare(rng, k, n):
    return rng.choice(k, n, p=[*(0.5**i for i in range(1, k)), 0.5 ** (k - 1)])


@relation(ist.ChiSquared(), "2 levels, none to condition on")
def two(rng, n):
    return discrete(np.arange(n) * 0, 1 * (rng.random(n) < 0.3), 1 * (rng.random(n) < 0.6))


@relation(ist.ChiSquared(), "6 levels that follow z")
def six(rng, n):
    z = rng.integers(0, 6, n)
    return discrete(z, *(np.where(rng.random(n) < 0.7, z, rng.integers(0, 6, n)) for _ in "xy"))


@relation(ist.ChiSquared(), "3 levels, z has 81")
def many(rng, n):
    z = rng.integers(0, 81, n)
    x, y = ((z + (rng.random(n) < 0.4) * rng.integers(0, 3, n)) % 3 for _ in "xy")
    return discrete(z, x, y)


@relation(ist.ChiSquared(), "8 levels, the rarest 1/128")
def uneven(rng, n):
    return discrete(*(rare(rng, 8, n) for _ in "zxy"))


@relation(ist.ChiSquared(), "power: 4 levels, x sets 3/sqrt(n) of y")
def four(rng, n):
    z, x, y = rng.integers(0, 4, (3, n))
    return discrete(z, x, np.where(rng.random(n) < 3 / np.sqrt(n), x, y))


@relation(ist.ChiSquared(), "power: 8 levels, the rarest 1/128")
def uneven_power(rng, n):
    z, x, y = (rare(rng, 8, n) for _ in "zxy")
    return discrete(z, x, np.where(rng.random(n) < 3 / np.sqrt(n), x, y))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000, 5000, 20000])
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| test | relation | " + " | ".join(f"n = {n}" for n in options.rows) + " |")
    print("| --- | --- " + "| --- " * len(options.rows) + "|")
    for name, (test, make) in RELATIONS.items():
        if options.only not in type(test).__name__:
            continue
        shares = []
        for n in options.rows:
            p_values = []
            for seed in range(options.tables):
                table = make(np.random.default_rng((seed, n)), n)
                bound = test.bind(gathered(table, test))
                p_values.append(bound.p_values(0, [2], [1])[0])
            p = np.nan_to_num(np.array(p_values), nan=1.0)
            shares.append(f"{100 * (p < 0.05).mean():.1f}, {100 * (p < 0.01).mean():.1f}")
        print(f"| `{type(test).__name__}` | {name} | " + " | ".join(shares) + " |", flush=True)


def gathered(table, test):
    kinds = {name: ist.Kind.DISCRETE for name, column in table.items() if column.dtype.kind == "U"}
    source = ist.Frame(table, kinds=kinds)
    if test.basis is not None:
        source = ist.WithFeatures(source, test.basis)
    return source.gather(test.needs)


if __name__ == "__main__":
    main()
