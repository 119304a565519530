"""y03: two tables of counts, fifty persons apart; their difference would be full of ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.exact_sums import Table, joined
from tests.attacks.malicious import Attacked

from isthmus.errors import RefusedError
from isthmus.joint import Persons
from isthmus.statistics import CountPlan, Schema

NAMES = ("hiv", "sex", "drug", "smoker", "psych")
SCHEMA = Schema.discrete(dict.fromkeys(NAMES, (False, True)))
ALL = CountPlan.everything()


def patients(n: int, seed: int, first: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    return {k: rng.random(n) < 0.45 for k in NAMES} | {"pid": first + np.arange(n)}


def world(tables: dict[str, Table], earlier: Attacked | None = None, **options: Any) -> Attacked:
    terms: dict[str, Any] = {"requests": ("counts",), "plan": ALL, "earlier": earlier}
    purpose = "a quarter" if earlier is None else "the next quarter"
    return Attacked(tables, SCHEMA, {}, purpose=purpose, **terms, **options)


def test_the_table_of_fifty_new_patients_is_not_shown() -> None:
    before = {n: patients(k, i) for i, (n, k) in enumerate((("x", 700), ("y", 900), ("z", 800)))}
    new = patients(50, 9, 10**6)
    after = before | {"y": joined(before["y"], new)}
    one, two = (world(t, protected=False).federation().counts(ALL) for t in (before, after))
    shown = (two.table(NAMES) - one.table(NAMES)).reshape(-1)
    codes = sum(new[k].astype(int) << (4 - i) for i, k in enumerate(NAMES))
    assert shown.tolist() == np.bincount(codes, minlength=32).tolist()
    assert (shown == 1).any()
    rules = {"persons": Persons("column:pid")}
    first = world(before, rules=rules)
    first.federation().counts(ALL)
    with pytest.raises(RefusedError, match="fewer than 5 persons"):
        world(after, first, rules=rules)
