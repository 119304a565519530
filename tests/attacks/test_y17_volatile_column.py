"""y17, y17b: a week later one patient has withdrawn, and one column has changed for everybody.

Whoever compares rows finds hundreds of differences; the sums of the other columns differ by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.exact_sums import Seen, Table, seen, without
from tests.attacks.malicious import Attacked

from isthmus.errors import RefusedError
from isthmus.joint import Persons
from isthmus.statistics import Schema

NAMES = ("age", "weight", "hiv", "days")
BOUNDS = {"age": (0.0, 120.0), "weight": (0.0, 300.0), "hiv": (0.0, 1.0), "days": (0.0, 4000.0)}
SIZES = {"north": 400, "east": 700, "south": 250}


def weeks(changed: slice) -> list[dict[str, Table]]:
    rng = np.random.default_rng(17)
    first: dict[str, Table] = {}
    for name, n in SIZES.items():
        first[name] = {
            "age": rng.integers(20, 95, n).astype(float),
            "weight": rng.normal(80, 15, n).round(1),
            "hiv": (rng.random(n) < 0.1).astype(float),
            "days": rng.integers(1, 900, n).astype(float),
            "pid": np.arange(n),
        }
    second = {name: {k: c.copy() for k, c in t.items()} for name, t in first.items()}
    second["east"] = without(second["east"], 137)
    for table in second.values():
        table["days"][changed] += 7.0
    return [first, second]


def answers(tables: list[dict[str, Table]], **options: Any) -> list[Seen]:
    earlier, found = None, []
    for week, each in enumerate(tables):
        schema = Schema.continuous(NAMES)
        earlier = Attacked(each, schema, BOUNDS, earlier=earlier, purpose=f"{week}", **options)
        found.append(seen(earlier))
    return found


@pytest.mark.parametrize("changed", [slice(None), slice(50)])
def test_a_column_that_changes_hides_no_withdrawal(changed: slice) -> None:
    tables = weeks(changed)
    one, two = answers(tables, protected=False)
    assert one.n - two.n == 1
    for name in NAMES[:3]:
        left = one.sums[name] - two.sums[name]
        assert float(left) == pytest.approx(tables[0]["east"][name][137])
    with pytest.raises(RefusedError, match="--other-persons"):
        answers(tables)
    with pytest.raises(RefusedError, match="are in another cohort"):
        answers(tables, rules={"persons": Persons("column:pid")})
