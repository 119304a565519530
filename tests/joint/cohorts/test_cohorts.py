"""Cohorts: which studies they are open to, who is in them, and what is left of them."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.attacks.malicious import drafted_policy

from isthmus.errors import FormatError, RefusedError
from isthmus.joint import (
    Cohort,
    CohortStore,
    FileLedger,
    Identity,
    Member,
    Persons,
    Policy,
    SecureSums,
    Study,
)
from isthmus.joint.federation.site_controller import SiteController
from isthmus.sources.tables.persons import person_hashes
from isthmus.statistics import Chebyshev, CountPlan, Expansion, Kind, Schema, Variable

NAMES = ("age", "weight")
BOUNDS = {"age": (0.0, 120.0), "weight": (0.0, 300.0)}
SCHEMA = Schema(
    (
        *(Variable(n, Kind.CONTINUOUS) for n in NAMES),
        Variable("ward", Kind.DISCRETE, ("a", "b")),
    )
)
KEYS = {n: Identity.generate() for n in "xyz"}
AUTHOR, BOSS = Identity.generate(), Identity.generate()
PATIENTS = Persons("column:patient")


def study_of(title: str = "S", **changes: Any) -> Study:
    terms: dict[str, Any] = {
        "purpose": "p",
        "author": AUTHOR.public,
        "coordinator": BOSS.public,
        "members": [Member(n, n, key.public) for n, key in KEYS.items()],
        "schema": SCHEMA,
        "bounds": BOUNDS,
        "protocol": SecureSums(),
        "requests": ["moments"],
    }
    return Study.draft(title, **(terms | changes))


def patients(rows: int = 200, first: int = 0, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "age": rng.uniform(20, 90, rows),
        "weight": rng.normal(80, 15, rows),
        "ward": rng.choice(["a", "b"], rows),
        "patient": first + np.arange(rows),
    }


def rules(study: Study, **changes: Any) -> Policy:
    return drafted_policy(study, **({"persons": PATIENTS} | changes))


def send(home: Path, study: Study, cohort: Cohort, policy: Policy) -> None:
    """Write into the ledger that something was sent from the cohort."""
    ledger = FileLedger(home / "ledger.jsonl")
    signatures = [study.sign(AUTHOR), *(study.sign(k, n) for n, k in KEYS.items())]
    controller = SiteController(study, signatures, KEYS["x"], cohort, policy, ledger)
    ledger.append("sent", **controller._writer._running, study=study.identity.hex(), round=1)


# --- definitions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"bounds": BOUNDS | {"age": (0.0, 121.0)}}, r"\['age'\] differently"),
        ({"resolutions": {"weight": 1.0}}, r"\['weight'\] differently"),
        (
            {"schema": Schema((*SCHEMA.variables[:2], replace(SCHEMA["ward"], levels=("b", "a"))))},
            r"\['ward'\] differently",
        ),
        (
            {
                "schema": Schema.continuous([*NAMES, "height"]),
                "bounds": BOUNDS | {"height": (0.0, 250.0)},
            },
            r"no variables \['height'\]",
        ),
        (
            {"members": [Member(n, n, Identity.generate().public) for n in "xyz"]},
            "sites of the study",
        ),
    ],
)
def test_a_study_must_have_the_definitions_and_the_sites_of_the_cohort(
    changes: dict[str, Any], why: str
) -> None:
    first = study_of()
    cohort = Cohort.freeze(first, patients(), rules(first))
    other = study_of("T", **changes)
    with pytest.raises(RefusedError, match=why):
        cohort.opened(other, rules(other))
    assert re.search(why, cohort.problems(other, rules(other))[0])


def test_a_further_study_of_fewer_variables_is_opened() -> None:
    first = study_of()
    cohort = Cohort.freeze(first, patients(), rules(first))
    part = study_of("T", schema=Schema.continuous(["weight"]), bounds={"weight": BOUNDS["weight"]})
    assert cohort.problems(part, rules(part)) == ["the cohort was not opened for this study"]
    opened = cohort.opened(part, rules(part))
    assert opened.problems(part, rules(part)) == []
    assert opened.problems(first, rules(first)) == []
    values = opened.rows_of(part).values
    assert values is not None
    assert cohort.values is not None
    assert np.array_equal(values[:, 0], cohort.values[:, 1])


def test_a_stricter_policy_needs_another_check() -> None:
    study = study_of()
    cohort = Cohort.freeze(study, patients(), rules(study))
    for change in ({"minimum_cohort": 51}, {"minimum_cell": 6}, {"largest_share": 0.4}):
        assert "stricter" in cohort.problems(study, rules(study, **change))[0]
        again = cohort.opened(study, rules(study, **change))
        assert again.problems(study, rules(study, **change)) == []


def test_basis_functions_are_defined_once_per_variable() -> None:
    first = study_of()
    cohort = Cohort.freeze(first, patients(), rules(first))
    windows = [Expansion(Chebyshev(2, 1.0), NAMES, (60.0, 150.0), (s, 150.0)) for s in (60.0, 61.0)]
    schema = Schema.continuous(NAMES)
    one, two = (
        study_of(f"T{i}", schema=schema, requests=["features"], features=w)
        for i, w in enumerate(windows)
    )
    cohort = cohort.opened(one, rules(one))
    with pytest.raises(RefusedError, match=r"other basis functions of \['age'\]"):
        cohort.opened(two, rules(two))


def test_all_studies_of_a_cohort_are_checked_together() -> None:
    """Each of two studies has few columns; together they have too many for the rows."""
    names = tuple(f"v{i}" for i in range(40))
    schema, bounds = Schema.continuous(names), dict.fromkeys(names, (-9.0, 9.0))
    rng = np.random.default_rng(0)
    table = {n: rng.normal(size=100) for n in names}

    def part(chosen: tuple[str, ...]) -> Study:
        return study_of(
            str(chosen), schema=schema.subset(chosen), bounds={n: bounds[n] for n in chosen}
        )

    whole = study_of("whole", schema=schema, bounds=bounds, requests=["moments"])
    policy = rules(
        whole,
        persons=Persons(),
        columns_per_row=0.33,
        largest_share=1.0,
        requests=("moments",),
    )
    with pytest.raises(RefusedError, match="40 columns"):
        Cohort.freeze(whole, table, policy)
    first = part(names[:20])
    cohort = Cohort.freeze(first, table, policy)
    wide = replace(
        cohort,
        variables=cohort.variables._replace(
            schema=schema, bounds=bounds, resolutions=whole.resolutions
        ),
    )
    rows = Cohort.freeze(whole, table, replace(policy, columns_per_row=1.0)).values
    wide = replace(wide, values=rows)
    with pytest.raises(RefusedError, match="40 columns"):
        wide.opened(part(names[20:]), policy)


def test_planned_tables_of_all_studies_are_checked() -> None:
    rng = np.random.default_rng(1)
    schema = Schema.discrete(dict.fromkeys("abc", (0, 1)))
    table = {n: rng.integers(0, 2, 400) for n in "abc"}
    table["c"] = np.where(np.arange(400) < 100, table["a"], 1 - table["a"])
    table["c"][0] = 1 - table["a"][0]
    table["b"][:100] = 1
    table["b"][100:] = np.arange(300) % 2

    def planned(title: str, *sets: list[str]) -> Study:
        return study_of(
            title, schema=schema, bounds={}, requests=["counts"], plan=CountPlan.sets(sets)
        )

    first = planned("one", ["a", "b"], ["c"])
    policy = rules(first, persons=Persons())
    cohort = Cohort.freeze(first, table, policy)
    cohort = cohort.opened(planned("two", ["b", "c"]), policy)
    rare = {n: c.copy() for n, c in table.items()}
    rare["b"][:] = np.where(rare["a"] == 1, rare["c"], 1 - rare["c"])
    rare["b"][:3] = 1 - rare["b"][:3]
    cohort = Cohort.freeze(first, rare, policy)
    with pytest.raises(RefusedError, match="fewer than 5 persons"):
        cohort.opened(planned("three", ["a", "b", "c"]), policy)


# --- folders -----------------------------------------------------------------------------------


def test_a_cohort_is_read_as_it_was_frozen(tmp_path: Path) -> None:
    study = study_of()
    name, cohort = CohortStore(tmp_path).freeze(study, patients(), rules(study))
    again = CohortStore(tmp_path).cohort_of(study)
    assert again.identity == cohort.identity
    assert again.values is not None
    assert cohort.values is not None
    assert np.array_equal(again.values, cohort.values)
    assert again.persons is not None
    assert cohort.persons is not None
    assert np.array_equal(again.persons, cohort.persons)
    assert again.certificate == cohort.certificate
    assert again.problems(study, rules(study)) == []
    folder = tmp_path / "cohorts"
    modes = {p: p.stat().st_mode & 0o777 for p in (folder, *folder.rglob("*"))}
    assert {m for p, m in modes.items() if p.is_dir()} == {0o700}
    assert {m for p, m in modes.items() if p.is_file()} == {0o600}
    rows = folder / name / "rows.npy"
    data = bytearray(rows.read_bytes())
    data[-1] ^= 1
    rows.write_bytes(bytes(data))
    with pytest.raises(FormatError, match="were changed"):
        CohortStore(tmp_path).cohort_of(study)


def test_nothing_but_keyed_hashes_of_identifiers_is_left_of_a_retired_cohort(
    tmp_path: Path,
) -> None:
    study = study_of()
    table, policy, store = patients(), rules(study), CohortStore(tmp_path)
    name, cohort = store.freeze(study, table, policy)
    send(tmp_path, study, cohort, policy)
    record, *_ = store.retire(name, policy)
    assert record.retired
    left = {p.name for p in (tmp_path / "cohorts" / name).iterdir()}
    assert left == {"cohort.toml", "persons.npy"}
    assert np.load(tmp_path / "cohorts" / name / "persons.npy").dtype == np.uint64
    with pytest.raises(RefusedError, match="No cohort is open"):
        store.cohort_of(study)


def test_a_cohort_from_which_nothing_was_sent_leaves_nothing(tmp_path: Path) -> None:
    study = study_of()
    store = CohortStore(tmp_path)
    name, _ = store.freeze(study, patients(), rules(study))
    store.retire(name, rules(study))
    assert not (tmp_path / "cohorts" / name).exists()
    assert store.freeze(study, patients(), rules(study))[1].number_of_persons == 200


# --- persons -----------------------------------------------------------------------------------


@pytest.mark.parametrize("retired", [True, False])
def test_nobody_is_frozen_twice(tmp_path: Path, retired: bool) -> None:
    study, later = study_of(), study_of("later")
    policy, store = rules(study), CohortStore(tmp_path)
    name, cohort = store.freeze(study, patients(), policy)
    send(tmp_path, study, cohort, policy)
    if retired:
        store.retire(name, policy)
    with pytest.raises(RefusedError, match="fewer than 50 persons"):
        store.freeze(later, patients(240, 0, 1), policy)  # forty new persons
    _, new = store.freeze(later, patients(260, 0, 1), policy)
    assert new.frozen is not None
    assert (new.number_of_persons, new.frozen.known) == (60, 200)
    assert new.persons is not None
    assert cohort.persons is not None
    assert not np.isin(new.persons, cohort.persons).any()


def test_rows_that_nobody_can_compare_need_a_statement(tmp_path: Path) -> None:
    study, later = study_of(), study_of("later")
    policy, store = rules(study, persons=Persons()), CohortStore(tmp_path)
    name, cohort = store.freeze(study, patients(), policy)
    send(tmp_path, study, cohort, policy)
    store.retire(name, policy)
    with pytest.raises(RefusedError, match="--other-persons"):
        store.freeze(later, patients(seed=1), policy)
    store.freeze(later, patients(seed=1), policy, other_persons=True)
    with pytest.raises(RefusedError, match="--other-persons"):  # by another column
        store.freeze(later, patients(seed=2), rules(study))


def test_rows_that_are_not_persons_are_frozen_as_often_as_anybody_likes(tmp_path: Path) -> None:
    study = study_of()
    policy, store = rules(study, persons=Persons("none")), CohortStore(tmp_path)
    for k in range(3):
        name, cohort = store.freeze(study_of(str(k)), patients(), policy)
        assert (name, cohort.number_of_persons) == (str(k + 1), 200)


def test_a_further_study_finds_its_cohort(tmp_path: Path) -> None:
    study, later = study_of(), study_of("later")
    policy, store = rules(study), CohortStore(tmp_path)
    _, cohort = store.freeze(study, patients(), policy)
    assert store.open(later, policy)[1].identity == cohort.identity
    for each in (study, later):
        assert store.cohort_of(each).identity == cohort.identity
    strange = study_of("T", bounds=BOUNDS | {"age": (0.0, 100.0)})
    with pytest.raises(RefusedError, match=r"1: .*differently"):
        store.open(strange, policy)


# --- successors --------------------------------------------------------------------------------


def test_those_who_leave_are_a_cohort_of_their_own(tmp_path: Path) -> None:
    study = study_of()
    policy, store = rules(study), CohortStore(tmp_path)
    name, cohort = store.freeze(study, patients(), policy)
    send(tmp_path, study, cohort, policy)
    _, new, rest = store.retire(name, policy, ["17", "99"])
    assert rest is not None
    assert rest.persons is not None
    assert rest.values is not None
    assert cohort.persons is not None
    assert cohort.values is not None
    gone = ~np.isin(cohort.persons, rest.persons)
    assert 50 <= gone.sum() <= 150
    assert rest.number_of_persons == 200 - gone.sum()
    rows = {tuple(r) for r in cohort.values.tolist()}
    assert {tuple(r) for r in rest.values.tolist()} < rows  # values stay as they are
    leavers = CohortStore(tmp_path)
    again = leavers.cohort_of(study)
    assert again.identity == rest.identity != cohort.identity
    # Nobody who left comes back, nor anyone who stayed.
    with pytest.raises(RefusedError, match="fewer than 50 persons"):
        store.freeze(study_of("later"), patients(), policy)
    assert new == "2"


def test_no_successor_if_those_who_stay_are_too_few(tmp_path: Path) -> None:
    study = study_of()
    policy, store = rules(study), CohortStore(tmp_path)
    name, cohort = store.freeze(study, patients(90), policy)
    send(tmp_path, study, cohort, policy)
    with pytest.raises(RefusedError, match="no successor"):
        store.retire(name, policy, ["17"])
    assert store.cohort_of(study).identity == cohort.identity
    with pytest.raises(RefusedError, match="1 of 2 identifiers cannot be found"):
        store.retire(name, policy, ["17", "1017"])  # somebody's withdrawal would go unnoticed


def test_before_anything_was_sent_only_those_leave_who_must(tmp_path: Path) -> None:
    study = study_of()
    policy, store = rules(study), CohortStore(tmp_path)
    name, _ = store.freeze(study, patients(), policy)
    _, _, rest = store.retire(name, policy, ["17"])
    assert rest is not None
    assert rest.number_of_persons == 199
    assert not (tmp_path / "cohorts" / name).exists()


# --- the proposition ---------------------------------------------------------------------------


def rank(rows: list[list[int]]) -> int:
    """Rank of a matrix of integers, by elimination without fractions."""
    matrix, found = [row[:] for row in rows], 0
    for column in range(len(matrix[0]) if matrix else 0):
        pivot = next((i for i in range(found, len(matrix)) if matrix[i][column]), None)
        if pivot is None:
            continue
        matrix[found], matrix[pivot] = matrix[pivot], matrix[found]
        for i in range(found + 1, len(matrix)):
            a, b = matrix[found][column], matrix[i][column]
            if b:
                matrix[i] = [a * y - b * x for x, y in zip(matrix[found], matrix[i], strict=True)]
        found += 1
    return found


def fewest_persons(answers: list[list[int]]) -> int:
    """The smallest number of persons that a combination of answers is about.

    A combination that is about the persons of a set only vanishes for all others. There is one if
    and only if the rank falls when the columns of the set are left out. Persons who are in the same
    answers cannot be told apart, so that sets of such classes are tried, up to four at once.
    """
    classes: dict[tuple[int, ...], list[int]] = {}
    for person, column in enumerate(zip(*answers, strict=True)):
        if any(column):
            classes.setdefault(column, []).append(person)
    total, fewest = rank(answers), len(answers[0])
    for size in range(1, 5):
        for chosen in itertools.combinations(classes.values(), size):
            members = {p for some in chosen for p in some}
            rest = [[v for p, v in enumerate(row) if p not in members] for row in answers]
            if rank(rest) < total:
                fewest = min(fewest, len(members))
    return fewest


PEOPLE, LEAST = 120, 8


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("protected", [True, False])
def test_no_combination_of_all_answers_is_about_fewer_persons_than_a_cohort(
    tmp_path: Path, seed: int, protected: bool
) -> None:
    """Random histories of tables, studies and withdrawals; every answer is a row of zeros and ones.

    Without the register of persons and without groups that leave together, the same histories show
    single persons.
    """
    rng = np.random.default_rng(seed)
    study = study_of()
    policy = rules(
        study, minimum_cohort=LEAST, minimum_cell=1, largest_share=1.0, columns_per_row=1e300
    )
    store, answers = CohortStore(tmp_path), []
    table = patients(PEOPLE)
    present, seen = set(range(40)), 20

    def who(cohort: Cohort) -> list[int]:
        hashes = person_hashes([str(p) for p in range(PEOPLE)], store._key())
        assert cohort.persons is not None
        return np.flatnonzero(np.isin(hashes, cohort.persons)).tolist()

    def ask(cohort: Cohort, which: Study) -> None:
        members = set(who(cohort)) if protected else present
        answers.append([int(p in members) for p in range(PEOPLE)])
        if protected:
            send(tmp_path, which, cohort, policy)

    for step in range(7):
        which = study_of(f"study {step}")
        some = sorted(present)
        extract = {n: c[some] for n, c in table.items()}
        try:
            if protected:
                name, cohort = store.freeze(which, extract, policy)
            else:
                name, cohort = "", Cohort.freeze(which, extract, policy)
            ask(cohort, which)
            if protected:
                gone = rng.choice(who(cohort), 1)
                _, name, rest = store.retire(name, policy, [str(p) for p in gone])
                assert rest is not None
                ask(rest, store_study(which, f"again {step}", store, policy))
        except RefusedError:
            pass
        present -= set(rng.choice(some, 1).tolist())
        if step % 2:  # newcomers, sometimes too few for a cohort
            seen, newcomers = seen + 20, int(rng.integers(4, 20))
            present |= set(range(seen, seen + newcomers))
    assert len(answers) >= 3
    if protected:
        assert fewest_persons(answers) >= LEAST
    else:
        assert fewest_persons(answers) < LEAST


def store_study(study: Study, title: str, store: CohortStore, policy: Policy) -> Study:
    """Open the cohort of a study for another one."""
    other = study_of(title)
    store.open(
        other,
        policy,
        name=next(r.name for r in store.records() if study.identity.hex() in r.studies),
    )
    return other
