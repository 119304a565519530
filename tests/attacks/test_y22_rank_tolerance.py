"""y22: two time stamps differ by microseconds for one patient, below the digits of the check."""

from __future__ import annotations

import numpy as np
from tests.attacks.exact_sums import Table, seen
from tests.attacks.malicious import Attacked

from isthmus.statistics import Schema

NAMES = ("ordered", "received", "age", "hiv")
BOUNDS = {"ordered": (0.0, 4e9), "received": (0.0, 4e9), "age": (0.0, 120.0), "hiv": (0.0, 1.0)}


def tables() -> dict[str, Table]:
    rng = np.random.default_rng(22)
    found: dict[str, Table] = {}
    for name, n in (("north", 400), ("east", 700), ("south", 250)):
        stamp = rng.integers(10**9, 17 * 10**8, n).astype(float)
        found[name] = {
            "ordered": stamp,
            "received": stamp.copy(),
            "age": rng.integers(20, 95, n).astype(float),
            "hiv": (rng.random(n) < 0.1).astype(float),
        }
    found["east"]["received"][137] += 2e-5
    found["east"]["hiv"][137] = 1.0
    return found


def recovered(world: Attacked) -> dict[str, float]:
    """The record in which the two columns differ, if there is one."""
    sums = seen(world)
    apart = sums.sums["received"] - sums.sums["ordered"]
    return {
        name: float((sums.products["received", name] - sums.products["ordered", name]) / apart)
        for name in ("age", "hiv")
    }


def test_a_direction_that_the_check_cannot_see_is_not_released() -> None:
    data, schema = tables(), Schema.continuous(NAMES)
    truth = {name: float(data["east"][name][137]) for name in ("age", "hiv")}
    found = recovered(Attacked(data, schema, BOUNDS, protected=False))
    assert all(abs(found[name] - truth[name]) < 1e-3 for name in truth)
    found = recovered(Attacked(data, schema, BOUNDS))
    assert all(abs(found[name] - truth[name]) > 0.1 for name in truth)
