"""Extracts in the folder of a site: one for each study, deleted with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import drafted_policy
from tests.joint.extracts.test_freezing import AUTHOR, BOSS, KEYS, PATIENTS, study_of, visits

from isthmus.errors import FormatError, RefusedError
from isthmus_joint import (
    DifferentialPrivacy,
    ExtractStore,
    Federation,
    FileLedger,
    InProcess,
    Policy,
    SiteController,
    Study,
)


def rules(study: Study, **changes: Any) -> Policy:
    return drafted_policy(study, **({"persons": PATIENTS, "maximum_epsilon": 9.0} | changes))


def run(folder: Path, study: Study, rows: int, *, few_more_rows: bool = False) -> None:
    """Let three sites with the same table answer a study from their folders."""
    signatures = [study.sign(AUTHOR), *(study.sign(k, n) for n, k in KEYS.items())]
    handlers = {}
    for name, key in KEYS.items():
        home, policy = folder / name, rules(study)
        home.mkdir(exist_ok=True)
        store = ExtractStore(home)
        store.freeze(study, visits(rows), policy, few_more_rows=few_more_rows)
        ledger = FileLedger(home / "ledger.jsonl")
        controller = SiteController(study, signatures, key, store.read(study), policy, ledger)
        handlers[name] = controller.site().handle
    assert Federation(study, signatures, BOSS, InProcess(handlers)).moments().number_of_rows > 0


def test_an_extract_is_read_as_it_was_frozen(tmp_path: Path) -> None:
    study = study_of()
    store = ExtractStore(tmp_path)
    extract = store.freeze(study, visits(), rules(study))
    again = ExtractStore(tmp_path).read(study)
    assert (again.identity, again.checked) == (extract.identity, extract.checked)
    assert again.values is not None
    assert again.persons is not None
    assert extract.values is not None
    assert extract.persons is not None
    assert np.array_equal(again.values, extract.values)
    assert np.array_equal(again.persons, extract.persons)
    assert set(again.persons.tolist()) == set(range(100))  # numbers, and no identifiers
    assert again.problems(study, rules(study)) == []
    folder = store.folder(study)
    assert {p.name for p in folder.iterdir()} == {"extract.toml", "rows.npy", "persons.npy"}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in folder.iterdir()} == {0o600}
    rows = folder / "rows.npy"
    data = bytearray(rows.read_bytes())
    data[-1] ^= 1
    rows.write_bytes(bytes(data))
    with pytest.raises(FormatError, match="was changed"):
        store.read(study)


def test_an_extract_is_for_one_study(tmp_path: Path) -> None:
    study, other = study_of(), study_of(title="Another")
    store = ExtractStore(tmp_path)
    extract = store.freeze(study, visits(), rules(study))
    assert extract.problems(other, rules(other)) == ["the extract was frozen for another study"]
    with pytest.raises(RefusedError, match="No table was frozen for 'Another'"):
        store.read(other)


def test_a_stricter_policy_needs_another_check(tmp_path: Path) -> None:
    study = study_of()
    store = ExtractStore(tmp_path)
    extract = store.freeze(study, visits(), rules(study))
    for change in ({"minimum_cohort": 51}, {"minimum_cell": 6}, {"largest_share": 0.4}):
        assert "stricter" in extract.problems(study, rules(study, **change))[0]
        again = store.freeze(study, visits(), rules(study, **change))
        assert again.problems(study, rules(study, **change)) == []


def test_another_table_before_anything_was_sent_and_none_after(tmp_path: Path) -> None:
    study = study_of()
    for name in KEYS:
        (tmp_path / name).mkdir()
        ExtractStore(tmp_path / name).freeze(study, visits(250), rules(study))
    run(tmp_path, study, 300)
    with pytest.raises(RefusedError, match="Something was sent in"):
        ExtractStore(tmp_path / "x").freeze(study, visits(300), rules(study))


@pytest.mark.long
@pytest.mark.parametrize(("more", "is_asked"), [(0, False), (1, True), (49, True), (50, False)])
def test_the_officer_is_asked_about_a_few_rows_more(
    tmp_path: Path, more: int, is_asked: bool
) -> None:
    run(tmp_path, study_of(), 300)
    later = study_of(title="Later")
    store = ExtractStore(tmp_path / "x")
    if is_asked:
        with pytest.raises(RefusedError, match=f"{more} rows? more or less than"):
            store.freeze(later, visits(300 + more), rules(later))
    run(tmp_path, later, 300 + more, few_more_rows=is_asked)


def test_with_noise_nobody_is_asked_about_rows(tmp_path: Path) -> None:
    """A refusal could depend on one person."""
    run(tmp_path, study_of(), 300)
    noisy = study_of(title="Noisy", privacy=DifferentialPrivacy(1.0))
    ExtractStore(tmp_path / "x").freeze(noisy, visits(301), rules(noisy))
