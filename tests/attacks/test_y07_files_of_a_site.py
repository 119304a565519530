"""y07: whoever reads the folder of a site after a study finds no values of retired cohorts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.attacks.malicious import Attacked
from tests.attacks.test_y02_three_extracts import BOUNDS, SCHEMA, SIZES, patients

from isthmus.joint import CohortStore, FileLedger, Persons


def files_with_rows(home: Path, world: Attacked, site: str) -> set[str]:
    """Names of files that contain the bytes of a value of this site."""
    values = world.cohorts[site].values
    assert values is not None
    table = world.tables[site]
    assert isinstance(table, dict)
    numbers = [*values[:50].ravel().tolist(), *table["weight"][:50].tolist()]
    needles = [np.float64(v).tobytes() for v in numbers] + [repr(v).encode() for v in numbers]
    found = set()
    for path in home.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found |= {path.name for needle in needles if needle in content}
    return found


def test_no_values_are_left_of_a_retired_cohort() -> None:
    tables = {name: patients(n, i, 0) for i, (name, n) in enumerate(SIZES.items())}
    world = Attacked(tables, SCHEMA, BOUNDS, rules={"persons": Persons("column:pid")})
    homes = {name: world._folder.path / name for name in SIZES}
    world.ledgers = {name: FileLedger(home / "ledger.jsonl") for name, home in homes.items()}
    world.join()
    world.federation().moments()
    home = homes["east"]
    assert files_with_rows(home, world, "east") == {"rows.npy"}  # the only place
    assert not (home / "ledger.jsonl.kept").exists()
    record, *_ = CohortStore(home).retire("1", world.policy())
    assert record.retired
    assert files_with_rows(home, world, "east") == set()
    hashes = np.load(home / "cohorts" / "1" / "persons.npy")
    assert len(np.unique(hashes)) == SIZES["east"]
    assert not set(hashes.tolist()) & set(range(SIZES["east"]))
