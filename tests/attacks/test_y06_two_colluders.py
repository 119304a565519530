"""y06: two rosters whose difference is one site and two colluders who know their own numbers."""

from __future__ import annotations

import numpy as np
import pytest
from tests.attacks.exact_sums import Table, seen
from tests.attacks.malicious import Attacked

from isthmus.errors import RefusedError
from isthmus.statistics import Schema

NAMES = ("age", "weight")
BOUNDS = {"age": (0.0, 120.0), "weight": (0.0, 300.0)}
SCHEMA = Schema.continuous(NAMES)


def patients(n: int, seed: int) -> Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 95, n).astype(float)
    return {"age": age, "weight": rng.normal(80 + seed, 15, n).round(1)}


TABLES = {n: patients(200 + 40 * i, i) for i, n in enumerate(["victim", "a", "b", "c", "d", "e"])}


def roster(*names: str) -> dict[str, Table]:
    return {n: TABLES[n] for n in names}


def test_two_rosters_do_not_show_a_site_to_two_colluders() -> None:
    small, large = roster("victim", "a", "b", "c"), roster("a", "b", "c", "d", "e")
    one, two = (seen(Attacked(t, SCHEMA, BOUNDS, protected=False)) for t in (small, large))
    own = sum(len(TABLES[n]["age"]) for n in "de")
    n = one.n - two.n + own
    assert n == len(TABLES["victim"]["age"])
    for name in NAMES:
        total = one.sums[name] - two.sums[name] + sum(TABLES[c][name].sum() for c in "de")
        assert float(total) / n == pytest.approx(TABLES["victim"][name].mean())
    first = Attacked(small, SCHEMA, BOUNDS)
    seen(first)
    with pytest.raises(RefusedError, match="sites of the study"):
        Attacked(large, SCHEMA, BOUNDS, earlier=first)
