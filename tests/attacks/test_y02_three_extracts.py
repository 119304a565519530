"""y02: the patients of two years, and then of both years without one who withdrew.

Every two of the three tables differ by hundreds of persons, and all three together by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.exact_sums import Seen, Table, joined, seen, without
from tests.attacks.malicious import Attacked

from isthmus.errors import RefusedError
from isthmus.joint import Persons
from isthmus.statistics import Schema

NAMES = ("age", "weight", "pressure", "hiv")
BOUNDS = {"age": (0.0, 120.0), "weight": (0.0, 300.0), "pressure": (0.0, 300.0), "hiv": (0.0, 1.0)}
SIZES = {"north": 400, "east": 700, "south": 250}
SCHEMA = Schema.continuous(NAMES)


def patients(n: int, seed: int, first: int) -> Table:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.integers(20, 95, n).astype(float),
        "weight": rng.normal(80, 15, n).round(1),
        "pressure": rng.normal(140, 15, n).round(0),
        "hiv": (rng.random(n) < 0.1).astype(float),
        "pid": first + np.arange(n),
    }


def extracts() -> list[dict[str, Table]]:
    one = {name: patients(n, i, 0) for i, (name, n) in enumerate(SIZES.items())}
    two = {name: patients(n, 10 + i, 10**6) for i, (name, n) in enumerate(SIZES.items())}
    both = {name: joined(one[name], two[name]) for name in SIZES}
    both["east"] = without(both["east"], 137)
    return [one, two, both]


def answers(**options: Any) -> list[Seen]:
    earlier, found = None, []
    for year, tables in enumerate(extracts()):
        earlier = Attacked(
            tables, SCHEMA, BOUNDS, earlier=earlier, purpose=f"extract {year}", **options
        )
        found.append(seen(earlier))
    return found


def test_three_extracts_show_no_withdrawn_patient() -> None:
    one, two, both = answers(protected=False)
    assert one.n + two.n - both.n == 1
    victim = extracts()[0]["east"]
    for name in NAMES:
        left = one.sums[name] + two.sums[name] - both.sums[name]
        assert float(left) == pytest.approx(victim[name][137])
    with pytest.raises(RefusedError, match="are in another cohort"):
        answers(rules={"persons": Persons("column:pid")})
    with pytest.raises(RefusedError, match="--other-persons"):
        answers()
