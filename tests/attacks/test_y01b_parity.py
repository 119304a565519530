"""y01b: blood pressures are even, one is odd; the parity of a product would be a diagnosis."""

from __future__ import annotations

import numpy as np
from tests.attacks.exact_sums import Table, seen
from tests.attacks.malicious import Attacked

from isthmus.statistics import Schema

FLAGS = tuple(f"icd{i}" for i in range(12))
BOUNDS = {"pressure": (0.0, 300.0)} | dict.fromkeys(FLAGS, (0.0, 1.0))


def tables() -> tuple[dict[str, Table], list[int]]:
    rng = np.random.default_rng(12)
    found: dict[str, Table] = {}
    for name, n in (("north", 900), ("east", 1200), ("south", 800)):
        flags = {k: (rng.random(n) < 0.2).astype(float) for k in FLAGS}
        found[name] = {"pressure": 2.0 * rng.integers(45, 100, n)} | flags
    truth = rng.integers(0, 2, len(FLAGS)).tolist()
    found["east"]["pressure"][7] = 141.0
    for name, value in zip(FLAGS, truth, strict=True):
        found["east"][name][7] = float(value)
    return found, truth


def diagnoses(world: Attacked) -> list[int]:
    sums = seen(world)
    return [int(sums.products["pressure", name]) % 2 for name in FLAGS]


def test_the_parity_of_sums_shows_no_diagnosis() -> None:
    data, truth = tables()
    schema = Schema.continuous(("pressure", *FLAGS))
    assert diagnoses(Attacked(data, schema, BOUNDS, protected=False)) == truth
    found = [diagnoses(Attacked(data, schema, BOUNDS)) for _ in range(10)]
    hits = np.mean(np.array(found) == np.array(truth))
    assert 0.35 < hits < 0.65  # coins
