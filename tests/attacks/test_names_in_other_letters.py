"""An author writes names in other letters, so that two studies seem to share no variable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import Attacked

from isthmus.errors import IsthmusError
from isthmus.statistics import Schema

BOUNDS = {"age": (0.0, 120.0), "weight": (0.0, 300.0), "pressure": (0.0, 300.0)}


def stored(connection: Any, name: str, rows: int, seed: int) -> Any:
    """A table of a database, which finds columns in upper and in lower case."""
    rng = np.random.default_rng(seed)
    values = {
        "age": rng.integers(20, 95, rows).astype(float),
        "weight": rng.normal(80, 15, rows).round(1),
        "pressure": rng.integers(90, 200, rows).astype(float),
    }
    connection.execute(f"create table {name}(age double, weight double, pressure double)")
    rows_of = list(zip(*(column.tolist() for column in values.values()), strict=True))
    connection.executemany(f"insert into {name} values (?, ?, ?)", rows_of)
    return connection.table(name)


@pytest.mark.long
def test_names_in_other_letters_do_not_hide_a_withdrawal() -> None:
    connection = pytest.importorskip("duckdb").connect()
    sites = (("north", 200), ("east", 300), ("south", 250))
    tables = {n: stored(connection, n, rows, i) for i, (n, rows) in enumerate(sites)}
    first = Attacked(tables, Schema.continuous(BOUNDS), BOUNDS)
    assert first.federation().moments().n == 750
    connection.execute("delete from east where rowid = 137")
    tables["east"] = connection.table("east")
    other = {name.upper(): bounds for name, bounds in BOUNDS.items()}
    with pytest.raises(IsthmusError):
        Attacked(
            tables,
            Schema.continuous(other),
            other,
            earlier=first,
            purpose="again",
            rules={"variables": ("*",)},
        ).federation().moments()
