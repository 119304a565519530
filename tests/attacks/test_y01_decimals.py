"""y01: one patient's weight has more decimals than anybody else's.

All other contributions to the sum of weight times age are multiples of 0.1, so that the remainder
would be that patient's alone.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from tests.attacks.exact_sums import Table, seen
from tests.attacks.malicious import Attacked

from isthmus.statistics import Schema

NAMES = ("weight", "age", "pressure", "hiv", "cost")
BOUNDS = {
    "weight": (0.0, 300.0),
    "age": (0.0, 120.0),
    "pressure": (0.0, 300.0),
    "hiv": (0.0, 1.0),
    "cost": (0.0, 50000.0),
}
VICTIM = {"weight": 81.6466, "age": 43.0, "pressure": 151.0, "hiv": 1.0, "cost": 12345.0}
TOPS = {"age": 120, "pressure": 300, "hiv": 1, "cost": 50000}


def tables() -> dict[str, Table]:
    rng = np.random.default_rng(11)
    found = {}
    for name, n in (("north", 400), ("east", 700), ("south", 250)):
        found[name] = {
            "weight": rng.normal(80, 15, n).round(1),
            "age": rng.integers(20, 95, n).astype(float),
            "pressure": rng.integers(90, 200, n).astype(float),
            "hiv": (rng.random(n) < 0.1).astype(float),
            "cost": rng.integers(100, 40000, n).astype(float),
        }
    for column, value in VICTIM.items():
        found["east"][column][137] = value
    return found


def recovered(world: Attacked) -> dict[str, list[int]]:
    """The values of each column that fit the remainders of the sums."""
    sums = seen(world)

    def digits(value: Fraction) -> int:
        return round(value * 10**4) % 1000

    remainder = digits(sums.sums["weight"])
    products = {name: digits(sums.products["weight", name]) for name in TOPS}
    return {
        name: [x for x in range(top + 1) if (remainder * x - products[name]) % 1000 == 0]
        for name, top in TOPS.items()
    }


def test_the_remainders_of_sums_show_no_record() -> None:
    schema = Schema.continuous(NAMES)
    truth = {name: int(value) for name, value in VICTIM.items() if name in TOPS}
    open_ = recovered(Attacked(tables(), schema, BOUNDS, protected=False))
    assert all(truth[name] in values for name, values in open_.items())
    assert open_["hiv"] == [1]
    hits = []
    for _ in range(12):
        found = recovered(Attacked(tables(), schema, BOUNDS))
        hits += [truth[name] in found[name] for name in ("age", "pressure", "hiv")]
    assert np.mean(hits) < 0.2  # by chance, few values fit
