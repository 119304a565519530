"""How often tests of independence reject what is independent, and what is not.

    python benchmarks/hidden/levels.py --tables 1000 --rows 200 1000 5000 20000

For each relation of x and y given z: the share of tables in which the test rejects at 5% and at 1%
as `learn` applies it to rows in memory, and, in brackets, at 5% from sums, as in an engine and a
federation. In rows that begin with "power", x and y depend on each other, and otherwise they
do not.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

import isthmus as ist
from isthmus.scores.unequal_spread import functions_for, hold_level, hold_level_of_sums

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


FISHER, NONLINEAR, MIXED = ist.FisherZ(), ist.NonlinearLikelihoodRatio(), ist.MixedLikelihoodRatio()


def numbers(x, y, *z):
    return {"x": x, "y": y} | {f"z{k}": own for k, own in enumerate(z)}


@relation(FISHER, "lines of z, normal noise")
@relation(NONLINEAR, "lines of z, normal noise ")
def line(rng, n):
    z, a, b = rng.normal(size=(3, n))
    return numbers(z + a, z + b, z)


@relation(FISHER, "spread 0.3 + abs(z)")
@relation(NONLINEAR, "spread 0.3 + abs(z) ")
def spread(rng, n):
    z, a, b = rng.normal(size=(3, n))
    return numbers(z + (0.3 + abs(z)) * a, z + (0.3 + abs(z)) * b, z)


@relation(FISHER, "spread by one of three z")
@relation(NONLINEAR, "spread by one of three z ")
def spread_of_three(rng, n):
    u, v, w, a, b = rng.normal(size=(5, n))
    line = u + v - w
    return numbers(line + (0.3 + abs(v)) * a, line + (0.3 + abs(v)) * b, u, v, w)


@relation(FISHER, "noise t(3)")
@relation(NONLINEAR, "noise t(3) ")
def tails(rng, n):
    z = rng.normal(size=n)
    return numbers(z + rng.standard_t(3, n), z + rng.standard_t(3, n), z)


@relation(NONLINEAR, "log-normal, independent")
@relation(FISHER, "log-normal, independent ")
def skewed(rng, n):
    x, y, z = rng.normal(size=(3, n))
    return numbers(np.exp(x), np.exp(y), z)


@relation(FISHER, "power: slope 2.5/sqrt(n)")
def slope(rng, n):
    z, a, b = rng.normal(size=(3, n))
    return numbers(z + a, z + b + 2.5 / np.sqrt(n) * a, z)


@relation(NONLINEAR, "power: 3/sqrt(n) times a parabola")
def parabola(rng, n):
    z, a, b = rng.normal(size=(3, n))
    return numbers(z + a, z + b + 3 / np.sqrt(n) * (z + a) ** 2, z)


@relation(MIXED, "two levels by logit(2 z)")
def logit(rng, n):
    z = rng.normal(size=n)
    x, y = (text((rng.random(n) < 1 / (1 + np.exp(-2 * z))).astype(int)) for _ in "xy")
    return numbers(x, y, z)


@relation(MIXED, "number and two levels by three levels")
def grouped(rng, n):
    z = rng.integers(0, 3, n)
    y = text((rng.random(n) < (1 + z) / 4).astype(int))
    return numbers(z + rng.normal(size=n), y, text(z))


@relation(MIXED, "spread and two levels by three levels")
def grouped_spread(rng, n):
    z = rng.integers(0, 3, n)
    y = text((rng.random(n) < (1 + z) / 4).astype(int))
    return numbers((0.2 + z) * rng.normal(size=n), y, text(z))


@relation(MIXED, "four and five levels, z a number")
def many_levels(rng, n):
    return numbers(text(rng.integers(0, 4, n)), text(rng.integers(0, 5, n)), rng.normal(size=n))


@relation(MIXED, "power: two levels shift x by 5/sqrt(n)")
def shift(rng, n):
    z, a = rng.normal(size=(2, n))
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    return numbers(z + a + 5 / np.sqrt(n) * y, text(y), z)


def p_value(table, test):
    """Return the p-value of `learn` from rows, and that from sums."""
    kinds = {name: ist.Kind.DISCRETE for name, column in table.items() if column.dtype.kind == "U"}
    source = ist.Frame(table, kinds=kinds)
    gathered = source if test.basis is None else ist.WithFeatures(source, test.basis)
    bound = test.bind(gathered.gather(test.needs))
    given = list(range(2, len(table)))
    if isinstance(test, ist.ChiSquared):
        return 2 * [bound.p_values(0, given, [1])[0]]
    complete = source.complete_columns()
    held = hold_level(test, bound, complete.schema, complete.columns)
    functions = gathered if test.basis else ist.WithFeatures(source, functions_for(test))
    from_sums = hold_level_of_sums(test, bound, functions.moments())
    return [each.p_values(0, given, [1])[0] for each in (held, from_sums)]


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
            tables = (make(np.random.default_rng((seed, n)), n) for seed in range(options.tables))
            p = np.nan_to_num(np.array([p_value(table, test) for table in tables]), nan=1.0)
            held, sums = (100 * (p < 0.05).mean(axis=0)).tolist()
            shares.append(f"{held:.1f}, {100 * (p[:, 0] < 0.01).mean():.1f} ({sums:.1f})")
        name = name.strip()
        print(f"| `{type(test).__name__}` | {name} | " + " | ".join(shares) + " |", flush=True)


if __name__ == "__main__":
    main()
