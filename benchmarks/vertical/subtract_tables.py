"""One person's value from the difference of three of a party's own tables, none of them withheld.

    python benchmarks/vertical/subtract_tables.py

Nothing is computed in secret here: the network and the tables are those of the joined table, and
the rule that withholds tables is the one of studies.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

PEOPLE, SEEDS, LEAST = 2000, 20, 5
ORDER = ("theirs", "a", "b", "union")


def withheld(counts: Any) -> bool:
    """Whether a study would withhold a table: see `isthmus_joint.shares.private_k2.release`."""
    small = ((counts > 0) & (counts < LEAST)).any()
    return bool(small or ((counts > 0).sum(axis=1) == 1).any())


def reads(seed: int) -> bool:
    """Whether the owner of a, b and union reads the value of one person of `theirs`."""
    import isthmus as ist

    rng = np.random.default_rng(seed)
    a = rng.random(PEOPLE) < 0.3
    b = ~a & (rng.random(PEOPLE) < 0.43)
    person = np.flatnonzero(~a & ~b)[0]
    union = a | b
    union[person] = True
    theirs = union ^ (rng.random(PEOPLE) < 0.02)
    theirs[person] = rng.random() < 0.5
    columns = dict(zip(ORDER, (theirs, a, b, union), strict=True))
    rows = {name: np.where(values, "yes", "no") for name, values in columns.items()}
    search = ist.KnownOrder(order=ORDER, max_parents=1)
    dag = ist.learn(rows, score=ist.K2(), search=search).dag
    tables = []
    for name in ORDER[1:]:
        counts = np.array(
            [[np.sum((columns[name] == i) & (theirs == j)) for j in (0, 1)] for i in (0, 1)]
        )
        if list(dag.parents(name)) != ["theirs"] or withheld(counts):
            return False
        tables.append(counts[1, 1])
    return bool(tables[2] - tables[0] - tables[1] == theirs[person])


if __name__ == "__main__":
    print(f"{sum(map(reads, range(SEEDS)))} of {SEEDS}")
