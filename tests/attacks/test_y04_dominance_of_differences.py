"""y04: two tables of numbers, fifty persons apart, whose rows as a table would be refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.attacks.exact_sums import Seen, Table, joined, seen
from tests.attacks.malicious import Attacked

from isthmus.errors import RefusedError
from isthmus.joint import Persons
from isthmus.statistics import Schema

ARMS = ("left", "right", "age", "hiv", "weight")
WIDE = tuple(f"v{i}" for i in range(60))


def arms(n: int, *, differ: bool = True, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    left = rng.integers(100, 190, n).astype(float)
    return {
        "left": left,
        "right": left + (rng.integers(-8, 9, n) if differ else 0),
        "age": rng.integers(20, 95, n).astype(float),
        "hiv": (rng.random(n) < 0.3).astype(float),
        "weight": rng.normal(80, 15, n).round(1),
    }


def wide(n: int, seed: int = 0) -> Table:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(0, 20, n) for name in WIDE}


def quarters(make: Callable[..., Table], new: Table) -> list[dict[str, Table]]:
    sizes = (("x", 700), ("y", 800), ("z", 600))
    before = {n: make(k, seed=i) | {"pid": np.arange(k)} for i, (n, k) in enumerate(sizes)}
    new = new | {"pid": 10**6 + np.arange(50)}
    return [before, before | {"y": joined(before["y"], new)}]


def answers(quarters: list[dict[str, Table]], names: tuple[str, ...], **more: Any) -> list[Seen]:
    earlier, found = None, []
    bounds = dict.fromkeys(names, (-500.0, 500.0))
    for i, tables in enumerate(quarters):
        schema = Schema.continuous(names)
        earlier = Attacked(tables, schema, bounds, earlier=earlier, purpose=f"{i}", **more)
        found.append(seen(earlier))
    return found


def test_the_record_in_which_two_measurements_differ_is_not_shown() -> None:
    new = arms(50, differ=False, seed=7)
    new["right"][17] += 6.0
    new["hiv"][17] = 1.0
    tables = quarters(arms, new)
    one, two = answers(tables, ARMS, protected=False)
    apart = (two.sums["right"] - one.sums["right"]) - (two.sums["left"] - one.sums["left"])
    assert float(apart) == 6.0
    for name in ("age", "hiv", "weight"):
        both = [two.products[arm, name] - one.products[arm, name] for arm in ("right", "left")]
        assert float((both[0] - both[1]) / apart) == pytest.approx(new[name][17])
    rules = {"persons": Persons("column:pid")}
    with pytest.raises(RefusedError, match="sum of squares"):
        answers(tables, ARMS, rules=rules)


def test_fewer_new_rows_than_columns_are_not_shown() -> None:
    tables = quarters(wide, wide(50, seed=7))
    one, two = answers(tables, WIDE, protected=False)
    gram = [[float(two.products[a, b] - one.products[a, b]) for b in WIDE] for a in WIDE]
    assert np.linalg.matrix_rank(np.array(gram), tol=1e-3) == 50  # all fifty rows span it
    with pytest.raises(RefusedError, match="60 columns"):
        answers(tables, WIDE, rules={"persons": Persons("column:pid")})
