"""y05: the same patients by two bandings of the age, whose cuts differ by one year."""

from __future__ import annotations

import numpy as np
import pytest
from tests.attacks.exact_sums import Table, seen
from tests.attacks.malicious import Attacked

from isthmus.errors import RefusedError
from isthmus.statistics import Kind, Schema, Variable

NUMBERS = ("weight", "hiv", "cost")
BOUNDS = {"weight": (0.0, 300.0), "hiv": (0.0, 1.0), "cost": (0.0, 1e6)}
FOUR, TWO = ("20-39", "40-59", "60-79", "80+"), ("to 60", "from 61")


def schema(name: str, levels: tuple[str, ...]) -> Schema:
    numbers = (Variable(k, Kind.CONTINUOUS) for k in NUMBERS)
    return Schema((Variable(name, Kind.DISCRETE, levels), *numbers))


def tables() -> dict[str, Table]:
    rng = np.random.default_rng(5)
    found: dict[str, Table] = {}
    for name, n in (("north", 400), ("east", 700), ("south", 250)):
        age = rng.integers(20, 95, n)
        age[age == 60] = 59
        if name == "east":
            age[137] = 60
        found[name] = {
            "band": np.select([age < 40, age < 60, age < 80], FOUR[:3], FOUR[3]),
            "half": np.where(age < 61, *TWO),
            "weight": rng.normal(80, 15, n).round(1),
            "hiv": (rng.random(n) < 0.2).astype(float),
            "cost": rng.gamma(2, 3000, n).round(0),
        }
    return found


def test_two_bandings_do_not_show_the_only_person_of_an_age() -> None:
    data = tables()
    one = seen(Attacked(data, schema("band", FOUR), BOUNDS, protected=False))
    two = seen(Attacked(data, schema("half", TWO), BOUNDS, protected=False))
    bands, (half,) = ("band=40-59", "band=60-79", "band=80+"), ("half=from 61",)
    who = one.sums[bands[1]] + one.sums[bands[2]] - two.sums[half]
    assert float(who) == 1.0
    for name in NUMBERS:
        value = sum(one.products[b, name] for b in bands[1:]) - two.products[half, name]
        assert float(value) == pytest.approx(data["east"][name][137])
    first = Attacked(data, schema("band", FOUR), BOUNDS)
    seen(first)
    with pytest.raises(RefusedError, match=r"no variables \['half'\]"):
        Attacked(data, schema("half", TWO), BOUNDS, earlier=first)
    banded = {n: t | {"band": t["half"]} for n, t in data.items()}  # under the same name
    with pytest.raises(RefusedError, match="--other-persons"):
        Attacked(banded, schema("band", TWO), BOUNDS, earlier=first)
